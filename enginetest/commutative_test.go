package enginetest_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/stretchr/testify/require"
)

func commutative[V, U any](name string, apply func(V, U) V) state.Key[V, U] {
	return state.NewKey(name, state.KeyConfig[V, U]{Merge: state.Commutative, Apply: apply, Shared: true})
}

func TestCheckCommutativePasses(t *testing.T) {
	enginetest.CheckCommutative(t, commutative("sum", func(v, u int) int { return v + u }), []int{5}, []int{1, 2, 3})
	enginetest.CheckCommutative(t, engine.Usage, nil, []inference.Usage{{InputTokens: 1}, {OutputTokens: 2}})
	most := commutative("max", func(v, u int) int { return max(v, u) })
	enginetest.CheckCommutative(t, most, nil, []int{3, 1, 4, 1, 5, 9, 2, 6})
	enginetest.CheckCommutative(t, most, nil, nil)
	// A container is judged by what is in it, not by how it came to be.
	enginetest.CheckCommutative(t, commutative("map", func(m state.Map[int, int], u int) state.Map[int, int] { return m.With(u, u*u) }),
		nil, []int{5, 3, 8, 1, 9, 2})
	type counted struct {
		Seen state.Map[string, int]
		N    int
	}
	enginetest.CheckCommutative(t, commutative("nested", func(c counted, u string) counted {
		n, _ := c.Seen.Get(u)
		return counted{c.Seen.With(u, n+1), c.N + 1}
	}), []string{"a"}, []string{"b", "a", "c"})
}

func TestCheckCommutativeFindsTheFault(t *testing.T) {
	type hidden struct{ v string }
	for name, check := range map[string]func(t enginetest.TB){
		"is not commutative": func(t enginetest.TB) {
			enginetest.CheckCommutative(t, commutative("cat", func(v, u string) string { return v + u }), nil, []string{"a", "b"})
		},
		"in the order [1 0]": func(t enginetest.TB) {
			enginetest.CheckCommutative(t, commutative("hidden", func(v hidden, u string) hidden { return hidden{v.v + u} }), nil, []string{"a", "b"})
		},
		"[8 7 6 5 4 3 2 1 0]": func(t enginetest.TB) {
			enginetest.CheckCommutative(t, commutative("last", func(_, u int) int { return u }), nil, []int{1, 2, 3, 4, 5, 6, 7, 8, 9})
		},
		`key "list" is not commutative`: func(t enginetest.TB) {
			enginetest.CheckCommutative(t, commutative("list", func(l state.List[int], u int) state.List[int] { return l.Append(u) }), nil, []int{1, 2})
		},
		"is not Commutative": func(t enginetest.TB) {
			enginetest.CheckCommutative(t, state.NewCell[int]("cell", state.Options[int]{}), nil, []int{1, 2})
		},
		"refuses the updates": func(t enginetest.TB) {
			enginetest.CheckCommutative(t, commutative("bad", func(int, int) int { panic("no") }), nil, []int{1})
		},
		"no base": func(t enginetest.TB) {
			enginetest.CheckCommutative(t, commutative("bad", func(int, int) int { panic("no base") }), []int{1}, nil)
		},
	} {
		said := try(t.Context(), check)
		require.Len(t, said.faults, 1, name)
		require.Contains(t, said.text(), name)
	}
	// A fault that only one order in six shows is found.
	first := commutative("first", func(m map[int]bool, u int) map[int]bool {
		m = maps.Clone(m)
		if m == nil {
			m = map[int]bool{}
		}
		if u == 0 && len(m) == 2 {
			return m
		}
		m[u] = true
		return m
	})
	said := try(t.Context(), func(t enginetest.TB) { enginetest.CheckCommutative(t, first, nil, []int{0, 1, 2}) })
	require.Len(t, said.faults, 1)
}

// The engine's lifecycle key says itself that the order of its updates counts.
func TestCheckCommutativeOfTheLifecycle(t *testing.T) {
	ends := []phase.LifecycleUpdate{{End: phase.ReasonBlocked}, {End: phase.ReasonLoop}}
	said := try(t.Context(), func(t enginetest.TB) { enginetest.CheckCommutative(t, phase.RunLifecycle, nil, ends) })
	require.Len(t, said.faults, 1)
	enginetest.CheckCommutative(t, phase.RunLifecycle, nil, slices.Repeat(ends[:1], 3))
}
