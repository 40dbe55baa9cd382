package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// BenchmarkSync is the yardstick: one write of 1 KiB and one sync.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "probe"))
	require.NoError(b, err)
	defer f.Close()
	block := make([]byte, 1024)
	for b.Loop() {
		_, err := f.Write(block)
		require.NoError(b, err)
		require.NoError(b, f.Sync())
	}
}

// BenchmarkAppend appends records of 1 KiB, each writer to its own thread.
func BenchmarkAppend(b *testing.B) {
	for _, effects := range []int{0, 2} {
		for _, writers := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("writers=%d/effects=%d", writers, effects), func(b *testing.B) {
				j := open(b, newPath(b), bolt.Options{})
				before := j.Transactions()
				var names atomic.Int64
				record := make([]byte, 1024)
				b.ReportAllocs()
				b.SetParallelism(max(1, writers/2))
				run := func(next func() bool) {
					c := engine.JournalCommit{Thread: fmt.Sprint("thread ", names.Add(1)), Record: record}
					for range effects {
						c.Effects = append(c.Effects, engine.JournalEffect{Lane: "mail", Body: record[:200]})
					}
					for next() {
						copy(c.ID[:], fmt.Sprint("id", c.Base))
						if _, err := j.Append(context.Background(), c); err != nil {
							b.Error(err)
							return
						}
						c.Base++
					}
				}
				if writers == 1 {
					run(b.Loop)
				} else {
					b.RunParallel(func(pb *testing.PB) { run(pb.Next) })
				}
				b.ReportMetric(float64(b.N)/float64(j.Transactions()-before), "commits/tx")
			})
		}
	}
}

// BenchmarkOpen opens a file of about 64 MiB, checked and trusted.
func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	j := open(b, path, bolt.Options{NoSync: true})
	c := engine.JournalCommit{Thread: "t", Record: make([]byte, 2048)}
	for range 20_000 {
		copy(c.ID[:], fmt.Sprint("id", c.Base))
		_, err := j.Append(context.Background(), c)
		require.NoError(b, err)
		c.Base++
	}
	require.NoError(b, j.Close())
	info, err := os.Stat(path)
	require.NoError(b, err)
	for _, trust := range []bool{false, true} {
		b.Run(fmt.Sprintf("trust=%v", trust), func(b *testing.B) {
			b.SetBytes(info.Size())
			for b.Loop() {
				j, err := bolt.Open(path, bolt.Options{TrustFile: trust})
				require.NoError(b, err)
				require.NoError(b, j.Close())
			}
		})
	}
}
