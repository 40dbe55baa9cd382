package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

type graph struct {
	Name  string
	next  *graph
	edges map[string][]*graph
	any   any
	f     float64
	at    time.Time
	list  state.List[*int]
	byID  state.Map[string, []byte]
	fn    func()
	arr   [2]uint8
	c     complex64
	on    bool
}

func newGraph() *graph {
	one := 1
	g := &graph{Name: "a", f: 1, at: time.Unix(0, 0).UTC(), any: map[int]int{1: 2}, list: state.ListOf(&one),
		byID: state.Map[string, []byte]{}.With("x", []byte("y")), edges: map[string][]*graph{}}
	g.next = g
	g.edges["self"] = []*graph{g, nil}
	g.edges["other"] = []*graph{{Name: "b"}}
	return g
}

func TestSealFindsMutation(t *testing.T) {
	shared := state.NewCell("shared", state.Options[*graph]{Shared: true})
	table := state.NewTable[string]("table", state.Options[*graph]{Shared: true})
	log := state.NewLog("log", state.Options[*graph]{Shared: true})
	other := state.NewCell("other", state.Options[int]{})
	for name, mutate := range map[string]func(g *graph){
		"field":          func(g *graph) { g.Name = "c" },
		"pointer":        func(g *graph) { g.next = nil },
		"map entry":      func(g *graph) { g.edges["new"] = nil },
		"deep":           func(g *graph) { g.edges["other"][0].Name = "c" },
		"slice":          func(g *graph) { g.edges["self"][1] = g },
		"in interface":   func(g *graph) { g.any.(map[int]int)[1] = 3 },
		"interface type": func(g *graph) { g.any = int8(1) },
		"float":          func(g *graph) { g.f = -1 },
		"time":           func(g *graph) { g.at = g.at.Add(1) },
		"list element":   func(g *graph) { *g.list.At(0) = 5 },
		"longer list":    func(g *graph) { g.list = g.list.Append(nil) },
		"map value":      func(g *graph) { v, _ := g.byID.Get("x"); v[0] = 'z' },
		"function":       func(g *graph) { g.fn = func() {} },
		"array":          func(g *graph) { g.arr[1] = 1 },
		"complex":        func(g *graph) { g.c = 1i },
		"bool":           func(g *graph) { g.on = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, shared, table, log, other)
			g := []*graph{newGraph(), newGraph(), newGraph()}
			snap := commit(t, s, shared.With(g[0]), table.Put("x", g[1]), log.Append(g[2]), other.With(1))
			seal := state.SealSnapshot(snap)
			require.NoError(t, seal.Verify())
			commit(t, s, log.Append(newGraph()), table.Put("y", newGraph()))
			_ = g[0].list.Append(nil)
			require.NoError(t, seal.Verify(), "building on a value is no mutation")
			mutate(g[1])
			err := seal.Verify()
			require.ErrorIs(t, err, state.ErrMutated)
			var me *state.MutationError
			require.ErrorAs(t, err, &me)
			require.Equal(t, []string{"table"}, me.Keys)
			mutate(g[2])
			mutate(g[0])
			require.ErrorAs(t, seal.Verify(), &me)
			require.Equal(t, []string{"log", "shared", "table"}, me.Keys)
		})
	}
	require.NoError(t, state.SealSnapshot(nil).Verify())
}
