package resilient_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

func TestBreaker(t *testing.T) {
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			var told []resilient.Change
			b := &resilient.Breaker{
				Failures: 2, OpenFor: time.Minute,
				Observe: func(_ context.Context, c resilient.Change) { told = append(told, c) },
			}
			f, m := streaming(
				breaks(broken), says("fine"), breaks(broken), breaks(broken), // three failures, but never two in a row before the last
				breaks(broken), says("fine"), breaks(broken), says("fine"))
			m = wrap(t, m, b)
			try := func(want error, state resilient.State) {
				t.Helper()
				_, err := ask(t.Context(), m, request("x"))
				require.ErrorIs(t, err, want, way)
				require.Equal(t, state, b.State(), way)
			}
			try(broken, resilient.Closed)
			try(nil, resilient.Closed)
			try(broken, resilient.Closed)
			try(broken, resilient.Open)

			time.Sleep(20 * time.Second)
			_, err := ask(t.Context(), m, request("x"))
			require.Equal(t, &resilient.Failure{Class: resilient.Transient, Model: "m", RetryAfter: 40 * time.Second, Err: resilient.ErrOpen}, err)
			require.Equal(t, 4, f.asked(), "%s: the model is left alone", way)

			time.Sleep(40 * time.Second)
			require.Equal(t, resilient.HalfOpen, b.State(), way)
			try(broken, resilient.Open)
			time.Sleep(time.Minute)
			try(nil, resilient.Closed)
			try(broken, resilient.Closed)
			try(nil, resilient.Closed)

			require.Equal(t, []resilient.Change{
				{Number: 1, From: resilient.Closed, To: resilient.Open, Err: broken},
				{Number: 2, From: resilient.Open, To: resilient.HalfOpen},
				{Number: 3, From: resilient.HalfOpen, To: resilient.Open, Err: broken},
				{Number: 4, From: resilient.Open, To: resilient.HalfOpen},
				{Number: 5, From: resilient.HalfOpen, To: resilient.Closed},
			}, told, way)
		})
	}
	require.Equal(t, "closed open half-open unknown",
		resilient.Closed.String()+" "+resilient.Open.String()+" "+resilient.HalfOpen.String()+" "+resilient.State(9).String())
}

func TestWhatABreakerCounts(t *testing.T) {
	opens := map[resilient.Class]bool{
		resilient.Unknown: true, resilient.Transient: true, resilient.RateLimited: true,
		resilient.Overloaded: true, resilient.Auth: true, resilient.Quota: true,
	}
	for class := resilient.Unknown; class <= resilient.Cancelled; class++ {
		b := &resilient.Breaker{Failures: 2}
		_, m := plain(breaks(broken), breaks(failure(class)), breaks(broken))
		m = wrap(t, m, b)
		for range 2 {
			_, err := m.Generate(t.Context(), request("x"))
			require.Error(t, err)
		}
		require.Equal(t, opens[class], b.State() == resilient.Open, "%v", class)
		_, _ = m.Generate(t.Context(), request("x"))
		cancelled := class == resilient.Cancelled // which says nothing, so that the others are in a row
		require.Equal(t, opens[class] || cancelled, b.State() == resilient.Open, "%v", class)
	}
}

func TestABreakerCountsPanics(t *testing.T) {
	for way, ask := range ways {
		b := &resilient.Breaker{Failures: 1}
		_, m := streaming(answer{panics: "boom"})
		require.Panics(t, func() { _, _ = ask(t.Context(), wrap(t, m, b), request("x")) })
		require.Equal(t, resilient.Open, b.State(), way)
	}
}

// TestABreakerUnderATimeout has the limits around the breaker: what they stop has failed, and nobody cancelled it.
func TestABreakerUnderATimeout(t *testing.T) {
	for _, layer := range []resilient.Timeout{{Request: time.Second}, {Stall: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			b := &resilient.Breaker{Failures: 1}
			_, m := streaming(slow(time.Minute, says("a")))
			_, err := collect(t.Context(), wrap(t, m, b, layer), request("x"))
			require.ErrorIs(t, err, resilient.Transient)
			require.Equal(t, resilient.Open, b.State())
		})
	}
}

// TestABreakerLeavesConsumersOut has consumers leave and panic: the model is not at fault.
func TestABreakerLeavesConsumersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &resilient.Breaker{Failures: 1, OpenFor: time.Minute}
		f, m := streaming(breaks(broken))
		m = wrap(t, m, b)
		for i, leave := range []func(){
			func() { panic("the consumer") },
			func() {},
		} {
			f.answers = append(f.answers, answer{chunks: []inference.Chunk{{Model: "m"}, {Text: "a"}}})
			walk := func() {
				defer func() { _ = recover() }()
				for range m.(inference.Streamer).Stream(t.Context(), request("x")) {
					leave()
					break
				}
			}
			if i == 0 {
				_, err := collect(t.Context(), m, request("x"))
				require.ErrorIs(t, err, broken)
				time.Sleep(time.Minute)
			}
			walk()
			require.Equal(t, resilient.HalfOpen, b.State(), "still, and ready for another probe")
		}
		f.answers = []answer{says("a", "b")}
		for range m.(inference.Streamer).Stream(t.Context(), request("x")) {
			break
		}
		require.Equal(t, resilient.Closed, b.State(), "it did say something")
	})
}

// TestABreakerProbes has many ask at once when the breaker is half-open: as many as are allowed pass.
func TestABreakerProbes(t *testing.T) {
	for _, probes := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := &resilient.Breaker{Failures: 1, OpenFor: time.Minute, Probes: probes}
			f, m := plain(breaks(broken))
			m = wrap(t, m, b)
			_, err := m.Generate(t.Context(), request("x"))
			require.ErrorIs(t, err, broken)
			time.Sleep(time.Minute)
			slow := says("fine")
			slow.waits = time.Second
			for range 50 {
				f.answers = append(f.answers, slow)
			}
			var refused, served sync.Map
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					_, err := m.Generate(t.Context(), request("x"))
					if errors.Is(err, resilient.ErrOpen) {
						refused.Store(i, true)
					} else if err == nil {
						served.Store(i, true)
					}
				})
			}
			all.Wait()
			want := max(probes, 1)
			require.Equal(t, 1+want, f.asked())
			require.Equal(t, 50-want, size(&refused))
			require.Equal(t, want, size(&served))
			require.Equal(t, resilient.Closed, b.State())
		})
	}
}

func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// TestABreakerForgetsWhatIsOutOfDate ends calls after the state has changed: they say nothing about the model now.
func TestABreakerForgetsWhatIsOutOfDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &resilient.Breaker{Failures: 1, OpenFor: time.Minute}
		late := breaks(broken)
		late.waits = 90 * time.Second
		lateFine := says("fine")
		lateFine.waits = 30 * time.Second
		f, m := plain(late)
		m = wrap(t, m, b)
		start := func() {
			go func() { _, _ = m.Generate(t.Context(), request("x")) }()
			synctest.Wait()
		}
		start()
		f.answers = []answer{lateFine}
		start()
		f.answers = []answer{breaks(broken)}
		start()
		require.Equal(t, resilient.Open, b.State())
		time.Sleep(30*time.Second + 1) // lateFine is there
		require.Equal(t, resilient.Open, b.State())
		time.Sleep(30 * time.Second)
		f.answers = []answer{says("fine")}
		start()
		require.Equal(t, resilient.Closed, b.State())
		time.Sleep(time.Minute) // late is there
		require.Zero(t, f.underWay())
		require.Equal(t, resilient.Closed, b.State())
	})
}

// Fault B38. The observers of a breaker and of a pool ask the model they are told about: no lock is held.
func TestObserversMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m inference.Model
		var states []resilient.State
		b := &resilient.Breaker{Failures: 1}
		b.Observe = func(ctx context.Context, c resilient.Change) {
			states = append(states, b.State())
			_, err := m.Generate(ctx, request("y"))
			require.ErrorIs(t, err, resilient.ErrOpen)
		}
		_, inner := plain(breaks(broken))
		m = wrap(t, inner, b)
		_, err := m.Generate(t.Context(), request("x"))
		require.ErrorIs(t, err, broken)
		require.Equal(t, []resilient.State{resilient.Open}, states)

		_, inner = plain(says("a"), says("b"))
		depth := 0
		m = pool(t, resilient.Pool{
			Members: []resilient.Member{{Name: "a", Model: inner}},
			Sticky:  func(context.Context, inference.Request) string { return "k" },
			Observe: func(ctx context.Context, _ resilient.Asked) {
				if depth++; depth == 1 {
					_, err := m.Generate(ctx, request("y"))
					require.NoError(t, err)
				}
			},
		})
		_, err = m.Generate(t.Context(), request("x"))
		require.NoError(t, err)
		require.Equal(t, 2, depth)
	})
}

// TestBreakerAgainstAModel draws outcomes and pauses, and compares with a few lines that say what is right.
func TestBreakerAgainstAModel(t *testing.T) {
	type step struct {
		Pause   uint8 // seconds before the call
		Outcome uint8
	}
	right := func(script []step, failures uint8) bool {
		now := noon
		b := &resilient.Breaker{Failures: int(failures%4) + 1, OpenFor: 100 * time.Second, Now: func() time.Time { return now }}
		outcome := error(nil)
		asked := false
		m := wrap(t, inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			asked = true
			return inference.Response{}, outcome
		}), b)

		inARow, openUntil, open := 0, time.Time{}, false
		for _, s := range script {
			now = now.Add(time.Duration(s.Pause) * time.Second)
			outcome, asked = [...]error{nil, broken, broken, failure(resilient.BadRequest), failure(resilient.Cancelled)}[s.Outcome%5], false
			_, err := m.Generate(t.Context(), request("x"))

			passes := !open || !now.Before(openUntil)
			if asked != passes || errors.Is(err, resilient.ErrOpen) == passes {
				return false
			}
			wasOpen := open
			switch {
			case !passes || s.Outcome%5 == 4:
			case s.Outcome%5 == 0 || s.Outcome%5 == 3:
				inARow, open = 0, false
			default:
				if inARow++; wasOpen || inARow == b.Failures {
					open, openUntil, inARow = true, now.Add(100*time.Second), 0
				}
			}
			want := resilient.Closed
			if open && now.Before(openUntil) {
				want = resilient.Open
			} else if open {
				want = resilient.HalfOpen
			}
			if b.State() != want {
				return false
			}
		}
		return true
	}
	require.NoError(t, quick.Check(right, &quick.Config{MaxCount: 1000}))
}
