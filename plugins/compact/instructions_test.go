package compact_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

// noting is a plugin that tells the model something before each call, for good.
func noting(texts ...string) engine.Plugin {
	return engine.NewPlugin("noting", func(r *engine.Registrar) error {
		r.Hook(phase.BeforeInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			text := texts[(pc.Run().Step-1)%len(texts)]
			cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(text)}))
			return cmd, nil
		}))
		return nil
	})
}

// Of instructions that say the same the last one stays, in its place; others all stay.
func TestRepeatedInstructions(t *testing.T) {
	w := &walker{calls: 6}
	_, th, _ := open(t, w, compact.New(fixed), noting("test", "brief", "test"))
	ask(t, th, agent(`{"max_tokens": 250, "keep_recent": 3, "min_saving": 50}`), "go")
	require.Equal(t, "u:go s:brief u:<s:test,a:c1,t:c1,a:c2,t:c2,s:test,a:c3,t:c3,s:brief,a:c4,t:c4,s:test,a:c5,t:c5> s:test a:c6 t:c6 s:test", w.sent()[6])
}

// Instructions that are of passing interest go into the summary, unless they are pinned or
// among the latest.
func TestTransientInstructions(t *testing.T) {
	w := &walker{calls: 6}
	_, th, _ := open(t, w, compact.New(fixed), noting("be brief", "it is 9:00", "it is 9:05", "it is 9:10", "it is 9:15", "it is 9:20", "it is 9:25"))
	var pin phase.Command
	pin.Update(compact.Pinned.Add(7))
	_, err := th.Submit(t.Context(), "test", pin)
	require.NoError(t, err)
	ask(t, th, agent(`{"max_tokens": 250, "keep_recent": 3, "min_saving": 50, "transient": "^it is "}`), "go")
	require.Equal(t, "u:go s:be brief s:it is 9:05 u:<a:c1,t:c1,s:it,is,9:00,a:c2,t:c2,a:c3,t:c3,s:it,is,9:10,a:c4,t:c4,s:it,is,9:15,a:c5,t:c5> s:it is 9:20 a:c6 t:c6 s:it is 9:25", w.sent()[6])
}

func TestFaultyTransient(t *testing.T) {
	eng, _, _ := open(t, &walker{}, compact.New(compact.Options{}))
	err := eng.Check(agent(`{"transient": "("}`))
	require.ErrorIs(t, err, engine.ErrSpec)
	require.ErrorContains(t, err, "compact: transient is no regular expression as package regexp takes it")
}
