package state_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

func TestListAgainstASlice(t *testing.T) {
	var l state.List[int]
	var want []int
	var kept []state.List[int]
	for i := range 300 {
		kept = append(kept, l)
		more := make([]int, i%7)
		for j := range more {
			more[j] = i*10 + j
		}
		l, want = l.Append(more...), append(want, more...)
		require.Equal(t, len(want), l.Len())
	}
	require.Equal(t, want, l.Slice())
	for i, v := range want {
		require.Equal(t, v, l.At(i))
	}
	for _, old := range kept {
		require.Equal(t, append([]int{}, want[:old.Len()]...), old.Slice())
		// A second list from an old one does not disturb the first.
		other := old.Append(-1, -2)
		require.Equal(t, -2, other.At(old.Len()+1))
	}
	require.Equal(t, want, l.Slice())
	for _, n := range []int{-1, 0, 1, 31, 32, 33, 64, len(want), len(want) + 5} {
		first := max(len(want)-max(n, 0), 0)
		var got []int
		next := first
		for i, v := range l.Tail(n) {
			require.Equal(t, next, i)
			got = append(got, v)
			next++
		}
		require.Equal(t, append([]int{}, want[first:]...), append([]int{}, got...))
	}
	for stop := range 100 {
		seen := 0
		for range l.All() {
			if seen == stop {
				break
			}
			seen++
		}
		require.Equal(t, stop, seen)
	}
	for _, i := range []int{-1, len(want), len(want) + 31} {
		require.Panics(t, func() { l.At(i) })
	}
	require.Panics(t, func() { state.List[int]{}.At(0) })
	require.Equal(t, []int{}, state.List[int]{}.Slice())
}

func TestMapAgainstAGoMap(t *testing.T) {
	var m state.Map[int, int]
	want := map[int]int{}
	type old struct {
		m    state.Map[int, int]
		want map[int]int
	}
	var kept []old
	x := uint32(1)
	for range 500 {
		kept = append(kept, old{m, maps.Clone(want)})
		x = x*1664525 + 1013904223
		k, v := int(x>>20)%97, int(x>>8)
		if x%3 == 0 {
			m = m.Without(k)
			delete(want, k)
		} else {
			m = m.With(k, v)
			want[k] = v
		}
	}
	for _, o := range append(kept, old{m, want}) {
		require.Equal(t, o.want, maps.Collect(o.m.All()))
		require.Equal(t, slices.Sorted(maps.Keys(o.want)), append([]int(nil), collect(keysOf(o.m.All()))...))
		require.Equal(t, len(o.want), o.m.Len())
		for k := range o.m.From(50) {
			require.GreaterOrEqual(t, k, 50)
		}
	}
	_, ok := m.Get(-1)
	require.False(t, ok)
	for range m.All() {
		break
	}
	require.Zero(t, state.Map[int, int]{}.Without(1).Len())
	for range (state.Map[int, int]{}).From(1) {
		t.Fatal("empty map yields")
	}
}

func TestContainersAsJSON(t *testing.T) {
	type name string
	type all struct {
		L state.List[int]
		N state.Map[name, state.List[string]]
		M state.Map[int, bool]
		F state.Map[float64, int]
	}
	v := all{
		L: state.ListOf(3, 1), N: state.Map[name, state.List[string]]{}.With("b<", state.ListOf("x")).With("a", state.List[string]{}),
		M: state.Map[int, bool]{}.With(10, true).With(2, false), F: state.Map[float64, int]{}.With(.5, 1),
	}
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, `{"L":[3,1],"N":{"a":[],"b\u003c":["x"]},"M":[[2,false],[10,true]],"F":[[0.5,1]]}`, string(text))
	var back all
	require.NoError(t, json.Unmarshal(text, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	empty, err := json.Marshal(all{})
	require.NoError(t, err)
	require.Equal(t, `{"L":[],"N":{},"M":[],"F":[]}`, string(empty))
	for _, bad := range []string{`{"L":1}`, `{"N":[]}`, `{"N":{"a":1}}`, `{"M":{}}`, `{"M":[[1]]}`, `{"M":[["x",true]]}`, `{"M":[[1,true],[1,true]]}`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(all)), bad)
	}
}
