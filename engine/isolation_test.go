package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	isoCell = state.NewCell[string]("iso.cell", state.Options[string]{})
	isoLog  = state.NewLog("iso.log", state.Options[string]{Scope: state.ScopeThread})
)

// Capability G9. Concurrent runs on one engine see neither each other's state nor
// each other's hooks, effects or events.
func TestIsolationOfConcurrentRuns(t *testing.T) {
	const runs = 50
	tell := effects.NewSpec[string]("tell")
	var mu sync.Mutex
	told := map[string][]string{}
	eng := gaNew(t, engine.Config{
		Model: inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			return inference.Response{Message: inference.Assistant("re: " + r.Messages[0].Text)}, nil
		}),
		Plugins: []engine.Plugin{
			gaPlugin("base", func(r *engine.Registrar) {
				r.Key(isoCell, isoLog)
				r.Effect(tell.Handle(func(ctx context.Context, snap *state.Snapshot, s string) error {
					id, _ := effects.IDFrom(ctx)
					mu.Lock()
					defer mu.Unlock()
					told[id.Run] = append(told[id.Run], s+" on "+isoCell.Get(snap))
					return nil
				}))
				r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					cmd.Update(isoCell.With(pc.Run().ID)).Emit(tell.New("from " + pc.Run().ID))
					return cmd, nil
				}))
				r.Hook(phase.StepEnd, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					return gaUpdates(isoLog.Append(isoCell.Get(pc.Snapshot()))), nil
				}))
			}),
			gaOn("odd", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
				return gaUpdates(isoLog.Append("odd " + pc.Agent().ID)), nil
			}),
		},
	})
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			id := fmt.Sprintf("run-%d", i)
			th, err := eng.NewThread("")
			if err != nil {
				t.Error(err)
				return
			}
			spec := engine.AgentSpec{ID: id}
			want := []string{id}
			if i%2 == 0 {
				spec.ActiveHookFilter = []string{"base"}
			} else {
				want = append(want, "odd "+id)
			}
			in := engine.Prompt(id)
			in.RunID = id
			n := 0
			text := ""
			for e, err := range th.Events(t.Context(), spec, in) {
				n++
				if err != nil || e.Head().Run != id || e.Head().Thread != th.ID() || e.Head().Seq != uint64(n) {
					t.Errorf("%s got %+v, %v", id, e, err)
				}
				if e, ok := e.(engine.InferenceFinished); ok {
					text = e.Text
				}
			}
			if text != "re: "+id {
				t.Errorf("%s heard %q", id, text)
			}
			if got := isoLog.Get(th.Snapshot()).Slice(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s has %v, want %v", id, got, want)
			}
		})
	}
	wg.Wait()
	for i := range runs {
		id := fmt.Sprintf("run-%d", i)
		require.Equal(t, []string{"from " + id + " on " + id}, told[id])
	}
}

// Fault B39. 50 concurrent runs of one spec, each with an override of its own in
// step 1 only: the model sees it there and nowhere else, the spec stays as it is,
// and a temperature of zero is not an unset one.
func TestIsolationOfOverrides(t *testing.T) {
	const runs = 50
	spec := engine.AgentSpec{ID: "shared", Params: inference.Params{MaxTokens: inference.Some(1000)}}
	before := spec.Clone()
	type ask struct {
		MaxTokens   inference.Opt[int]
		Temperature inference.Opt[float64]
	}
	var mu sync.Mutex
	asked := map[string][]ask{}
	eng := gaNew(t, engine.Config{
		Model: inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			who := r.Messages[0].Text
			asked[who] = append(asked[who], ask{r.Params.MaxTokens, r.Params.Temperature})
			if len(asked[who]) == 1 {
				return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "c", Name: "tool", Args: "{}"})}, nil
			}
			return inference.Response{Message: inference.Assistant("done")}, nil
		}),
		Plugins: []engine.Plugin{gaTools(gaTool{name: "tool"}), gaOn("override", phase.BeforeInference, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Run().Step == 1 {
				var i int
				if _, err := fmt.Sscan(pc.Messages().At(0).Text, &i); err != nil {
					return cmd, err
				}
				o := inference.Override{MaxTokens: inference.Some(i)}
				if i%2 == 0 {
					o.Temperature = inference.Some(0.0)
				}
				cmd.Schedule(engine.SetOverride.New(engine.OverrideArgs{Override: o}))
			}
			return cmd, nil
		})},
	})
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			res, err := eng.Run(t.Context(), spec, engine.Prompt(fmt.Sprint(i)))
			if err != nil || res.Err != nil {
				t.Error(err, res)
			}
		})
	}
	wg.Wait()
	require.Equal(t, before, spec)
	for i := range runs {
		first := ask{MaxTokens: inference.Some(i)}
		if i%2 == 0 {
			first.Temperature = inference.Some(0.0)
		}
		require.Equal(t, []ask{first, {MaxTokens: inference.Some(1000)}}, asked[fmt.Sprint(i)])
	}
}

// Capability H4. A run without any plugin works the same: same answer, history,
// lifecycle and events as one whose plugins have nothing to say.
func TestIsolationNoPluginsAtAll(t *testing.T) {
	run := func(plugins ...engine.Plugin) (*engine.Result, []inference.Message, string) {
		tape := &gaTape{}
		th := gaThread(t, engine.Config{
			Now: gaClock, NewID: gaIDs(), Observers: []engine.Observer{tape}, Plugins: plugins,
			Model: gaCalls(inference.ToolCall{ID: "c", Name: "mine", Args: "{}"}),
		})
		in := engine.Prompt("hello")
		in.Tools = []engine.Tool{gaTool{name: "mine"}}
		res, err := th.Run(t.Context(), gaAgent, in)
		require.NoError(t, err)
		return res, engine.Transcript.Get(th.Snapshot()).Slice(), tape.lines(t)
	}
	res, messages, events := run()
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, "done", res.Text)
	require.Equal(t, 2, res.Steps)
	require.Len(t, messages, 4)
	require.Equal(t, "ok", messages[2].Text)

	sameRes, sameMessages, sameEvents := run(gaPlugin("idle", func(*engine.Registrar) {}), gaKeys(isoCell))
	require.Equal(t, res, sameRes)
	require.Equal(t, messages, sameMessages)
	require.Equal(t, events, sameEvents)
}

// Capability G9. Fault F34. Run-scoped state begins anew with each run of a thread, state of
// the thread stays, and two threads share neither.
func TestIsolationOfScopes(t *testing.T) {
	hook := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		return gaUpdates(isoCell.With(isoCell.Get(pc.Snapshot())+"x"), isoLog.Append(isoCell.Get(pc.Snapshot()))), nil
	}
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaKeys(isoCell, isoLog), gaOn("a", phase.StepStart, hook), gaOn("b", phase.StepStart, hook, engine.Tier(1))}})
	one, err := eng.NewThread("")
	require.NoError(t, err)
	two, err := eng.NewThread("")
	require.NoError(t, err)
	require.NotEqual(t, one.ID(), two.ID())
	gaRun(t, one)
	gaRun(t, one)
	gaRun(t, two)
	require.Equal(t, "xx", isoCell.Get(one.Snapshot()))
	require.Equal(t, []string{"", "x", "", "x"}, isoLog.Get(one.Snapshot()).Slice())
	require.Equal(t, []string{"", "x"}, isoLog.Get(two.Snapshot()).Slice())
}
