package trace_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/elicit"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// safe keeps secrets in memory.
type safe map[string]string

func (v safe) Keep(_ context.Context, thread, secret string) (string, error) {
	v[thread] = secret
	return thread, nil
}

func (v safe) Reveal(_ context.Context, handle string) (string, error) { return v[handle], nil }
func (v safe) Forget(_ context.Context, handle string) error           { delete(v, handle); return nil }

// Capability G6. A secret that a person gave is nowhere in a trace, even one without any
// rules: neither at once, nor when the run waited for it, nor without a vault.
func TestSecretAnswers(t *testing.T) {
	const secret = "hunter2-and-more"
	answer := phase.Answer{Approved: true, Value: `"` + secret + `"`}
	for name, c := range map[string]struct{ waits, vault bool }{
		"at once": {false, true}, "waiting": {true, true}, "at once, no vault": {}, "waiting, no vault": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTraceWith(trace.Rules{Bare: true, Chunks: true})
			config, _ := enginetest.Config(t, elicit.New(), tr.Trace)
			config.Observers = append(config.Observers, tr.Trace)
			config.Model = enginetest.NewScript(enginetest.Call("c1", elicit.Tool, elicit.Question{Kind: gate.Secret, Message: "Token?"}), enginetest.Say("done"))
			kept := safe{}
			if c.vault {
				config.Vault = kept
			}
			if !c.waits {
				config.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return answer, nil })
			}
			th, err := enginetest.Engine(t, config).NewThread("")
			require.NoError(t, err)
			spec := engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{elicit.Name: `{"unattended":"wait"}`}}
			res, err := th.Run(t.Context(), spec, engine.Prompt("go"))
			require.NoError(t, err)
			if c.waits {
				require.Equal(t, phase.Waiting, res.Status)
				res, err = th.Resume(t.Context(), spec, engine.Input{}, engine.Decision{Answer: answer})
				require.NoError(t, err)
			}
			require.NoError(t, res.Err)
			require.NoError(t, tr.Close(t.Context()))
			for what, text := range map[string]string{"lines": tr.lines.String(), "text": tr.text.String(), "chrome": tr.chrome.String()} {
				require.NotContains(t, text, secret, what)
				require.NotEmpty(t, text)
			}
			require.Contains(t, tr.lines.String(), `"type":"ticket_opened"`)
			if c.vault {
				require.Equal(t, safe{th.ID(): secret}, kept)
				require.Contains(t, tr.lines.String(), `"handle":"`+th.ID())
			}
		})
	}
}
