package resilient_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// TestUsageOfAnAttemptThatALimitEnds has layers under the limit, which tell what was spent before they tell the error.
func TestUsageOfAnAttemptThatALimitEnds(t *testing.T) {
	for name, limit := range map[string]resilient.Timeout{
		"request": {Request: time.Minute}, "stall": {Stall: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := streamFunc(func(ctx context.Context, yield func(inference.Chunk, error) bool) {
					yield(inference.Chunk{Text: "Once "}, nil)
					<-ctx.Done()
					yield(inference.Chunk{Usage: inference.Usage{OutputTokens: 3}}, ctx.Err())
				})
				m := wrap(t, slow, resilient.Retry{}, &resilient.Breaker{}, limit)
				got, err := collect(t.Context(), m, request("go"))
				require.ErrorIs(t, err, resilient.Transient)
				require.Equal(t, "Once ", got.Message.Text)
				require.EqualValues(t, 3, got.Usage.OutputTokens)
			})
		})
	}
}

// TestTextAfterALimitIsNone has a model that goes on talking: of what it says within the grace the usage counts.
func TestTextAfterALimitIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talker := streamFunc(func(ctx context.Context, yield func(inference.Chunk, error) bool) {
			for n := 0; n < 5 && yield(inference.Chunk{Text: "x", Usage: inference.Usage{OutputTokens: 1}}, nil); n++ {
				time.Sleep(400 * time.Millisecond)
			}
		})
		got, err := collect(t.Context(), wrap(t, talker, resilient.Timeout{Request: time.Second}), request("go"))
		require.ErrorIs(t, err, resilient.ErrTimeout)
		require.Equal(t, "xxx", got.Message.Text)
		require.EqualValues(t, 5, got.Usage.OutputTokens, "at 0, 400, 800 ms; and at 1200 and 1600")
	})
}

// TestPartialStays: whoever gives up after something was passed on says so, though the last attempt got to nothing.
func TestPartialStays(t *testing.T) {
	for _, how := range []resilient.How{resilient.Repeat, resilient.Prefill, resilient.Ask} {
		synctest.Test(t, func(t *testing.T) {
			busy := failure(resilient.Overloaded)
			busy.Status, busy.RetryAfter = 529, 7*time.Second
			_, m := streaming(breaks(io.ErrUnexpectedEOF, "Once "), answer{err: busy})
			m = wrap(t, m, resilient.Retry{Attempts: 2, Recovery: resilient.Recovery{How: how}})
			got, err := collect(t.Context(), m, request("go"))
			require.Equal(t, "Once ", got.Message.Text)
			var f *resilient.Failure
			require.ErrorAs(t, err, &f)
			require.True(t, f.Partial, err)
			require.Equal(t, []any{529, 7 * time.Second, resilient.Overloaded}, []any{f.Status, f.RetryAfter, f.Class})
			require.ErrorIs(t, err, busy)
			require.False(t, busy.Partial, "what was returned once is not changed")
		})
	}
}

// TestPartialAtTheEndOfTheContext: so does a limit, when the caller's own context ends.
func TestPartialAtTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		home := errors.New("went home")
		deaf := streamFunc(func(_ context.Context, yield func(inference.Chunk, error) bool) {
			yield(inference.Chunk{Text: "Once "}, nil)
			time.Sleep(time.Hour)
		})
		time.AfterFunc(time.Second, func() { cancel(home) })
		got, err := collect(ctx, wrap(t, deaf, resilient.Timeout{Stall: time.Minute}), request("go"))
		require.Equal(t, "Once ", got.Message.Text)
		var f *resilient.Failure
		require.ErrorAs(t, err, &f)
		require.True(t, f.Partial)
		require.Equal(t, "m", f.Model)
		require.ErrorIs(t, err, resilient.Cancelled)
		require.ErrorIs(t, err, home)
		time.Sleep(2 * time.Hour) // the model ends at last
	})
}

// TestPrefillJoinsWithoutASeam cuts and breaks one text at random places, white space among them, which services do
// not take at the end of what they are to go on with: all of it comes, once, and all of it is paid for once.
func TestPrefillJoinsWithoutASeam(t *testing.T) {
	const whole = "Once  upon\n\n a time,\tthere \u00a0 was:\n\n\n- a  list\n- of \u00e9\u4e16 words \n\nand no more."
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		for name, cutAs := range map[string]error{"continue": nil, "retry": io.ErrUnexpectedEOF} {
			spent := int64(0)
			model := modelFunc(func(req inference.Request) answer {
				said := ""
				if last := req.Messages[len(req.Messages)-1]; last.Role == inference.RoleAssistant {
					said = last.Text
				}
				require.Equal(t, strings.TrimRightFunc(said, unicode.IsSpace), said, "the service refuses this")
				rest := []rune(strings.TrimPrefix(whole, said))
				require.Less(t, len(rest), len([]rune(whole))+1)
				n := 1 + r.IntN(len(rest))
				if strings.TrimSpace(string(rest[:n])) == "" {
					n = len(rest) // an answer that adds nothing would end it
				}
				var a answer
				for from := 0; from < n; {
					to := from + 1 + r.IntN(n-from)
					a.chunks = append(a.chunks, inference.Chunk{Text: string(rest[from:to])})
					from = to
				}
				spent += int64(n)
				a = a.paid(int64(n))
				switch {
				case n == len(rest):
					return a.and(inference.Chunk{Stop: inference.StopEnd})
				case cutAs != nil:
					a.err = &resilient.Failure{Class: resilient.Transient, Err: cutAs}
					return a
				}
				return a.and(inference.Chunk{Stop: inference.StopMaxTokens})
			})
			var layer resilient.Layer = resilient.Continue{Times: 1000, Prefill: true}
			if cutAs != nil {
				layer = resilient.Retry{Attempts: 1000, Recovery: resilient.Recovery{How: resilient.Prefill},
					Sleep: func(context.Context, time.Duration) error { return nil }}
			}
			got, err := collect(t.Context(), wrap(t, model, layer), request("go"))
			require.NoError(t, err, name)
			require.Equal(t, whole, got.Message.Text, "%s %d", name, seed)
			require.Equal(t, inference.StopEnd, got.Stop, name)
			require.Equal(t, spent, got.Usage.OutputTokens, name)
		}
	}
}

// modelFunc is a model that makes its answers when it is asked.
type modelFunc func(inference.Request) answer

func (f modelFunc) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	return inference.Collect(f.Stream(ctx, r))
}

func (f modelFunc) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	one, _ := streaming(f(r))
	return one.Stream(ctx, r)
}

// TestProbesThatEndInManyWays has many ask a half-open breaker at once, again and again; whatever becomes of the
// probes, there are never more of them than allowed, as long as
// none takes longer than the breaker stays open, and the breaker is not stuck in the end.
func TestProbesThatEndInManyWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probing, most atomic.Int32
		down := atomic.Bool{}
		down.Store(true)
		model := streamFunc(func(ctx context.Context, yield func(inference.Chunk, error) bool) {
			most.Store(max(most.Load(), probing.Add(1)))
			defer probing.Add(-1)
			select {
			case <-time.After(time.Duration(1+rand.IntN(50)) * time.Second):
			case <-ctx.Done():
				yield(inference.Chunk{}, ctx.Err())
				return
			}
			switch {
			case down.Load() && rand.IntN(4) == 0:
				panic("down")
			case down.Load():
				yield(inference.Chunk{}, failure(resilient.Overloaded))
			default:
				yield(inference.Chunk{Text: "up"}, nil)
			}
		})
		b := &resilient.Breaker{Failures: 1, OpenFor: time.Minute, Probes: 2}
		m := wrap(t, model, resilient.Timeout{Request: time.Hour}, b)
		ask := func(patience time.Duration) {
			defer func() { _ = recover() }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, err := range m.(inference.Streamer).Stream(ctx, request("go")) {
				if err == nil && rand.IntN(2) == 0 {
					return // the consumer had enough
				}
			}
		}
		ask(time.Hour)
		require.Equal(t, resilient.Open, b.State())
		most.Store(0)
		for range 300 {
			time.Sleep(time.Duration(rand.IntN(40)) * time.Second)
			for range 5 {
				go ask(time.Duration(1+rand.IntN(120)) * time.Second)
			}
		}
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, most.Load(), int32(2))
		require.Zero(t, probing.Load())
		down.Store(false)
		ask(time.Hour)
		require.Equal(t, resilient.Closed, b.State())
	})
}
