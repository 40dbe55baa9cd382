package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// peShop is what the tests of kept threads run: a tool that counts its calls and a
// gate that asks about one of them.
type peShop struct {
	bodies   atomic.Int64
	recovery engine.Recovery
	sold     state.Counter
	notes    state.Log[string]
}

func newPeShop() *peShop {
	return &peShop{
		sold:  state.NewCounter("shop.sold", state.Options[int64]{Scope: state.ScopeThread}),
		notes: state.NewLog("shop.notes", state.Options[string]{Scope: state.ScopeThread}),
	}
}

type peSell struct{ s *peShop }

func (t peSell) Spec() inference.ToolSpec  { return inference.ToolSpec{Name: "sell", Kind: "write"} }
func (t peSell) Recovery() engine.Recovery { return t.s.recovery }
func (t peSell) Call(_ context.Context, pc *phase.Context) (engine.Output, error) {
	out := engine.Text(fmt.Sprintf("sold %d", t.s.bodies.Add(1)))
	out.Command.Update(t.s.sold.With(1))
	return out, nil
}

func (s *peShop) config(journal engine.Journal, observers ...engine.Observer) engine.Config {
	shop := engine.NewPlugin("shop", func(r *engine.Registrar) error {
		r.Key(s.sold, s.notes)
		r.Tool(peSell{s})
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().ID == "ask" {
				return gate.Ask(gate.Ticket{Message: "sell?"}), nil
			}
			return gate.Approve(), nil
		}))
		for p := range phase.All() {
			if p != phase.ToolGate {
				r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					cmd.Update(s.notes.Append(pc.Phase().String()))
					return cmd, nil
				}))
			}
		}
		return nil
	})
	return engine.Config{
		Plugins: []engine.Plugin{shop}, Journal: journal, Observers: observers,
		Model: inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			if r.Messages[len(r.Messages)-1].Role == inference.RoleTool {
				return inference.Response{Message: inference.Assistant("done")}, nil
			}
			return inference.Response{Message: inference.Assistant("",
				inference.ToolCall{ID: "free", Name: "sell", Args: "{}"}, inference.ToolCall{ID: "ask", Name: "sell", Args: "{}"})}, nil
		}),
	}
}

func (s *peShop) engine(t testing.TB, journal engine.Journal, observers ...engine.Observer) *engine.Engine {
	t.Helper()
	e, err := engine.New(s.config(journal, observers...))
	require.NoError(t, err)
	return e
}

var peSpec = engine.AgentSpec{ID: "seller"}

// Capability A14. Capability A18. A run that waits outlives its process: another
// engine opens the thread from the journal and finishes it, and no tool whose result
// was kept runs again.
func TestPersistedRunIsFinishedByAnotherEngine(t *testing.T) {
	store := memstore.New(memstore.Options{})
	first := newPeShop()
	th, err := first.engine(t, store).NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, phase.Waiting, res.Status)
	require.Len(t, res.Tickets, 1)

	second := newPeShop()
	again, err := second.engine(t, store).OpenThread(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, res.Tickets, again.Tickets())
	done, err := again.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
	require.NoError(t, err)
	require.NoError(t, done.Err)
	require.Equal(t, phase.ReasonNatural, done.Reason)
	require.Equal(t, res.Run, done.Run)
	require.EqualValues(t, 1, first.bodies.Load())
	require.EqualValues(t, 1, second.bodies.Load())
	require.EqualValues(t, 2, second.sold.Get(again.Snapshot()))

	// And the finished thread is there too, to the letter.
	third, err := newPeShop().engine(t, store).OpenThread(t.Context(), "t")
	require.NoError(t, err)
	want, err := again.Export()
	require.NoError(t, err)
	got, err := third.Export()
	require.NoError(t, err)
	require.Equal(t, want.Entries, got.Entries)
	_, err = third.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
	require.ErrorIs(t, err, engine.ErrNotWaiting)
}

// Fault B34. Who hears that a run waits finds it in the store; and with a store that
// fails, nobody hears it.
func TestPersistedPauseIsSavedBeforeItIsTold(t *testing.T) {
	for i := range 200 {
		store := memstore.New(memstore.Options{})
		found := make(chan error, 1)
		shop := newPeShop()
		watcher := engine.ObserverFunc(func(ev engine.Event) {
			if s, ok := ev.(engine.RunSuspended); ok {
				th, err := newPeShop().engine(t, store).OpenThread(context.Background(), "t")
				if err == nil && (len(th.Tickets()) != 1 || th.Tickets()[0] != s.Tickets[0]) {
					err = fmt.Errorf("round %d: found %v", i, th.Tickets())
				}
				found <- err
			}
		})
		th, err := shop.engine(t, store, watcher).NewThread("t")
		require.NoError(t, err)
		_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
		require.NoError(t, err)
		require.NoError(t, <-found)
	}
}

// Two engines that both opened a waiting thread: whoever decides first has it, and
// the other learns that it moved on.
func TestPersistedThreadHasOneOwner(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, err := newPeShop().engine(t, store).NewThread("t")
	require.NoError(t, err)
	_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	shops := []*peShop{newPeShop(), newPeShop()}
	outcomes := make(chan error, len(shops))
	var opened []*engine.Thread
	for _, s := range shops {
		th, err := s.engine(t, store).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		opened = append(opened, th)
	}
	for _, th := range opened {
		go func() {
			res, err := th.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
			if err == nil {
				err = res.Err
			}
			outcomes <- err
		}()
	}
	a, b := <-outcomes, <-outcomes
	if a != nil {
		a, b = b, a
	}
	require.NoError(t, a)
	require.ErrorIs(t, b, engine.ErrJournalConflict)
	require.EqualValues(t, 1, shops[0].bodies.Load()+shops[1].bodies.Load())
}

// Fault F29 of crashes: a process may end at any append. Whatever was acknowledged is there, the run
// can be finished, and no call whose result was kept is run again.
func TestPersistedRunSurvivesACrashAtEveryAppend(t *testing.T) {
	for _, fault := range []faultstore.Fault{faultstore.Crash, faultstore.FailAfter, faultstore.FailBefore} {
		for n := 1; ; n++ {
			inner := memstore.New(memstore.Options{})
			broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: fault}})
			require.NoError(t, err)
			shop := newPeShop()
			th, err := shop.engine(t, broken).NewThread("t")
			require.NoError(t, err)
			res, err := th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
			require.NoError(t, err)
			if res.Status == phase.Waiting && res.Err == nil && broken.Counts().Faults[fault] == 0 {
				require.Greater(t, n, 10, "the fault has to strike somewhere")
				break
			}
			// What was kept, and what the crashed process did, may differ by the one call
			// that nobody acknowledged; what was kept is never more than what was done.
			next := newPeShop()
			next.recovery = engine.Rerun
			again, err := next.engine(t, inner).OpenThread(t.Context(), "t")
			require.NoError(t, err, "%v at append %d", fault, n)
			kept := next.sold.Get(again.Snapshot())
			require.LessOrEqual(t, kept, shop.bodies.Load())
			resumed, err := again.Resume(t.Context(), peSpec, engine.Input{})
			for err == nil && resumed.Status == phase.Waiting {
				resumed, err = again.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
			}
			if errors.Is(err, engine.ErrNotWaiting) {
				continue // nothing of the run was kept, or it has its end
			}
			require.NoError(t, err, "%v at append %d", fault, n)
			require.NoError(t, resumed.Err, "%v at append %d", fault, n)
			if resumed.Reason == phase.ReasonNatural {
				require.EqualValues(t, 2, next.sold.Get(again.Snapshot()), "%v at append %d", fault, n)
				require.EqualValues(t, 2-kept, next.bodies.Load(), "a call whose result was kept ran again: %v at append %d", fault, n)
			}
		}
	}
}

// Fault B35. A thread that a newer program wrote is refused, and one that holds
// values of plugins that are gone keeps them.
func TestPersistedThreadOfOtherPrograms(t *testing.T) {
	store := memstore.New(memstore.Options{})
	shop := newPeShop()
	th, err := shop.engine(t, store).NewThread("t")
	require.NoError(t, err)
	_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)

	bare, err := engine.New(engine.Config{Journal: store, Model: shop.config(nil).Model})
	require.NoError(t, err)
	without, err := bare.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	var cmd phase.Command
	cmd.EndRun("given_up", "the shop closed")
	_, err = without.Submit(t.Context(), "test", cmd)
	require.NoError(t, err)
	back, err := newPeShop().engine(t, store).OpenThread(t.Context(), "t")
	require.NoError(t, err)
	names := func(th *engine.Thread) (list []string) {
		d, err := th.Export()
		require.NoError(t, err)
		for _, e := range d.Entries {
			list = append(list, e.Name)
		}
		return list
	}
	require.Contains(t, names(back), "shop.sold")
	require.Contains(t, names(back), "shop.notes")

	_, err = store.Append(t.Context(), engine.JournalCommit{ID: [16]byte{1}, Thread: "newer", Record: []byte{99, '{', '}'}})
	require.NoError(t, err)
	_, err = bare.OpenThread(t.Context(), "newer")
	require.ErrorIs(t, err, engine.ErrRecord)
	require.ErrorContains(t, err, "format 99")
	_, err = bare.OpenThread(t.Context(), "")
	require.ErrorIs(t, err, engine.ErrInput)
}

// Capability A15. What is imported into a thread that is kept is kept too.
func TestPersistedImport(t *testing.T) {
	store := memstore.New(memstore.Options{})
	shop := newPeShop()
	source, err := shop.engine(t, nil).NewThread("source")
	require.NoError(t, err)
	_, err = source.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	dump, err := source.Export()
	require.NoError(t, err)

	eng := shop.engine(t, store)
	th, err := eng.NewThread("t")
	require.NoError(t, err)
	require.NoError(t, th.Import(dump, state.KeepUnknown))
	_, err = th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
	require.NoError(t, err)
	back, err := eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	want, err := th.Export()
	require.NoError(t, err)
	got, err := back.Export()
	require.NoError(t, err)
	require.Equal(t, want.Entries, got.Entries)
	require.EqualValues(t, 2, shop.sold.Get(back.Snapshot()))

	other, err := eng.NewThread("alone")
	require.NoError(t, err)
	require.NoError(t, other.Import(dump, state.KeepUnknown))
	alone, err := eng.OpenThread(t.Context(), "alone")
	require.NoError(t, err)
	require.Equal(t, source.Tickets(), alone.Tickets())
}
