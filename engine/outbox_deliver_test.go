package engine_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// duThread is a thread of a new engine on a store, with mail.
func duThread(t testing.TB, store engine.Journal, post *duPost, options ...effects.HandlerOption) (*engine.Engine, *engine.Thread) {
	t.Helper()
	eng := duEngine(t, engine.Config{Journal: store, NewID: func() string { return "id" }, Plugins: []engine.Plugin{post.plugin(options...)}})
	th, err := eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	return eng, th
}

func duDeliver(t testing.TB, eng *engine.Engine) engine.OutboxReport {
	t.Helper()
	rep, err := eng.DeliverOutbox(t.Context())
	require.NoError(t, err)
	return rep
}

// Capability B7. Fault F05. An effect whose handler fails in whatever way stays in the
// outbox, and is delivered later under the same id and with the same payload, and with
// the state as it is then.
func TestOutboxKeepsWhatFailed(t *testing.T) {
	hung := make(chan struct{})
	defer close(hung)
	for name, fail := range map[string]func(ctx context.Context, text string) error{
		"error":   func(context.Context, string) error { return errors.New("no") },
		"panic":   func(context.Context, string) error { panic("no") },
		"goexit":  func(context.Context, string) error { runtime.Goexit(); return nil },
		"timeout": func(context.Context, string) error { <-hung; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			store, post := duNewStore(memstore.Options{}), &duPost{fail: fail}
			eng, th := duThread(t, store, post, effects.Timeout(time.Millisecond))
			_, err := th.Submit(t.Context(), "x", duSends("hello"))
			require.NoError(t, err)
			require.Equal(t, []string{"id/1/0"}, store.ids())
			post.fails(nil)
			_, err = th.Submit(t.Context(), "x", duSends())
			require.NoError(t, err)
			require.Equal(t, engine.OutboxReport{Delivered: 1}, duDeliver(t, eng))
			require.Zero(t, duDeliver(t, eng))
			require.Empty(t, store.ids())
			require.Equal(t, []string{"id/1/0 hello", "id/1/0 hello"}, post.mails())
			require.Equal(t, []int64{1, 1}, post.sent)
		})
	}
}

// Capability B7. What a run gives up on at its end, because the handler hangs, is left
// to the outbox, in either mode.
func TestOutboxKeepsWhatWasGivenUp(t *testing.T) {
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		synctest.Test(t, func(t *testing.T) {
			hung := make(chan struct{})
			store := duNewStore(memstore.Options{})
			post := &duPost{fail: func(context.Context, string) error { <-hung; return nil }}
			eng := duEngine(t, engine.Config{Journal: store, EffectMode: mode, Plugins: []engine.Plugin{
				post.plugin(), gaOn("mailer", phase.RunEnd, duEmits(duMail.New("a"), duMail.New("b"))),
			}})
			th, err := eng.NewThread("t")
			require.NoError(t, err)
			_, err = th.Run(t.Context(), gaAgent, engine.Prompt("go"))
			require.NoError(t, err)
			require.Len(t, store.ids(), 2)
			post.fails(nil)
			require.Equal(t, engine.OutboxReport{Delivered: 2}, duDeliver(t, eng))
			require.Empty(t, store.ids())
			close(hung)
		})
	}
}

// Capability B7. A process that ends after the commit and before the delivery: the next
// one delivers, with the state of the thread.
func TestOutboxAfterACrash(t *testing.T) {
	store, post := duNewStore(memstore.Options{}), &duPost{}
	crash := errors.New("the process ended")
	store.appends = func(engine.JournalCommit) error { return errors.Join(crash, engine.ErrJournalClosed) }
	_, th := duThread(t, store, post)
	_, err := th.Submit(t.Context(), "x", duSends("a", "b"))
	require.ErrorIs(t, err, crash)
	require.Empty(t, post.mails(), "nothing is delivered that was not acknowledged")
	store.appends = nil

	eng, again := duThread(t, store, post)
	require.EqualValues(t, 2, duSent.Get(again.Snapshot()))
	require.Equal(t, engine.OutboxReport{Delivered: 2}, duDeliver(t, eng))
	require.Equal(t, []string{"id/1/0 a", "id/1/1 b"}, post.mails())
	require.Equal(t, []int64{2, 2}, post.sent)
	require.Empty(t, store.ids())
}

// Capability B7. A process may end at any append, which may have landed or not. Every
// durable effect of a commit that is in the journal arrives at least once, always under
// the same id, and none of a commit that is not there.
func TestOutboxOverACrashAtEveryAppend(t *testing.T) {
	run := func(journal engine.Journal, post *duPost) {
		shop := newPeShop()
		shop.recovery = engine.Rerun
		c := shop.config(journal)
		c.NewID = func() string { return "id" }
		c.Plugins = append(c.Plugins, post.plugin())
		for p := range phase.All() {
			if p != phase.ToolGate {
				c.Plugins = append(c.Plugins, gaOn("mailer "+p.String(), p, duEmits(duPing.New("x"), duMail.New(p.String()))))
			}
		}
		eng := duEngine(t, c)
		if _, err := eng.DeliverOutbox(t.Context()); err != nil {
			return
		}
		th, err := eng.OpenThread(t.Context(), "t")
		if err != nil {
			return
		}
		res, err := th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
		if err != nil {
			if res, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two")); err != nil {
				return
			}
		}
		if res.Status == phase.Waiting {
			_, _ = th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
		}
		_, _ = eng.DeliverOutbox(t.Context())
	}
	for _, fault := range []faultstore.Fault{faultstore.Crash, faultstore.FailAfter, faultstore.FailBefore, faultstore.Delay} {
		for n := 1; ; n++ {
			inner, post := duNewStore(memstore.Options{}), &duPost{}
			broken, err := faultstore.New(inner, faultstore.Config{Seed: uint64(n), At: map[int]faultstore.Fault{n: fault}})
			require.NoError(t, err)
			run(broken, post)
			if broken.Counts().Faults[fault] == 0 {
				require.Greater(t, n, 20)
				break
			}
			broken.Flush(t.Context())
			for range 2 { // the next process finishes the run, and one more looks whether anything is left
				run(inner, post)
			}
			require.Empty(t, inner.ids(), "%v at append %d", fault, n)
			byID := map[string]string{}
			for _, m := range post.mails() {
				id, text, _ := strings.Cut(m, " ")
				if before, ok := byID[id]; ok {
					require.Equal(t, before, text, "%v at append %d", fault, n)
				}
				byID[id] = text
			}
			emitted := inner.emitted()
			for _, id := range emitted {
				require.Contains(t, byID, id, "lost: %v at append %d", fault, n)
			}
			for id := range byID {
				require.Contains(t, emitted, id, "delivered without its commit: %v at append %d", fault, n)
			}
		}
	}
}

// Capability B7. The delay between tries doubles, and after Limits.EffectTries an effect
// is dead.
func TestOutboxTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		store := duNewStore(memstore.Options{})
		post := &duPost{fail: func(context.Context, string) error { at = append(at, time.Since(start)); return errors.New("no") }}
		eng, th := duThread(t, store, post)
		_, err := th.Submit(t.Context(), "x", duSends("hello"))
		require.NoError(t, err)
		var total engine.OutboxReport
		for range 1000 {
			rep := duDeliver(t, eng)
			total.Failed, total.Dead = total.Failed+rep.Failed, total.Dead+rep.Dead
			time.Sleep(time.Second)
		}
		require.Equal(t, engine.OutboxReport{Failed: 7, Dead: 1}, total)
		require.Equal(t, []time.Duration{0, 0, 1, 3, 7, 15, 31, 63, 127}, func() (s []time.Duration) {
			for _, d := range at {
				s = append(s, d/time.Second)
			}
			return s
		}())
		dead, err := store.Dead(t.Context(), "effects", 10)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.ErrorContains(t, errors.New(dead[0].Error), "no")
	})
}

// Capability B7. Fault B35. An entry that this program cannot deliver does not stop the
// others: its effect has no handler any more, or a newer program wrote it, or its
// payload has another type now. It waits for a program that can.
func TestOutboxOfOtherPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, post := duNewStore(memstore.Options{}), &duPost{}
		entry := func(body string) engine.JournalEffect {
			return engine.JournalEffect{Lane: "effects", Body: []byte(body)}
		}
		_, err := store.Store.Append(t.Context(), engine.JournalCommit{ID: [16]byte{1}, Thread: "t", Effects: []engine.JournalEffect{
			entry(`` + "\x01" + `{"id":"r/1/0","effect":"gone","owner":"o","payload":1}`),
			entry(`` + "\x09" + `{"id":"r/1/1","effect":"mail","owner":"o","payload":"x"}`),
			entry(`` + "\x01" + `{"id":"r/1/2","effect":"mail","owner":"o","payload":7}`),
			entry(`` + "\x01" + `{"id":"","effect":"mail","owner":"o","payload":"x"}`),
			entry(`` + "\x01" + `{"id":"r/1/4","effect":"mail","owner":"o","payload":"x","more":1}`),
			entry(``),
			entry(`` + "\x01" + `{"id":"r/1/6","effect":"mail","owner":"o","payload":"good"}`),
		}})
		require.NoError(t, err)
		eng, _ := duThread(t, store, post)
		require.Equal(t, engine.OutboxReport{Delivered: 1, Failed: 6}, duDeliver(t, eng))
		require.Equal(t, []string{"r/1/6 good"}, post.mails())

		gone := effects.NewSpec[int]("gone", effects.Durable())
		var got int
		newer := duEngine(t, engine.Config{Journal: store, Plugins: []engine.Plugin{post.plugin(), gaPlugin("gone", func(r *engine.Registrar) {
			r.Effect(gone.Handle(func(_ context.Context, _ *state.Snapshot, n int) error { got = n; return nil }))
		})}})
		time.Sleep(time.Second)
		require.Equal(t, engine.OutboxReport{Delivered: 1, Failed: 5}, duDeliver(t, newer))
		require.Equal(t, 1, got)
	})
}

// A thread that is deleted takes its effects with it, also one that is being delivered.
func TestOutboxOfADeletedThread(t *testing.T) {
	store := duNewStore(memstore.Options{})
	post := &duPost{fail: func(context.Context, string) error { return errors.New("no") }}
	eng, th := duThread(t, store, post)
	_, err := th.Submit(t.Context(), "x", duSends("a", "b"))
	require.NoError(t, err)
	post.fail = func(ctx context.Context, _ string) error {
		return errors.Join(store.Delete(ctx, "t"), errors.New("no"))
	}
	require.Equal(t, engine.OutboxReport{Failed: 1}, duDeliver(t, eng))
	require.Zero(t, duDeliver(t, eng))
	require.Len(t, post.mails(), 3)
}

// Capability B7. While the run that emitted is at it, DeliverOutbox leaves its effects
// alone; a handler may even ask for it.
func TestOutboxLeavesARunItsEffects(t *testing.T) {
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		store := duNewStore(memstore.Options{})
		var eng *engine.Engine
		post := &duPost{}
		post.fail = func(ctx context.Context, _ string) error {
			rep, err := eng.DeliverOutbox(ctx)
			if rep != (engine.OutboxReport{}) {
				err = errors.New("it delivered")
			}
			return err
		}
		eng = duEngine(t, engine.Config{Journal: store, EffectMode: mode, Plugins: []engine.Plugin{
			post.plugin(), gaOn("mailer", phase.StepStart, duEmits(duMail.New("a"), duMail.New("b"))),
		}})
		th, err := eng.NewThread("t")
		require.NoError(t, err)
		gaRun(t, th)
		require.Len(t, post.mails(), 2)
		require.Empty(t, store.ids())
	}
}

// Capability B7. Engines that deliver at once lose nothing, and none delivers what
// another one has.
func TestOutboxOfSeveralEngines(t *testing.T) {
	store, post := duNewStore(memstore.Options{}), &duPost{}
	failing := &duPost{fail: func(context.Context, string) error { return errors.New("no") }}
	_, th := duThread(t, store, failing)
	for range 20 {
		_, err := th.Submit(t.Context(), "x", duSends("a", "b", "c"))
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var total int
	for range 4 {
		eng, _ := duThread(t, store, post)
		wg.Go(func() {
			rep, err := eng.DeliverOutbox(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				total += rep.Delivered
			}
		})
	}
	wg.Wait()
	require.Equal(t, 60, total)
	got := post.mails()
	slices.Sort(got)
	require.Len(t, slices.Compact(got), 60)
	require.Empty(t, store.ids())
}

// Capability B7. With several processes, an effect is left to the one that emitted it
// for Limits.OutboxDelay.
func TestOutboxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := duNewStore(memstore.Options{})
		store.caps.MultiProcess = true
		_, th := duThread(t, store, &duPost{fail: func(context.Context, string) error { return errors.New("no") }})
		_, err := th.Submit(t.Context(), "x", duSends("a"))
		require.NoError(t, err)
		other, _ := duThread(t, store, &duPost{})
		require.Zero(t, duDeliver(t, other))
		time.Sleep(time.Minute)
		require.Equal(t, engine.OutboxReport{Delivered: 1}, duDeliver(t, other))
	})
}
