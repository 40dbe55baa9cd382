package effects_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/state"
)

// act is an effect whose payload is the name of what its handler shall do, so that one test can script many handlers.
var act = effects.NewSpec[string]("act")

type script map[string]func(ctx context.Context) error

// log collects lines from any goroutine.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func (l *log) report(o effects.Outcome) { l.add("%s", summary(o)) }

// summary is an outcome in a word or two.
func summary(o effects.Outcome) string {
	var panicked *effects.PanicError
	var failed *effects.HandlerError
	what := "ok"
	switch {
	case errors.Is(o.Err, effects.ErrTimeout):
		what = "timeout"
	case errors.Is(o.Err, effects.ErrOverflow):
		what = "overflow"
	case errors.Is(o.Err, effects.ErrClosed):
		what = "closed"
	case errors.Is(o.Err, effects.ErrUndelivered):
		what = "undelivered"
	case errors.As(o.Err, &panicked):
		what = "panic"
	case errors.As(o.Err, &failed):
		what = "error"
	case o.Err != nil:
		what = "refused"
	}
	return strings.TrimPrefix(o.ID.String(), "run/") + " " + what
}

func summaries(outcomes []effects.Outcome) []string {
	var out []string
	for _, o := range outcomes {
		out = append(out, summary(o))
	}
	return out
}

func scripted(t testing.TB, c effects.Config, s script, opts ...effects.HandlerOption) *effects.Dispatcher {
	t.Helper()
	h := table(t, effects.Registered{Plugin: "actor", Handler: act.Handle(func(ctx context.Context, _ *state.Snapshot, what string) error {
		if do := s[what]; do != nil {
			return do(ctx)
		}
		return nil
	}, opts...)})
	d, err := effects.NewDispatcher(h, c)
	require.NoError(t, err)
	return d
}

// deliveries makes one commit's effects.
func deliveries(revision uint64, acts ...string) []effects.Delivery {
	var out []effects.Delivery
	for i, a := range acts {
		out = append(out, effects.Delivery{ID: effects.ID{Run: "run", Revision: revision, Index: i}, Effect: act.New(a), Owner: "emitter"})
	}
	return out
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []effects.Config{{Mode: 7}, {Queue: -1}, {Timeout: -1}} {
		_, err := effects.NewDispatcher(nil, c)
		require.ErrorIs(t, err, effects.ErrBadConfig)
	}
	require.Equal(t, "inline background Mode(7)", fmt.Sprint(effects.Inline, effects.Background, effects.Mode(7)))
	d, err := effects.NewDispatcher(nil, effects.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, d.Check(act.New("x")), effects.ErrUnknownEffect)
	require.Nil(t, d.Deliver(t.Context(), nil))
}

// Fault F05. Every failure is an outcome that names effect, plugin and id, and the effects after it are delivered.
func TestEveryFaultHasAnOutcome(t *testing.T) {
	boom := errors.New("boom")
	var reports log
	d := scripted(t, effects.Config{Report: reports.report}, script{
		"fail":          func(context.Context) error { return boom },
		"panic":         func(context.Context) error { panic(boom) },
		"exit":          func(context.Context) error { runtime.Goexit(); return nil },
		"borrowed":      func(context.Context) error { return &effects.PanicError{Effect: "someone else's", Value: 1} },
		"runtime panic": func(context.Context) error { clear([]int(nil)[:one()]); return nil },
	})
	batch := deliveries(4, "fine", "fail", "panic", "exit", "borrowed", "runtime panic")
	batch = append(batch, effects.Delivery{ID: effects.ID{Run: "run", Revision: 4, Index: 6}, Effect: notes.New(note{}), Owner: "emitter"})
	batch = append(batch, deliveries(5, "fine")...)

	got := d.Deliver(t.Context(), batch)
	want := []string{"4/0 ok", "4/1 error", "4/2 panic", "4/3 panic", "4/4 panic", "4/5 panic", "4/6 refused", "5/0 ok"}
	require.Equal(t, want, summaries(got))
	require.Equal(t, want, reports.all())
	for _, o := range got {
		require.Equal(t, "emitter", o.Owner)
	}
	require.Equal(t, "actor", got[0].Handler)
	require.Equal(t, "act", got[0].Name)
	require.ErrorIs(t, got[6].Err, effects.ErrUnknownEffect)
	require.Empty(t, got[6].Handler)

	var he *effects.HandlerError
	require.ErrorAs(t, got[1].Err, &he)
	require.Equal(t, effects.HandlerError{ID: batch[1].ID, Plugin: "actor", Effect: "act", Err: boom}, *he)
	require.EqualError(t, he, `effects: plugin "actor" failed to handle effect "act" (run/4/1): boom`)

	var pe *effects.PanicError
	require.ErrorAs(t, got[2].Err, &pe)
	require.Equal(t, batch[2].ID, pe.ID)
	require.ErrorIs(t, pe, boom)
	require.Contains(t, string(pe.Stack), "dispatcher_test.go")
	require.ErrorContains(t, pe, `plugin "actor" panicked on effect "act" (run/4/2): boom`)

	require.ErrorAs(t, got[3].Err, &pe)
	require.Nil(t, pe.Value)
	require.NoError(t, errors.Unwrap(pe))
	require.ErrorContains(t, pe, "ended its goroutine")

	require.ErrorAs(t, got[4].Err, &he, "a returned PanicError is not this handler's panic")
}

func TestHandlerContext(t *testing.T) {
	type key struct{}
	var id effects.ID
	var known bool
	var value any
	var ended error
	d := scripted(t, effects.Config{}, script{"look": func(ctx context.Context) error {
		id, known = effects.IDFrom(ctx)
		value, ended = ctx.Value(key{}), ctx.Err()
		return nil
	}})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	cancel()
	require.Equal(t, []string{"7/0 ok"}, summaries(d.Deliver(ctx, deliveries(7, "look"))))
	require.True(t, known)
	require.Equal(t, effects.ID{Run: "run", Revision: 7}, id)
	require.Equal(t, "v", value)
	require.NoError(t, ended, "the commit happened, so its effects go out even if the run is cancelled")
}

// Fault F08. Fault F06. Effects of a handler's own commits go behind the one it handles and before those of later commits, and the
// call that was at work returns them all.
func TestReentrantDeliveryKeepsCommitOrder(t *testing.T) {
	var order, reports log
	var d *effects.Dispatcher
	var nested []effects.Outcome
	d = scripted(t, effects.Config{Report: reports.report}, script{
		"first": func(ctx context.Context) error {
			order.add("first begins")
			nested = d.Deliver(ctx, deliveries(2, "second", "second"))
			order.add("first ends")
			return nil
		},
		"second": func(ctx context.Context) error { order.add("second"); return nil },
		"third":  func(ctx context.Context) error { order.add("third"); return nil },
	})
	batch := append(deliveries(1, "first"), deliveries(3, "third")...)
	got := d.Deliver(t.Context(), batch)
	require.Nil(t, nested)
	require.Equal(t, []string{"first begins", "first ends", "second", "second", "third"}, order.all())
	want := []string{"1/0 ok", "2/0 ok", "2/1 ok", "3/0 ok"}
	require.Equal(t, want, summaries(got))
	require.Equal(t, want, reports.all())
}

func TestDeliverSortsOneCallByCommit(t *testing.T) {
	d := scripted(t, effects.Config{}, nil)
	batch := append(deliveries(3, "a", "a"), deliveries(2, "a", "a")...)
	batch[2], batch[3] = batch[3], batch[2]
	batch = append(batch, effects.Delivery{ID: effects.ID{Run: "other"}, Effect: act.New("a")})
	require.Equal(t, []string{"2/0 ok", "2/1 ok", "3/0 ok", "3/1 ok", "other/0/0 ok"}, summaries(d.Deliver(t.Context(), batch)))
}

func TestHandlerThatFeedsItselfComesToAnEnd(t *testing.T) {
	var d *effects.Dispatcher
	var refused []string
	revision := uint64(1)
	d = scripted(t, effects.Config{Queue: 5}, script{"again": func(ctx context.Context) error {
		revision++
		refused = append(refused, summaries(d.Deliver(ctx, deliveries(revision, "again")))...)
		return nil
	}})
	got := summaries(d.Deliver(t.Context(), deliveries(1, "again")))
	require.Equal(t, []string{"1/0 ok", "2/0 ok", "3/0 ok", "4/0 ok", "5/0 ok", "6/0 ok"}, got)
	require.Equal(t, []string{"7/0 overflow"}, refused)

	require.Len(t, d.Deliver(t.Context(), deliveries(100, make([]string, 50)...)), 50, "the bound is on what handlers add")
}

// Fault B38. A slow handler does not make another goroutine wait.
func TestDeliverBehindASlowHandlerReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(t, effects.Config{}, script{"slow": func(context.Context) error { time.Sleep(time.Second); return nil }})
		var first []effects.Outcome
		var wg sync.WaitGroup
		wg.Go(func() { first = d.Deliver(t.Context(), deliveries(1, "slow")) })
		synctest.Wait()

		start := time.Now()
		require.Nil(t, d.Deliver(t.Context(), deliveries(2, "quick")))
		require.NoError(t, d.Check(act.New("x")))
		require.Zero(t, time.Since(start))
		require.NoError(t, d.Drain(t.Context()))
		require.Equal(t, time.Second, time.Since(start))
		wg.Wait()
		require.Equal(t, []string{"1/0 ok", "2/0 ok"}, summaries(first))
	})
}

func TestTimeout(t *testing.T) {
	steps := func(release chan struct{}) script {
		return script{
			"deaf":    func(context.Context) error { <-release; return nil },
			"listens": func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("gave up: %w", ctx.Err()) },
			"late ok": func(ctx context.Context) error { <-ctx.Done(); <-release; return nil },
			"quick":   func(context.Context) error { time.Sleep(time.Second); return nil },
			"slow":    func(context.Context) error { time.Sleep(time.Hour); return nil },
		}
	}
	acts := deliveries(1, "deaf", "listens", "late ok", "quick")

	cases := map[string]struct {
		config effects.Config
		opts   []effects.HandlerOption
		want   []string
		took   time.Duration
	}{
		"default of the dispatcher": {effects.Config{Timeout: 2 * time.Second}, nil,
			[]string{"1/0 timeout", "1/1 timeout", "1/2 timeout", "1/3 ok"}, 7 * time.Second},
		"the handler's own": {effects.Config{Timeout: time.Millisecond}, []effects.HandlerOption{effects.Timeout(3 * time.Second)},
			[]string{"1/0 timeout", "1/1 timeout", "1/2 timeout", "1/3 ok"}, 10 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				d := scripted(t, c.config, steps(release), c.opts...)
				start := time.Now()
				got := d.Deliver(t.Context(), acts)
				require.Equal(t, c.want, summaries(got))
				require.Equal(t, c.took, time.Since(start), "nobody waits for a handler past its time")
				require.Equal(t, time.Second, got[3].Duration)
				var he *effects.HandlerError
				require.ErrorAs(t, got[0].Err, &he)
				require.Equal(t, "actor", he.Plugin)
			})
		})
	}

	t.Run("none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := scripted(t, effects.Config{Timeout: time.Second}, steps(nil), effects.Timeout(0))
			require.Equal(t, []string{"1/0 ok"}, summaries(d.Deliver(t.Context(), deliveries(1, "slow"))))
		})
	})
}

func TestPanicWithinTheTimeIsStillAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(t, effects.Config{}, script{"x": func(ctx context.Context) error {
			time.Sleep(time.Second)
			panic("late")
		}}, effects.Timeout(2*time.Second))
		require.Equal(t, []string{"1/0 panic"}, summaries(d.Deliver(t.Context(), deliveries(1, "x"))))
	})
}

// Whatever Report does, every effect is delivered and reported once.
func TestReportMayMisbehave(t *testing.T) {
	for name, do := range map[string]func(){
		"panic":  func() { panic("report") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reports log
				d := scripted(t, effects.Config{Report: func(o effects.Outcome) { reports.report(o); do() }}, nil)
				var wg sync.WaitGroup
				wg.Go(func() { d.Deliver(t.Context(), deliveries(1, "a", "b", "c")) })
				wg.Wait()
				synctest.Wait()
				require.NoError(t, d.Drain(t.Context()))
				require.Equal(t, []string{"1/0 ok", "1/1 ok", "1/2 ok"}, reports.all())
			})
		})
	}
}

func TestClock(t *testing.T) {
	now := time.Unix(0, 0)
	d := scripted(t, effects.Config{Now: func() time.Time { now = now.Add(time.Minute); return now }}, nil)
	require.Equal(t, time.Minute, d.Deliver(t.Context(), deliveries(1, "a"))[0].Duration)
}

// one is a length that the compiler does not know.
func one() int { return len("x") }
