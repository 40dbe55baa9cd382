package pushseq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

var causes = pushseq.LineCauses{
	Full: errors.New("full"), Shut: errors.New("shut"), GivenUp: errors.New("given up"), Inside: errors.New("inside"),
}

// trade is the work of a line of numbers, in ascending order.
type trade struct {
	do   func(ctx context.Context, v int)
	told []string
}

func (w *trade) Do(ctx context.Context, v int) string {
	if w.do != nil {
		w.do(ctx, v)
	}
	return fmt.Sprint(v)
}
func (w *trade) After(a, b int) bool               { return a > b }
func (w *trade) Refused(v int, cause error) string { return fmt.Sprint(v, " ", cause) }
func (w *trade) Late(r string) string              { return r + " late" }
func (w *trade) Tell(r string) {
	w.told = append(w.told, r)
	if r == "13" {
		runtime.Goexit()
	}
	if r == "14" {
		panic(r)
	}
}

func TestLine(t *testing.T) {
	w := &trade{}
	l := &pushseq.Line[int, string]{Work: w, Limit: 3, Causes: &causes}
	w.do = func(ctx context.Context, v int) {
		if v == 1 {
			require.Equal(t, []string{"7 full"}, l.Put(ctx, []int{5, 2, 3, 7}), "the others are worked on by the outer call")
			_, err := l.Drain(ctx, false)
			require.Equal(t, causes.Inside, err)
		}
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, l.Put(t.Context(), []int{4, 1}))
	require.Equal(t, []string{"7 full", "1", "2", "3", "4", "5"}, w.told)

	left, err := l.Drain(t.Context(), true)
	require.Zero(t, left)
	require.NoError(t, err)
	require.Equal(t, []string{"6 shut"}, l.Put(t.Context(), []int{6}))
}

func TestLineBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &trade{}
		l := &pushseq.Line[int, string]{Work: w, Beside: true, Limit: 3, Causes: &causes}
		require.Equal(t, []string{"15 full"}, l.Put(t.Context(), []int{14, 13, 12, 15}))
		left, err := l.Drain(t.Context(), false)
		require.Zero(t, left)
		require.NoError(t, err)
		require.Equal(t, []string{"15 full", "12", "13", "14"}, w.told, "whatever Tell does, the line goes on")
	})
}

func TestLineGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ended := &trade{}, make(chan error, 1)
		l := &pushseq.Line[int, string]{Work: w, Limit: 3, Causes: &causes}
		w.do = func(ctx context.Context, _ int) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
		}
		out := make(chan []string, 1)
		go func() { out <- l.Put(t.Context(), []int{1, 2}) }()
		synctest.Wait()

		over, cancel := context.WithCancel(t.Context())
		cancel()
		left, err := l.Drain(over, true)
		require.Equal(t, 2, left)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"1 given up", "2 given up"}, w.told)
		require.Equal(t, causes.GivenUp, <-ended)
		require.Equal(t, []string{"1 late"}, <-out)
		require.Equal(t, []string{"3 shut"}, l.Put(t.Context(), []int{3}))
	})
}
