package enginetest

import (
	"encoding"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"

	"github.com/ddd26017/fixpoint/state"
)

// CheckCommutative fails the test when the result of the updates depends on their
// order, which it must not for a key that is Commutative and not Ordered: the
// updates of hooks that run in parallel merge in registration order, and plugins
// must be free to be registered in any. The base updates are applied first, always
// in the order given, and the others as one commit of one batch each: in all orders
// when there are up to 5, else in a few hundred.
//
// Values are compared with reflect.DeepEqual or else, when their JSON form tells
// everything, by that.
func CheckCommutative[V, U any](t TB, key state.Key[V, U], base, updates []U) {
	t.Helper()
	if key.Merge() != state.Commutative {
		t.Fatalf("enginetest: key %q is not Commutative", key.Name())
	}
	var want V
	first := true
	for order := range orders(len(updates)) {
		got, err := applied(key, base, updates, order)
		if err != nil {
			t.Fatalf("enginetest: key %q refuses the updates in the order %v: %v", key.Name(), order, err)
		}
		if first {
			want, first = got, false
			continue
		}
		if !same(want, got) {
			t.Errorf("enginetest: key %q is not commutative: the updates in the order %v give\n%+v\nand as listed they give\n%+v",
				key.Name(), order, got, want)
			return
		}
	}
}

func applied[V, U any](key state.Key[V, U], base, updates []U, order []int) (V, error) {
	var none V
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{key}})
	if err != nil {
		return none, err
	}
	for _, u := range base {
		if _, err := store.Commit(state.Batch{Owner: "base", Updates: []state.Update{key.With(u)}}); err != nil {
			return none, err
		}
	}
	var batches []state.Batch
	for _, i := range order {
		batches = append(batches, state.Batch{Owner: strconv.Itoa(i), Updates: []state.Update{key.With(updates[i])}})
	}
	res, err := store.Commit(batches...)
	if err != nil {
		return none, err
	}
	if len(res.Rejected) > 0 {
		return none, res.Rejected[0].Err
	}
	return key.Get(res.Snapshot), nil
}

// orders yields permutations of 0 to n-1, the identity first.
func orders(n int) iter.Seq[[]int] {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	if n <= 5 {
		return func(yield func([]int) bool) { permute(ids, 0, yield) }
	}
	return func(yield func([]int) bool) {
		back := slices.Clone(ids)
		slices.Reverse(back)
		if !yield(slices.Clone(ids)) || !yield(back) {
			return
		}
		rng := rand.New(rand.NewPCG(1, 2)) // the same orders every time
		for range 300 {
			p := slices.Clone(ids)
			rng.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
			if !yield(p) {
				return
			}
		}
	}
}

func permute(ids []int, fixed int, yield func([]int) bool) bool {
	if fixed == len(ids) {
		return yield(slices.Clone(ids))
	}
	for i := fixed; i < len(ids); i++ {
		next := slices.Clone(ids)
		next[fixed], next[i] = next[i], next[fixed]
		if !permute(next, fixed+1, yield) {
			return false
		}
	}
	return true
}

func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	// Persistent containers hold functions and node ids, which DeepEqual tells apart.
	if !lossless(reflect.TypeOf(a), map[reflect.Type]bool{}) {
		return false
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// lossless reports whether the JSON form of values of type t tells all about them.
func lossless(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == nil || seen[t] {
		return true
	}
	seen[t] = true
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
		return lossless(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || f.Tag.Get("json") == "-" || !lossless(f.Type, seen) {
				return false
			}
		}
		return true
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	}
	return true
}
