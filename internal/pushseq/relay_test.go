package pushseq_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

// pass puts values as their owner would, one after the other.
func pass(r *pushseq.Relay[int], values ...int) {
	for _, v := range values {
		if r.Put(v) {
			r.Drain()
		}
	}
}

func TestRelay(t *testing.T) {
	require.False(t, (*pushseq.Relay[int])(nil).Heard())
	r := pushseq.NewRelay(func(v int, what string) { t.Errorf("%d: %s", v, what) })
	require.False(t, r.Heard())
	require.False(t, r.Put(1), "nobody listens")
	var a, b []int
	cancel := r.Subscribe(func(v int) {
		a = append(a, v)
		if v == 2 {
			pass(r, 3) // comes after this one
			require.Equal(t, []int{2}, a)
		}
	})
	r.Subscribe(func(v int) { b = append(b, v) })
	require.True(t, r.Heard())
	pass(r, 2, 4)
	cancel()
	cancel()
	pass(r, 5)
	require.Equal(t, []int{2, 3, 4}, a)
	require.Equal(t, []int{2, 3, 4, 5}, b)
}

func TestRelayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pushseq.NewRelay(func(v int, what string) { t.Errorf("%d: %s", v, what) })
		seen := map[int]int{}
		var lasts [4]int
		r.Subscribe(func(v int) { // one call at a time
			seen[v]++
			require.Less(t, lasts[v%4], v+4, "in order")
			lasts[v%4] = v + 4
		})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 1000 {
					pass(r, 4*i+g)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Len(t, seen, 4000)
	})
}

// A function that panics or ends the goroutine is told of, and the others get all.
func TestRelayOfFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var faults []string
		r := pushseq.NewRelay(func(v int, what string) {
			faults = append(faults, strings.Split(what, "\n")[0])
			panic("the one who is told, too")
		})
		r.Subscribe(func(v int) {
			switch v {
			case 1:
				panic("one")
			case 2:
				runtime.Goexit()
			}
		})
		var got []int
		r.Subscribe(func(v int) { got = append(got, v) })
		go pass(r, 1, 2)
		synctest.Wait()
		pass(r, 3)
		require.Equal(t, []int{1, 2, 3}, got)
		require.Equal(t, []string{"panicked: one", "ended its goroutine"}, faults)
	})
}

// Who drains does not deliver for others without end.
func TestRelayLeavesMuchToAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pushseq.NewRelay(func(v int, what string) { t.Errorf("%d: %s", v, what) })
		hang, n := make(chan struct{}), 0
		r.Subscribe(func(int) {
			if n++; n == 900 {
				<-hang
			}
		})
		first := r.Put(0)
		for v := range 999 {
			require.False(t, r.Put(v), "the first one drains")
		}
		require.True(t, first)
		r.Drain()
		synctest.Wait()
		require.Equal(t, 900, n)
		close(hang)
		synctest.Wait()
		require.Equal(t, 1000, n)
	})
}

func TestPile(t *testing.T) {
	var p pushseq.Pile[int]
	require.Empty(t, p.Take())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				p.Add(i)
			}
		})
	}
	wg.Wait()
	require.Len(t, p.Take(), 400)
	p.Add(1)
	p.Add(2)
	require.Equal(t, []int{1, 2}, p.Take())
	require.Empty(t, p.Take())
}
