package bench_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/btree"
	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// spawn is the baseline of every fan-out: n empty closures on an errgroup.
func spawn(n int) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var g errgroup.Group
			for range n {
				g.Go(func() error { return nil })
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// stepStart measures the StepStart phase of the given plugins on a fresh thread.
func stepStart(plugins ...engine.Plugin) func(*testing.B) {
	return phaseBench(phase.StepStart, plugins...)
}

func phaseBench(p phase.Phase, plugins ...engine.Plugin) func(*testing.B) {
	return func(b *testing.B) {
		err := bench.InRun(func(ctx context.Context, th *engine.Thread) error {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := th.RunPhase(ctx, bench.Spec, p); err != nil {
					return err
				}
			}
			return nil
		}, plugins...)
		require.NoError(b, err)
	}
}

func BenchmarkGather(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("hooks=%d/impl=errgroup", n), spawn(n))
		b.Run(fmt.Sprintf("hooks=%d/impl=fixpoint", n), stepStart(bench.OwnKeys(n)))
	}
}

func BenchmarkCommutative(b *testing.B) {
	for _, n := range []int{8, 64} {
		b.Run(fmt.Sprintf("hooks=%d/impl=errgroup", n), spawn(n))
		b.Run(fmt.Sprintf("hooks=%d/impl=fixpoint", n), stepStart(bench.Commutative(n)))
	}
}

// handStore is what one would write by hand instead of package state.
type handStore struct {
	mu  sync.Mutex
	cur btree.Map[string, int]
}

func (s *handStore) commit(key string, v int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.cur.Copy()
	next.Set(key, v)
	s.cur = *next
}

func (s *handStore) get(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.cur.Get(key)
	return v
}

// BenchmarkConflict is the detection of a conflict and the serial repeats, against
// the same by hand: run all, see that all wrote one key, run them one by one.
func BenchmarkConflict(b *testing.B) {
	const n = 8
	b.Run("hooks=8/impl=loop", func(b *testing.B) {
		s := &handStore{}
		b.ReportAllocs()
		for b.Loop() {
			keys := make([]string, n)
			var g errgroup.Group
			for i := range n {
				g.Go(func() error {
					_ = s.get("k") + 1
					keys[i] = "k"
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
			taken := map[string]bool{}
			for _, k := range keys {
				if taken[k] {
					s.commit(k, s.get(k)+1)
					continue
				}
				taken[k] = true
				s.commit(k, s.get(k)+1)
			}
		}
	})
	b.Run("hooks=8/impl=fixpoint", stepStart(bench.Conflict(n)))
}

// BenchmarkCascade is 16 rounds of one action each, against a loop of 16 commits.
func BenchmarkCascade(b *testing.B) {
	b.Run("rounds=16/impl=loop", func(b *testing.B) {
		s := &handStore{}
		b.ReportAllocs()
		for b.Loop() {
			queue := []int{16}
			for len(queue) > 0 {
				left := queue[0]
				queue = queue[1:]
				s.commit("k", s.get("k")+1)
				if left > 1 {
					queue = append(queue, left-1)
				}
			}
		}
	})
	b.Run("rounds=16/impl=fixpoint", stepStart(bench.Cascade(16)))
}

// BenchmarkQueue shows that n queued actions cost O(n log n): its baseline is
// itself at a tenth of the size.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("actions=%d/impl=fixpoint", n), stepStart(bench.Queue(n)))
	}
}
