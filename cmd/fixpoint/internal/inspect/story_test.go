package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// harmful is a text that would do harm in a page or a terminal that took it for more.
const harmful = "</script><script>alert(1)</script>\u2028\x1b[31m\r\n\ndata: x\n\nevent: view\n"

var board = state.NewCell("story.board", state.Options[string]{})

// story is a configuration in which two hooks fight over a key in every step, and a tool
// call is blocked in each but the last.
func story(t testing.TB, steps int) engine.Config {
	write := func(name string) phase.HookFunc {
		return func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			var c phase.Command
			c.Update(board.With(fmt.Sprint(name, " at ", pc.Run().Step, " after ", board.Get(pc.Snapshot()), harmful)[:40]))
			return c, nil
		}
	}
	plugin := func(name string, more func(*engine.Registrar)) engine.Plugin {
		return engine.NewPlugin(name, func(r *engine.Registrar) error {
			r.Hook(phase.BeforeInference, write(name))
			more(r)
			return nil
		})
	}
	config, _ := enginetest.Config(t,
		plugin("left", func(r *engine.Registrar) {
			r.Key(board)
			r.Tool(enginetest.StubTool("knock", engine.Text("nobody")))
		}),
		plugin("right", func(r *engine.Registrar) {
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
				return gate.Block("no knocking" + harmful), nil
			}))
		}))
	config.Model = &caller{steps: steps}
	return config
}

// caller calls the tool in every step of a run but the last.
type caller struct{ step, steps int }

func (c *caller) Generate(context.Context, inference.Request) (inference.Response, error) {
	c.step++
	if c.step == c.steps {
		return inference.Response{Message: inference.Assistant("done"), Stop: inference.StopEnd}, nil
	}
	args, err := inference.ToJSON(map[string]string{"at": harmful})
	call := inference.ToolCall{ID: fmt.Sprint("call-", c.step-1), Name: "knock", Args: args}
	return inference.Response{Message: inference.Assistant("", call), Stop: inference.StopToolUse}, err
}

// play has the story happen under an observer.
func play(t testing.TB, steps int, o engine.Observer) {
	config := story(t, steps)
	config.Observers = append(config.Observers, o)
	eng := enginetest.Engine(t, config)
	in := engine.Prompt(harmful)
	in.RunID = "run-1"
	_, err := eng.Run(t.Context(), engine.AgentSpec{ID: "actor", MaxRounds: steps + 1}, in)
	require.NoError(t, err)
	require.NoError(t, eng.Close(t.Context()))
}

// written is the trace of a story.
func written(t testing.TB, steps int) []byte {
	var lines bytes.Buffer
	tr := trace.New(trace.Options{Lines: &lines})
	play(t, steps, tr)
	require.NoError(t, tr.Close(t.Context()))
	require.Greater(t, strings.Count(lines.String(), "\n"), 20)
	return lines.Bytes()
}
