package sorted_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/sorted"
)

func Example() {
	var old sorted.Map[string, int]
	one, two := 1, 2
	old.Set("a", &one)
	next := old.Derive()
	next.Set("b", &two)
	next.Set("a", &two)
	old.Diff(&next, func(k string, was, is *int) bool {
		fmt.Println(k, was != nil, *is)
		return true
	})
	fmt.Println(old.Len(), next.Len())
	// Output:
	// a true 2
	// b false 2
	// 1 2
}

// version is a map and what it must hold.
type version struct {
	m    sorted.Map[int, int]
	want map[int]*int
}

func (v *version) set(k int) {
	value := new(int)
	v.m.Set(k, value)
	v.want[k] = value
}

func (v *version) remove(k int) {
	v.m.Delete(k)
	delete(v.want, k)
}

func (v *version) check(t *testing.T, from int) {
	t.Helper()
	require.Equal(t, len(v.want), v.m.Len())
	keys := slices.Sorted(maps.Keys(v.want))
	var got, rest []int
	v.m.Each(func(k int, value *int) bool {
		got = append(got, k)
		require.Same(t, v.want[k], value)
		return true
	})
	require.Equal(t, keys, got)
	v.m.EachFrom(from, func(k int, value *int) bool {
		rest = append(rest, k)
		require.Same(t, v.want[k], value)
		return true
	})
	at, _ := slices.BinarySearch(keys, from)
	require.Equal(t, append([]int(nil), keys[at:]...), rest)
	for k := range 256 {
		require.True(t, v.want[k] == v.m.Get(k), "key %d", k)
	}
}

func (v *version) checkDiff(t *testing.T, later *version) {
	t.Helper()
	type change struct{ was, is *int }
	want, got := map[int]change{}, map[int]change{}
	for k, was := range v.want {
		if is := later.want[k]; was != is {
			want[k] = change{was, is}
		}
	}
	for k, is := range later.want {
		if was := v.want[k]; was != is {
			want[k] = change{was, is}
		}
	}
	last := math.MinInt
	require.True(t, v.m.Diff(&later.m, func(k int, was, is *int) bool {
		require.Greater(t, k, last)
		last, got[k] = k, change{was, is}
		return true
	}))
	require.Equal(t, want, got)
}

// play makes versions as data says, each from any one before, and compares all of them
// with their models at the end.
func play(t *testing.T, data []byte) {
	all := []version{{want: map[int]*int{}}}
	for i := 0; i+2 < len(data); i += 3 {
		op, arg, more := data[i], int(data[i+1]), int(data[i+2])
		from := &all[len(all)-1]
		if op >= 224 {
			from = &all[arg%len(all)] // a branch
		}
		next := version{from.m.Derive(), maps.Clone(from.want)}
		keys := slices.Sorted(maps.Keys(next.want))
		switch op % 6 {
		case 0:
			next.set(arg)
		case 1:
			for k := range more % 80 { // behind the others
				next.set(1000*i + k)
			}
		case 2:
			next.remove(arg)
			next.set(more)
		case 3:
			for _, k := range keys[:min(len(keys), more%80)] { // as from a queue
				next.remove(k)
			}
		case 4:
			for _, k := range keys {
				if (k+arg)%3 == 0 {
					next.remove(k)
				}
			}
		case 5:
			next.remove(more) // mostly not there
		}
		from.checkDiff(t, &next)
		all[more%len(all)].checkDiff(t, &next)
		all = append(all, next)
	}
	for i := range all {
		all[i].check(t, i*7%256)
	}
}

func TestMapAgainstAModel(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 450)
		for i := range data {
			data[i] = byte(dice.Uint32())
		}
		play(t, data)
	}
}

func FuzzMap(f *testing.F) {
	f.Add([]byte{1, 0, 79, 1, 0, 79, 3, 0, 60, 0, 3, 3, 4, 1, 1, 3, 2, 79, 3, 0, 79, 225, 1, 40, 5, 0, 9})
	f.Fuzz(func(t *testing.T, data []byte) { play(t, data[:min(len(data), 600)]) })
}

// A key without an order is nowhere, and looking for it harms nothing.
func TestUnorderedKeys(t *testing.T) {
	require.True(t, sorted.Unordered(math.NaN()))
	require.False(t, sorted.Unordered(""))
	for _, n := range []int{0, 3, 200} {
		var m sorted.Map[float64, int]
		for k := range n {
			m.Set(float64(k), new(int))
		}
		require.Nil(t, m.Get(math.NaN()))
		m.Delete(math.NaN())
		m.EachFrom(math.NaN(), func(k float64, _ *int) bool {
			t.Errorf("%v is not behind NaN", k)
			return true
		})
		require.Equal(t, n, m.Len())
	}
}

// Each of these may be left early, in the head and in the tree.
func TestWalksEndEarly(t *testing.T) {
	var none, m sorted.Map[int, int]
	for k := range 200 {
		m.Set(k, new(int))
	}
	for _, most := range []int{1, 5, 50, 199} {
		for name, walk := range map[string]func(func(int) bool){
			"each": func(yield func(int) bool) { m.Each(func(k int, _ *int) bool { return yield(k) }) },
			"from": func(yield func(int) bool) { m.EachFrom(1, func(k int, _ *int) bool { return yield(k) }) },
			"diff": func(yield func(int) bool) {
				require.False(t, none.Diff(&m, func(k int, _, _ *int) bool { return yield(k) }))
			},
		} {
			n := 0
			walk(func(int) bool { n++; return n < most })
			require.Equal(t, most, n, name)
		}
	}
}

// Several goroutines derive from one map and change what they got, beside readers.
func TestMapsOfOneOriginAtOnce(t *testing.T) {
	origin := version{want: map[int]*int{}}
	for k := range 200 {
		origin.set(k)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			own := version{origin.m.Derive(), maps.Clone(origin.want)}
			for i := range 190 {
				own = version{own.m.Derive(), own.want}
				own.remove(i)
				own.set(1000*(g+1) + i)
			}
			own.check(t, 195)
		})
	}
	wg.Wait()
	origin.check(t, 100)
}
