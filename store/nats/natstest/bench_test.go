package natstest_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
)

func BenchmarkAppend(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		servers := natstest.Start(b, replicas)
		for _, writers := range []int{1, 16, 64} {
			for _, effects := range []int{0, 2} {
				b.Run(fmt.Sprintf("replicas=%d/writers=%d/effects=%d", replicas, writers, effects), func(b *testing.B) {
					j := open(b, servers, nats.Options{Stream: newStream(), Replicas: replicas, AssumeSynced: true})
					appendAll(b, j, writers, effects)
				})
			}
		}
	}
}

// appendAll appends b.N records of 1 KiB, each writer to a thread of its own.
func appendAll(b *testing.B, j *nats.Journal, writers, effects int) {
	record := make([]byte, 1024)
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ResetTimer()
	for n := range writers {
		group.Go(func() {
			for base := uint64(0); left.Add(-1) >= 0; base++ {
				c := store.Commit{ID: [16]byte{1, byte(base), byte(base >> 8), byte(base >> 16)}, Thread: fmt.Sprint("t", n), Base: base, Record: record}
				if base%50 == 49 {
					c.Snapshot = record
				}
				for range effects {
					c.Effects = append(c.Effects, store.Effect{Lane: "run", Body: record[:100]})
				}
				if _, err := j.Append(b.Context(), c); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// One worker claims and settles effects while many wait in the same lane.
func BenchmarkClaim(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		servers := natstest.Start(b, replicas)
		for _, queued := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("replicas=%d/queued=%d", replicas, queued), func(b *testing.B) {
				o := nats.Options{Stream: newStream(), Replicas: replicas, AssumeSynced: true}
				j := open(b, servers, o)
				fill(b, j, queued)
				began := time.Now()
				ctx := context.Background()
				_, err := j.Depth(ctx, "run")
				require.NoError(b, err)
				b.ReportMetric(time.Since(began).Seconds(), "s-to-index")
				b.ResetTimer()
				for done := 0; done < b.N; {
					claims, err := j.Claim(ctx, "run", "w", 32, time.Minute)
					require.NoError(b, err)
					if len(claims) == 0 {
						b.StopTimer()
						fill(b, j, queued)
						b.StartTimer()
					}
					done += len(claims)
					var group sync.WaitGroup
					for _, c := range claims {
						group.Go(func() {
							if err := j.Settle(ctx, c, store.Settlement{}); err != nil {
								b.Error(err)
							}
						})
					}
					group.Wait()
				}
			})
		}
	}
}

var fills atomic.Int64

// fill emits n effects of many threads.
func fill(b *testing.B, j *nats.Journal, n int) {
	b.Helper()
	const each = 500
	fill := fills.Add(1)
	for at := 0; at < n; at += each {
		c := store.Commit{Thread: fmt.Sprintf("f%d-%d", fill, at)}
		for range min(each, n-at) {
			c.Effects = append(c.Effects, store.Effect{Lane: "run", Body: make([]byte, 100)})
		}
		_, err := j.Append(b.Context(), c)
		require.NoError(b, err)
	}
}
