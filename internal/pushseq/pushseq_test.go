package pushseq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

func ExampleOf() {
	work := func(_ context.Context, push func(string)) error {
		push("a")
		push("b")
		return errors.New("no more")
	}
	for v, err := range pushseq.Of(context.Background(), work, pushseq.Causes{}) {
		fmt.Printf("%q %v\n", v, err)
	}
	// Output:
	// "a" <nil>
	// "b" <nil>
	// "" no more
}

func TestTap(t *testing.T) {
	work := func(_ context.Context, push func(int)) error {
		for i := range 3 {
			push(i)
		}
		return nil
	}
	for stopAt := range 4 {
		seen, got := []int{}, []int{}
		tap := pushseq.NewTap(func(v int) { seen = append(seen, v) })
		for v := range tap.On(pushseq.Of(t.Context(), work, pushseq.Causes{})) {
			got = append(got, v)
			if v == stopAt {
				tap.Shut()
			}
		}
		require.Equal(t, []int{0, 1, 2}[:min(stopAt+1, 3)], got)
		require.Equal(t, got, seen)
	}
	require.Nil(t, pushseq.NewTap(func(int) {}).On(nil))
}

func TestLeavingTheLoopStopsTheWork(t *testing.T) {
	broken := errors.New("broken")
	for stopAt := range 3 {
		var cause error
		ended := false
		work := func(ctx context.Context, push func(int)) error {
			defer func() { ended = true }()
			for i := 0; ctx.Err() == nil; i++ {
				push(i)
			}
			cause = context.Cause(ctx)
			return ctx.Err()
		}
		seen := 0
		for v, err := range pushseq.Of(t.Context(), work, pushseq.Causes{Broken: broken}) {
			require.NoError(t, err)
			require.Equal(t, seen, v)
			if v == stopAt {
				break
			}
			seen++
		}
		require.True(t, ended, "the loop ends after the work")
		require.ErrorIs(t, cause, broken)
	}
}

func TestWorkThatEndsItsGoroutine(t *testing.T) {
	exited := errors.New("exited")
	var list []error
	for _, err := range pushseq.Of(t.Context(), func(_ context.Context, push func(int)) error {
		push(1)
		runtime.Goexit()
		return nil
	}, pushseq.Causes{Exited: exited}) {
		list = append(list, err)
	}
	require.Equal(t, []error{nil, exited}, list)
}

func TestSequenceCanBeRangedOverAgain(t *testing.T) {
	seq := pushseq.Of(t.Context(), func(_ context.Context, push func(int)) error { push(1); return nil }, pushseq.Causes{})
	for range 2 {
		n := 0
		for range seq {
			n++
		}
		require.Equal(t, 1, n)
	}
}
