package resilient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// slow is an answer of which each piece, and the end, takes d.
func slow(d time.Duration, a answer) answer {
	a.waits = d
	return a
}

func deaf(a answer) answer {
	a.deaf = true
	return a
}

// Fault B13. A model that hangs but heeds its context is stopped at the limit, one that does not is left behind a second
// later, and either is asked again and answers the next time.
func TestTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		layer  resilient.Timeout
		ways   []string
		answer answer
		after  time.Duration
		err    error
		text   string
	}{
		"a request":       {resilient.Timeout{Request: 5 * time.Second}, []string{"generate", "stream"}, slow(3*time.Second, says("a", "b")), 5 * time.Second, resilient.ErrTimeout, "a"},
		"a deaf one":      {resilient.Timeout{Request: 5 * time.Second}, []string{"generate"}, deaf(slow(time.Hour, says("a"))), 6 * time.Second, resilient.ErrTimeout, ""},
		"a deaf stream":   {resilient.Timeout{Request: 5 * time.Second}, []string{"stream"}, deaf(slow(3*time.Second, says("a", "b"))), 6 * time.Second, resilient.ErrTimeout, "a"},
		"in time":         {resilient.Timeout{Request: 10 * time.Second}, []string{"generate", "stream"}, slow(3*time.Second, says("a")), 9 * time.Second, nil, "a"},
		"stalled":         {resilient.Timeout{Stall: 2 * time.Second}, []string{"stream"}, slow(3*time.Second, says("a")), 2 * time.Second, resilient.ErrStalled, ""},
		"not stalled":     {resilient.Timeout{Stall: 4 * time.Second}, []string{"stream"}, slow(3*time.Second, says("a", "b")), 12 * time.Second, nil, "ab"},
		"no stream":       {resilient.Timeout{Stall: time.Second}, []string{"generate"}, slow(3*time.Second, says("a")), 9 * time.Second, nil, "a"},
		"late at first":   {resilient.Timeout{First: 4 * time.Second, Stall: 2 * time.Second}, []string{"stream"}, slow(3*time.Second, says("a", "b")), 5 * time.Second, resilient.ErrStalled, "a"},
		"too late":        {resilient.Timeout{First: 2 * time.Second, Stall: 5 * time.Second}, []string{"stream"}, slow(3*time.Second, says("a")), 2 * time.Second, resilient.ErrStalled, ""},
		"only at first":   {resilient.Timeout{First: 4 * time.Second}, []string{"stream"}, slow(3*time.Second, says("a")), 9 * time.Second, nil, "a"},
		"a deaf stall":    {resilient.Timeout{Stall: 2 * time.Second}, []string{"stream"}, deaf(slow(time.Hour, says("a"))), 3 * time.Second, resilient.ErrStalled, ""},
		"no limit at all": {resilient.Timeout{}, []string{"generate", "stream"}, slow(time.Hour, says("a")), 3 * time.Hour, nil, "a"},
	} {
		for _, way := range c.ways {
			synctest.Test(t, func(t *testing.T) {
				f, m := streaming(c.answer, says("again"))
				m = wrap(t, m, c.layer)
				start := time.Now()
				resp, err := ways[way](t.Context(), m, request("x"))
				require.Equal(t, c.after, time.Since(start), "%s, %s", name, way)
				require.ErrorIs(t, err, c.err, "%s, %s", name, way)
				require.Equal(t, c.text, resp.Message.Text, "%s, %s", name, way)
				if c.err != nil {
					partial := way == "stream" && c.text != ""
					require.Equal(t, &resilient.Failure{Class: resilient.Transient, Model: "m", Partial: partial, Err: c.err}, err, "%s, %s", name, way)
					require.NotErrorIs(t, err, context.Canceled, "it is not the caller who gave up")
				}
				resp, err = ways[way](t.Context(), m, request("x"))
				require.NoError(t, err)
				require.Equal(t, "again", resp.Message.Text)
				time.Sleep(24 * time.Hour)
				require.Zero(t, f.underWay(), "%s, %s", name, way)
			})
		}
	}
}

func TestASlowConsumerIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := streaming(slow(time.Second, says("a", "b", "c")))
		text := ""
		for c, err := range wrap(t, m, resilient.Timeout{Stall: 2 * time.Second}).(inference.Streamer).Stream(t.Context(), request("x")) {
			require.NoError(t, err)
			text += c.Text
			time.Sleep(time.Minute)
		}
		require.Equal(t, "abc", text)
	})
}

func TestTheUsageOfWhatTookTooLong(t *testing.T) {
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			_, m := streaming(slow(time.Second, says("a").paid(5).and(inference.Chunk{Text: "b"})))
			resp, err := ask(t.Context(), wrap(t, m, resilient.Timeout{Request: 3500 * time.Millisecond}), request("x"))
			require.ErrorIs(t, err, resilient.ErrTimeout)
			require.EqualValues(t, 5, resp.Usage.OutputTokens, way)
		})
	}
}

func TestAnEndOfTheContextIsNoTimeout(t *testing.T) {
	why := errors.New("the user went away")
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			_, m := streaming(deaf(slow(time.Hour, says("a"))))
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(why) })
			start := time.Now()
			_, err := ask(ctx, wrap(t, m, resilient.Timeout{Request: time.Minute}), request("x"))
			require.Equal(t, 2*time.Second, time.Since(start), way)
			require.ErrorIs(t, err, resilient.Cancelled, way)
			require.ErrorIs(t, err, why, way)
			require.ErrorIs(t, err, context.Canceled, way)
			require.NotErrorIs(t, err, resilient.ErrTimeout, way)
			time.Sleep(3 * time.Hour)
		})
	}
}

func TestAPanicOfWhoWasLeftBehindIsDropped(t *testing.T) {
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			f, m := streaming(deaf(slow(time.Hour, answer{panics: "too late"})))
			_, err := ask(t.Context(), wrap(t, m, resilient.Timeout{Request: time.Second}), request("x"))
			require.ErrorIs(t, err, resilient.ErrTimeout, way)
			time.Sleep(2 * time.Hour)
			require.Zero(t, f.underWay())
		})
	}
}

// TestWhatAModelDoesAtALimit has models do all sorts of things when their context ends, but return an error.
func TestWhatAModelDoesAtALimit(t *testing.T) {
	for name, c := range map[string]struct {
		last func(yield func(inference.Chunk, error) bool)
		want any // a panic
	}{
		"end":      {func(func(inference.Chunk, error) bool) {}, nil},
		"go on":    {func(yield func(inference.Chunk, error) bool) { yield(inference.Chunk{Text: "b"}, nil) }, nil},
		"panic":    {func(func(inference.Chunk, error) bool) { panic("at the limit") }, "at the limit"},
		"bad luck": {func(yield func(inference.Chunk, error) bool) { yield(inference.Chunk{}, broken) }, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := wrap(t, streamFunc(func(ctx context.Context, yield func(inference.Chunk, error) bool) {
				yield(inference.Chunk{Text: "a"}, nil)
				<-ctx.Done()
				c.last(yield)
			}), resilient.Timeout{Stall: time.Second})
			start := time.Now()
			defer func() {
				require.Equal(t, c.want, recover(), name)
				require.Equal(t, time.Second, time.Since(start), name)
			}()
			resp, err := collect(t.Context(), m, request("x"))
			require.ErrorIs(t, err, resilient.ErrStalled, name)
			require.NotErrorIs(t, err, broken, name)
			require.Equal(t, "a", resp.Message.Text, name)
		})
	}
}

// TestAConsumerLeavesADeafStream has the consumer leave while the stream is deaf to it.
func TestAConsumerLeavesADeafStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		m := streamFunc(func(_ context.Context, yield func(inference.Chunk, error) bool) {
			yield(inference.Chunk{Text: "a"}, nil)
			<-until
		})
		start := time.Now()
		for range wrap(t, m, resilient.Timeout{Stall: time.Minute}).(inference.Streamer).Stream(t.Context(), request("x")) {
			break
		}
		require.Equal(t, time.Second, time.Since(start))
		close(until)
	})
}
