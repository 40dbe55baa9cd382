package pushseq_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

// Every feed gets every value, in the one order of the numbers, and its own copy of it.
func TestGroupKeepsOneOrder(t *testing.T) {
	type value struct{ seq []uint64 }
	for _, buffer := range []int{0, 3, 1000} {
		group := pushseq.NewGroup(buffer, func(v value) value { return value{slices.Clone(v.seq)} })
		got := make([][]uint64, 3)
		for i := range got {
			group.Add(func(v value) {
				got[i] = append(got[i], v.seq[0])
				v.seq[0] = 0 // reaches nobody else
			}, 0)
		}
		var all sync.WaitGroup
		for p := range 4 {
			all.Go(func() {
				for i := range 100 {
					group.Push(p%2 == 0, func(seq uint64) value { return value{[]uint64{seq}} })
					if i%7 == 0 {
						group.Rouse()
					}
				}
			})
		}
		all.Wait()
		group.Shut()
		for i := range got {
			require.Len(t, got[i], 400)
			for n, seq := range got[i] {
				require.EqualValues(t, n+1, seq)
			}
		}
	}
}

func TestNoGroup(t *testing.T) {
	var group *pushseq.Group[int]
	group.Rouse()
	group.Shut()
	require.Nil(t, group)
}
