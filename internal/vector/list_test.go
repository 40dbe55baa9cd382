package vector_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/vector"
)

func Example() {
	old := vector.List[int]{}.Append([]int{1, 2}, nil)
	next := old.Append([]int{3}, nil)
	for i, v := range next.Tail(2) {
		fmt.Println(i, v)
	}
	fmt.Println(old.Len(), next.Len())
	// Output:
	// 1 2
	// 2 3
	// 2 3
}

type list = vector.List[int]

func items(l list) []int {
	out := []int{}
	for i, v := range l.Tail(l.Len()) {
		if i != len(out) || l.At(i) != v {
			panic("the places are wrong")
		}
		out = append(out, v)
	}
	return out
}

// version is a list and what it must hold.
type version struct {
	l    list
	want []int
}

// play makes lists as data says, each from any one before, and compares all of them
// with their models at the end.
func play(t *testing.T, data []byte) {
	all := []version{{}}
	for i := 0; i+2 < len(data); i += 3 {
		op, arg, n := data[i], int(data[i+1]), int(data[i+2])
		from := all[len(all)-1]
		if op >= 192 {
			from = all[arg%len(all)] // a branch
		}
		more := make([]int, n%100)
		if op%4 != 0 {
			more = more[:min(len(more), n%4)]
		}
		for j := range more {
			more[j] = 1000*i + j
		}
		next := version{want: slices.Concat(from.want, more)}
		switch op % 3 {
		case 0:
			next.l = from.l.Append(more, nil)
			clear(more) // the list has its own
		case 1:
			next.l = from.l.Append(more, func(v int) int { return v + 1 })
			for j := range more {
				next.want[len(from.want)+j]++
			}
		case 2:
			next.l = from.l.Take(more)
		}
		old := all[arg%len(all)]
		if next.l.Extends(old.l) {
			require.Equal(t, append([]int{}, old.want...), append([]int{}, next.want[:len(old.want)]...))
		}
		require.True(t, next.l.Extends(list{}))
		all = append(all, next)
	}
	for i, v := range all {
		require.Equal(t, len(v.want), v.l.Len())
		require.Equal(t, append([]int{}, v.want...), items(v.l))
		n := i % (len(v.want) + 2)
		tail := []int{}
		for _, item := range v.l.Tail(n) {
			tail = append(tail, item)
		}
		require.Equal(t, append([]int{}, v.want[max(len(v.want)-n, 0):]...), tail)
	}
}

func TestListAgainstAModel(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 450)
		for i := range data {
			data[i] = byte(dice.Uint32())
		}
		play(t, data)
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte{0, 0, 99, 1, 0, 3, 2, 0, 2, 8, 0, 96, 192, 1, 2, 195, 0, 1, 194, 2, 3, 200, 3, 99})
	f.Fuzz(func(t *testing.T, data []byte) { play(t, data[:min(len(data), 600)]) })
}

// The tree of blocks grows a level at each power of the size.
func TestLongLists(t *testing.T) {
	const size = vector.Size
	for _, n := range []int{size, size * size, size * size * size, size * size * size * size} {
		numbers := make([]int, n+3*size)
		for i := range numbers {
			numbers[i] = i
		}
		l := list{}.Take(slices.Clone(numbers[:n-size]))
		for end := n - size; end < len(numbers); end++ {
			longer := l.Append(numbers[end:end+1], nil)
			require.Equal(t, -1, l.Append([]int{-1}, nil).At(end)) // a branch
			require.True(t, longer.Extends(l) || end%size != 0)
			l = longer
			for _, i := range []int{0, end / 2, end - end%size, end} {
				require.Equal(t, i, l.At(i))
			}
		}
		require.True(t, slices.Equal(numbers, items(l)))
	}
}

// Appending one by one copies a block now and then, and a list says so or is right.
func TestExtends(t *testing.T) {
	var l list
	known := 0
	for i := range 1000 {
		next := l.Append([]int{i}, nil)
		if next.Extends(l) {
			known++
		}
		require.False(t, l.Extends(next))
		l = next
	}
	require.Greater(t, known, 1000-vector.Size)
	require.False(t, list{}.Append([]int{1, 2, 3}, nil).Extends(list{}.Append([]int{1}, nil)), "of another origin")
}

func TestAtOutOfRange(t *testing.T) {
	l := list{}.Append([]int{1, 2, 3}, nil)
	for _, i := range []int{-1, 3, 31, 32} {
		require.Panics(t, func() { l.At(i) })
	}
	require.Panics(t, func() { list{}.At(0) })
	for range l.Tail(3) {
		break // may be left early
	}
	for range l.Tail(-1) {
		t.Fatal("there is nothing in it")
	}
}

// Several goroutines append to one list, beside readers.
func TestListsOfOneOriginAtOnce(t *testing.T) {
	origin := list{}.Append(make([]int, 40), nil)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			l, want := origin, make([]int, 40)
			for i := range 200 {
				l, want = l.Append([]int{g*1000 + i}, nil), append(want, g*1000+i)
			}
			if !slices.Equal(want, items(l)) {
				t.Error("a list has another's items")
			}
		})
	}
	wg.Wait()
	require.Equal(t, make([]int, 40), items(origin))
}

func TestBlocks(t *testing.T) {
	var none *vector.Block[int]
	b := none.Claim(0, 3)
	b.Items[0] = 7
	require.Same(t, b, b.Claim(1, 2), "nobody has the slot")
	other := b.Claim(1, 2)
	require.NotSame(t, b, other, "it is taken")
	require.Equal(t, 7, other.Items[0])
	require.Same(t, b, b.Claim(2, 3))
	require.Len(t, b.Claim(3, 4).Items, 6, "room for as many again")
	require.Len(t, b.Claim(3, 1000).Items, vector.Size)
}

// What is behind the end of a list is no part of it.
func TestParts(t *testing.T) {
	sum := func(l list) uint64 {
		parts, ok := vector.Parts(reflect.ValueOf(l))
		require.True(t, ok)
		var h maphash.Hash
		h.SetSeed(seed)
		for _, p := range parts {
			if p.CanInt() {
				maphash.WriteComparable(&h, p.Int())
			}
		}
		return h.Sum64()
	}
	for _, n := range []int{0, 1, 5, 32, 33, 70} {
		l := list{}.Append(make([]int, n), nil)
		before := sum(l)
		longer := l.Append([]int{9}, nil)
		require.Equal(t, before, sum(l))
		require.NotEqual(t, before, sum(longer))
	}
	_, ok := vector.Parts(reflect.ValueOf(struct{ list }{}))
	require.False(t, ok, "only has a list inside")
	parts, ok := vector.Parts(reflect.ValueOf(new(vector.Block[int])).Elem())
	require.True(t, ok)
	require.Len(t, parts, 1)
}

var seed = maphash.MakeSeed()
