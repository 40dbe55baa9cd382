package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// duOwned is a thread of an engine with that owner, whose tool does what body says and
// whose hooks send mail.
func duOwned(t testing.TB, journal engine.Journal, owner string, post *duPost, body func(ctx context.Context)) *engine.Thread {
	t.Helper()
	worker := gaTool{name: "work", call: func(ctx context.Context, _ *phase.Context) (engine.Output, error) {
		if body != nil {
			body(ctx)
		}
		out := engine.Text("worked")
		out.Command = duSends("by " + owner)
		return out, nil
	}}
	eng := duEngine(t, engine.Config{
		Journal: journal, Owner: owner, Plugins: []engine.Plugin{post.plugin(), gaTools(worker)},
		Model: inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			if r.Messages[len(r.Messages)-1].Role == inference.RoleTool {
				return inference.Response{Message: inference.Assistant("done")}, nil
			}
			return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "c", Name: "work", Args: "{}"})}, nil
		}),
	})
	th, err := eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	return th
}

// Capability B6. While a run has the lease of its thread, nobody else can run, resume,
// submit or import, and changes nothing by trying; after its end they can, without
// waiting for anything.
func TestLeaseIsHeldByOne(t *testing.T) {
	gaNoLeak(t)
	store, post := memstore.New(memstore.Options{}), &duPost{}
	var other *engine.Thread
	th := duOwned(t, store, "ann", post, func(context.Context) {
		before, err := store.Load(t.Context(), "t", 0)
		require.NoError(t, err)
		var held *engine.LeaseHeld
		_, err = other.Run(t.Context(), gaAgent, engine.Prompt("me too"))
		require.ErrorAs(t, err, &held)
		require.Equal(t, "ann", held.Owner)
		_, err = other.Submit(t.Context(), "x", duSends("never"))
		require.ErrorIs(t, err, engine.ErrLeaseHeld)
		_, err = other.RunPhase(t.Context(), gaAgent, phase.StepEnd)
		require.ErrorIs(t, err, engine.ErrLeaseHeld)
		dump, err := other.Export()
		require.NoError(t, err)
		require.ErrorIs(t, other.Import(dump, 0), engine.ErrLeaseHeld)
		after, err := store.Load(t.Context(), "t", 0)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	other = duOwned(t, store, "bob", post, nil)
	for range 3 {
		gaRun(t, th)
	}
	_, err := other.Run(t.Context(), gaAgent, engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrJournalConflict, "it was changed since it was opened")
	_, err = other.Run(t.Context(), gaAgent, engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrJournalConflict)
	other = duOwned(t, store, "bob", post, nil)
	gaRun(t, other)
	require.EqualValues(t, 4, duSent.Get(other.Snapshot()))
}

// Capability B6. Two threads of one engine that are the same in the store do not take
// the lease from each other.
func TestLeaseWithinAnEngine(t *testing.T) {
	store, post := memstore.New(memstore.Options{}), &duPost{}
	var twin *engine.Thread
	var eng *engine.Engine
	inside := false
	plugins := []engine.Plugin{post.plugin(), gaOn("hook", phase.StepStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
		if twin != nil && !inside {
			inside = true
			_, err = twin.Run(t.Context(), gaAgent, engine.Prompt("me too"))
			require.ErrorIs(t, err, engine.ErrBusy)
		}
		return cmd, nil
	})}
	eng = duEngine(t, engine.Config{Journal: store, Owner: "ann", Plugins: plugins})
	th, err := eng.NewThread("t")
	require.NoError(t, err)
	twin, err = eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	gaRun(t, th)
	require.True(t, inside)
	gaRun(t, th)
	_, err = twin.Run(t.Context(), gaAgent, engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrJournalConflict)
	twin, err = eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	gaRun(t, twin)
}

// Capability B6. A waiting run has no lease: another owner finishes it as soon as it
// hears of it.
// Fault B34. Its consumer resumes at the moment of the announcement.
func TestLeaseIsGivenUpBeforeAPauseIsTold(t *testing.T) {
	for range 50 {
		store := memstore.New(memstore.Options{})
		resumed := make(chan error, 1)
		c := newPeShop().config(store, engine.ObserverFunc(func(ev engine.Event) {
			if _, ok := ev.(engine.RunSuspended); !ok {
				return
			}
			c := newPeShop().config(store)
			c.Owner = "bob"
			th, err := duEngine(t, c).OpenThread(context.Background(), "t")
			if err == nil {
				_, err = th.Resume(context.Background(), peSpec, engine.Input{}, feYes)
			}
			resumed <- err
		}))
		c.Owner = "ann"
		th, err := duEngine(t, c).NewThread("t")
		require.NoError(t, err)
		_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
		require.NoError(t, err)
		require.NoError(t, <-resumed)
		_, err = th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
		require.ErrorIs(t, err, engine.ErrJournalConflict)
	}
}

// Capability B6. A run that takes ten times as long as its lease keeps it, also when a
// renewal fails, panics or hangs now and then.
func TestLeaseIsRenewed(t *testing.T) {
	for _, fault := range []string{"", "error", "panic", "goexit", "hang"} {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			store, post := duNewStore(memstore.Options{}), &duPost{}
			other := duOwned(t, store, "bob", post, nil)
			var calls atomic.Int64
			th := duOwned(t, store, "ann", post, func(ctx context.Context) {
				for range 300 {
					time.Sleep(time.Second)
					require.NoError(t, ctx.Err())
					_, err := other.Run(t.Context(), gaAgent, engine.Prompt("me too"))
					require.ErrorIs(t, err, engine.ErrLeaseHeld)
				}
			})
			if fault != "" {
				store.renew = func() error {
					if calls.Add(1)%2 == 1 {
						return duFaults(stop)[fault]()
					}
					return nil
				}
			}
			gaRun(t, th)
			require.Equal(t, []string{"by ann"}, duTexts(post))
			close(stop)
			synctest.Wait()
		})
	}
}

func duTexts(p *duPost) (texts []string) {
	for _, m := range p.mails() {
		for i := range m {
			if m[i] == ' ' {
				texts = append(texts, m[i+1:])
				break
			}
		}
	}
	return texts
}

// Capability B6. An owner that does not renew is taken over when its lease has run out.
// Its hooks and tools are told, its next commit fails, its run ends with that, none of
// its effects is delivered, and its thread must be opened anew.
func TestLeaseIsTakenOver(t *testing.T) {
	for _, told := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, post := duNewStore(memstore.Options{}), &duPost{}
			var works atomic.Bool
			store.renew = func() error {
				if works.Load() {
					return nil
				}
				return errors.New("no")
			}
			cause := make(chan error, 1)
			th := duOwned(t, store, "ann", post, func(ctx context.Context) {
				time.Sleep(29 * time.Second)
				next := duOwned(t, store, "bob", post, nil)
				_, err := next.Resume(t.Context(), gaAgent, engine.Input{})
				require.ErrorIs(t, err, engine.ErrLeaseHeld)
				time.Sleep(2 * time.Second)
				res, err := next.Resume(t.Context(), gaAgent, engine.Input{})
				require.NoError(t, err)
				require.NoError(t, res.Err)
				require.Equal(t, phase.ReasonNatural, res.Reason)
				if told {
					works.Store(true)
					<-ctx.Done()
					cause <- context.Cause(ctx)
				}
			})
			res, err := th.Run(t.Context(), gaAgent, engine.Prompt("go"))
			require.NoError(t, err)
			require.ErrorIs(t, res.Err, engine.ErrFenced)
			if told {
				require.ErrorIs(t, <-cause, engine.ErrFenced)
				require.Equal(t, phase.ReasonCancelled, res.Reason)
			}
			require.Empty(t, post.mails(), "bob was told that the call was interrupted, ann did not commit")
			_, err = th.Submit(t.Context(), "x", duSends("late"))
			require.ErrorIs(t, err, engine.ErrFenced)
			_, err = th.Run(t.Context(), gaAgent, engine.Prompt("go"))
			require.ErrorIs(t, err, engine.ErrFenced)
			require.Empty(t, post.mails())

			again := duOwned(t, store, "ann", post, nil)
			require.Equal(t, phase.Done, phase.RunLifecycle.Get(again.Snapshot()).Status)
			gaRun(t, again)
			require.Equal(t, []string{"by ann"}, duTexts(post))
		})
	}
}

// Capability B6. A lease whose renewal always fails is good for as long as nobody else
// takes it.
func TestLeaseThatNobodyElseWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, post := duNewStore(memstore.Options{}), &duPost{}
		store.renew = func() error { return errors.New("no") }
		gaRun(t, duOwned(t, store, "ann", post, func(context.Context) { time.Sleep(time.Hour) }))
		require.Equal(t, []string{"by ann"}, duTexts(post))
	})
}
