package memory_test

import (
	"hash/maphash"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/memory"
)

type box struct {
	clone func(int) int
	items []int
	n     int
}

type plain struct {
	A    [3]int
	When time.Time
}

// Fault B39.
func TestAlias(t *testing.T) {
	require.Empty(t, memory.Alias(reflect.TypeFor[plain](), nil))
	require.Empty(t, memory.Alias(reflect.TypeFor[[0]*int](), nil), "there is no element")
	require.Equal(t, " as a whole", memory.Alias(reflect.TypeFor[[]int](), nil))
	require.Equal(t, " at .A[].in (*int)", memory.Alias(reflect.TypeFor[struct {
		P plain
		A [2]struct{ in *int }
	}](), nil))

	holds := func(t reflect.Type) (reflect.Type, bool) {
		return reflect.TypeFor[error](), t == reflect.TypeFor[box]()
	}
	require.Equal(t, " at .clone (func(int) int)", memory.Alias(reflect.TypeOf(box{clone: nil}), nil))
	require.Equal(t, " at .B[] (error)", memory.Alias(reflect.TypeFor[struct{ B box }](), holds))
}

type node struct {
	next  *node
	any   any
	edges map[string][]int
	f     func()
	ok    bool
	b     box
}

func TestFingerprint(t *testing.T) {
	seed := maphash.MakeSeed()
	n := &node{any: map[int]int{1: 2}, edges: map[string][]int{"a": {1}, "b": {2}}, b: box{items: []int{1, 2}, n: 1}}
	n.next = n
	firstOnly := func(v reflect.Value) ([]reflect.Value, bool) {
		if v.Type() != reflect.TypeFor[box]() {
			return nil, false
		}
		items := v.FieldByName("items")
		return []reflect.Value{items.Slice(0, min(1, items.Len()))}, true
	}
	sum := func() uint64 { return memory.Fingerprint(seed, reflect.ValueOf(n), firstOnly) }
	before := sum()
	require.Equal(t, before, sum(), "the order of a map does not count")

	n.b.items[1] = 5
	require.Equal(t, before, sum(), "only the parts count")
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"part", func() { n.b.items[0]++ }},
		{"slice in map", func() { n.edges["b"][0]++ }},
		{"map entry", func() { n.edges["c"] = nil }},
		{"in interface", func() { n.any.(map[int]int)[1]++ }},
		{"interface", func() { n.any = int8(3) }},
		{"flag", func() { n.ok = !n.ok }},
		{"function", func() { n.f = func() {} }},
		{"pointer", func() { n.next = &node{} }},
		{"behind it", func() { n.next.ok = true }},
		{"nil or empty", func() { n.next.edges = map[string][]int{} }},
		{"nil", func() { n.next = nil }},
	} {
		before := sum()
		c.change()
		require.NotEqual(t, before, sum(), c.name)
	}
}
