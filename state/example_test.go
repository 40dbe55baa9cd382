package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/state"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func Example() {
	turns := state.NewCounter("turns", state.Options[int64]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{turns}}))

	before := store.Snapshot()
	must(store.Commit(state.Batch{Owner: "loop", Updates: []state.Update{turns.With(1)}}))

	fmt.Println(turns.Get(before), turns.Get(store.Snapshot()))
	// Output: 0 1
}

func ExampleNewKey() {
	// The best score so far, whatever the order of the updates.
	best := state.NewKey("best", state.KeyConfig[int, int]{
		Merge: state.Commutative,
		Apply: func(v, u int) int { return max(v, u) },
	})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{best}}))
	r := must(store.Commit(
		state.Batch{Owner: "a", Updates: []state.Update{best.With(7)}},
		state.Batch{Owner: "b", Updates: []state.Update{best.With(3)}},
	))
	fmt.Println(best.Get(r.Snapshot))
	// Output: 7
}

func ExampleKey_Lookup() {
	limit := state.NewCell("limit", state.Options[int]{Initial: func() int { return 10 }})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{limit}}))
	fmt.Println(limit.Lookup(store.Snapshot()))
	r := must(store.Commit(state.Batch{Updates: []state.Update{limit.With(20)}}))
	fmt.Println(limit.Lookup(r.Snapshot))
	// Output:
	// 10 false
	// 20 true
}

func ExampleNewCell_clone() {
	// A slice shares memory, so the key needs a way to copy it.
	tags := state.NewCell("tags", state.Options[[]string]{Clone: slices.Clone[[]string]})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{tags}}))
	must(store.Commit(state.Batch{Updates: []state.Update{tags.With([]string{"a"})}}))

	mine := tags.Get(store.Snapshot())
	mine[0] = "mine only"
	fmt.Println(tags.Get(store.Snapshot()))
	// Output: [a]
}

func ExampleLog() {
	notes := state.NewLog("notes", state.Options[string]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{notes}}))
	r := must(store.Commit(
		state.Batch{Owner: "a", Updates: []state.Update{notes.Append("first")}},
		state.Batch{Owner: "b", Updates: []state.Update{notes.Append("second")}},
	))
	for i, note := range notes.Get(r.Snapshot).All() {
		fmt.Println(i, note)
	}
	r = must(store.Commit(state.Batch{Updates: []state.Update{notes.Replace("only")}}))
	fmt.Println(notes.Get(r.Snapshot).Slice())
	// Output:
	// 0 first
	// 1 second
	// [only]
}

func ExampleSet() {
	seen := state.NewSet("seen", state.Options[string]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{seen}}))
	must(store.Commit(
		state.Batch{Owner: "a", Updates: []state.Update{seen.Add("y", "x")}},
		state.Batch{Owner: "b", Updates: []state.Update{seen.Add("z")}},
	))
	r := must(store.Commit(state.Batch{Updates: []state.Update{seen.Remove("y")}}))
	for name := range seen.All(r.Snapshot) {
		fmt.Println(name, seen.Has(r.Snapshot, name))
	}
	// Output:
	// x true
	// z true
}

func ExampleTable() {
	calls := state.NewTable[string]("calls", state.Options[string]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{calls}}))
	r := must(store.Commit(
		state.Batch{Owner: "a", Updates: []state.Update{calls.Put("c1", "running")}},
		state.Batch{Owner: "b", Updates: []state.Update{calls.Put("c2", "running")}}, // another entry: no conflict
		state.Batch{Owner: "c", Updates: []state.Update{calls.Put("c1", "failed")}},
	))
	fmt.Println(r.Rejected[0].Err)
	for id, status := range calls.All(r.Snapshot) {
		fmt.Println(id, status, calls.ChangedAt(r.Snapshot, id))
	}
	// Output:
	// state: "c" lost entry "c1" of key "calls" to "a"; run it again on a newer snapshot
	// c1 running 1
	// c2 running 1
}

func ExampleTable_From() {
	prices := state.NewTable[int]("prices", state.Options[string]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{prices}}))
	r := must(store.Commit(state.Batch{Updates: []state.Update{prices.Put(30, "c"), prices.Put(10, "a"), prices.Put(20, "b")}}))
	for price, item := range prices.From(r.Snapshot, 15) {
		fmt.Println(price, item)
	}
	// Output:
	// 20 b
	// 30 c
}

func ExampleStore_Commit_conflict() {
	owner := state.NewCell("owner", state.Options[string]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{owner}}))

	base := store.Snapshot()
	must(store.Commit(state.Batch{Owner: "first", Updates: []state.Update{owner.With("first")}}))
	late := state.Batch{Owner: "late", Base: base, Updates: []state.Update{owner.With("late")}}
	r := must(store.Commit(late))
	fmt.Println(r.Committed, errors.Is(r.Rejected[0].Err, state.ErrConflict), r.Rejected[0].Err.Winner)

	late.Base = store.Snapshot() // decided again, on what is there now
	r = must(store.Commit(late))
	fmt.Println(r.Committed, owner.Get(r.Snapshot))
	// Output:
	// false true first
	// true late
}

func ExampleBatch_reads() {
	// On call as long as somebody else is: each decides on what it read.
	ann := state.NewCell("ann", state.Options[bool]{Initial: func() bool { return true }})
	bob := state.NewCell("bob", state.Options[bool]{Initial: func() bool { return true }})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{ann, bob}}))
	base := store.Snapshot()
	r := must(store.Commit(
		state.Batch{Owner: "ann", Base: base, Updates: []state.Update{ann.With(false)}, Reads: []state.AnyKey{bob}},
		state.Batch{Owner: "bob", Base: base, Updates: []state.Update{bob.With(false)}, Reads: []state.AnyKey{ann}},
	))
	fmt.Println(ann.Get(r.Snapshot), bob.Get(r.Snapshot))
	// Output: false true
}

func ExampleStore_Subscribe() {
	n := state.NewCounter("n", state.Options[int64]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{n}}))
	cancel := store.Subscribe(func(c state.Commit) {
		for _, w := range c.Writes {
			fmt.Println(c.Revision, w.Owner, w.Update)
		}
	})
	defer cancel()
	must(store.Commit(state.Batch{Owner: "a", Updates: []state.Update{n.With(2)}}))
	must(store.Commit(state.Batch{Owner: "b", Updates: []state.Update{n.With(3), n.Reset()}}))
	// Output:
	// 1 a n.apply(2)
	// 2 b n.apply(3)
	// 2 b n.reset()
}

func ExampleStore_At() {
	n := state.NewCounter("n", state.Options[int64]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{n}, History: 2}))
	for range 4 {
		must(store.Commit(state.Batch{Updates: []state.Update{n.With(10)}}))
	}
	old, ok := store.At(2)
	fmt.Println(n.Get(old), ok)
	_, ok = store.At(1)
	fmt.Println(ok)
	// Output:
	// 20 true
	// false
}

func ExampleDiff() {
	name := state.NewCell("name", state.Options[string]{})
	calls := state.NewTable[string]("calls", state.Options[int]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{name, calls}}))
	before := must(store.Commit(state.Batch{Updates: []state.Update{name.With("x"), calls.Put("a", 1), calls.Put("b", 1)}})).Snapshot
	after := must(store.Commit(state.Batch{Updates: []state.Update{name.With("y"), calls.Delete("b")}})).Snapshot
	for c := range state.Diff(before, after) {
		fmt.Println(c.Key.Name(), c.Entry, c.Before, c.After, c.Has)
	}
	// Output:
	// calls b 1 <nil> false
	// name <nil> x y true
}

func ExampleSnapshot_Export() {
	n := state.NewCounter("n", state.Options[int64]{Scope: state.ScopeThread})
	draft := state.NewCell("draft", state.Options[string]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{n, draft}}))
	r := must(store.Commit(state.Batch{Updates: []state.Update{n.With(5), draft.With("x")}}))

	saved := must(json.Marshal(must(r.Snapshot.Export(state.ScopeThread))))
	fmt.Println(string(saved))

	other := must(state.NewStore(state.Config{Keys: []state.AnyKey{n, draft}}))
	r = must(other.Import(must(state.DecodeDump(saved)), state.KeepUnknown))
	fmt.Println(n.Get(r.Snapshot), r.Snapshot.Revision())
	// Output:
	// {"revision":1,"entries":[{"name":"n","scope":"thread","version":0,"raw":5}]}
	// 5 2
}

func ExampleStore_ResetScope() {
	thread := state.NewCounter("thread", state.Options[int64]{Scope: state.ScopeThread})
	run := state.NewCounter("run", state.Options[int64]{})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{thread, run}}))
	must(store.Commit(state.Batch{Updates: []state.Update{thread.With(1), run.With(1)}}))
	r := must(store.ResetScope(state.ScopeRun))
	fmt.Println(thread.Get(r.Snapshot), run.Get(r.Snapshot))
	// Output: 1 0
}

func ExampleList() {
	a := state.ListOf("x", "y")
	b := a.Append("z") // a stays as it is
	fmt.Println(a.Slice(), b.Slice(), b.At(2))
	for i, v := range b.Tail(1) {
		fmt.Println(i, v)
	}
	// Output:
	// [x y] [x y z] z
	// 2 z
}

func ExampleMap() {
	a := state.Map[string, int]{}.With("x", 1).With("y", 2)
	b := a.Without("x") // a stays as it is
	fmt.Println(string(must(json.Marshal(a))), string(must(json.Marshal(b))))
	// Output: {"x":1,"y":2} {"y":2}
}

func ExampleProfileKey() {
	ctx := context.Background()
	profiles := enginetest.NewProfiles()
	theme := state.NewProfileKey("theme", state.Options[string]{Initial: func() string { return "light" }})
	fmt.Println(theme.Get(ctx, profiles, "ann"))
	must(theme.Update(ctx, profiles, "ann", func(string) string { return "dark" }))
	fmt.Println(theme.Get(ctx, profiles, "ann"))
	// Output:
	// light <nil>
	// dark <nil>
}

func ExampleCheckAlias() {
	type message struct {
		Text string
		Tags []string
	}
	fmt.Println(state.CheckAlias[string]())
	fmt.Println(state.CheckAlias[message]())
	// Output:
	// <nil>
	// state: aliasable type: type state_test.message aliases at .Tags ([]string)
}

func ExampleSealSnapshot() {
	conf := state.NewCell("conf", state.Options[map[string]int]{Shared: true})
	store := must(state.NewStore(state.Config{Keys: []state.AnyKey{conf}}))
	r := must(store.Commit(state.Batch{Updates: []state.Update{conf.With(map[string]int{"a": 1})}}))

	seal := state.SealSnapshot(r.Snapshot)
	conf.Get(r.Snapshot)["a"] = 2 // breaks the promise
	fmt.Println(seal.Verify())
	// Output:
	// state: values of shared keys were changed in place: conf; write a changed copy with an update instead
}

func ExampleNewSchema() {
	n := state.NewCounter("n", state.Options[int64]{})
	schema := must(state.NewSchema(n)) // checked once, for any number of stores
	a := must(state.NewStore(state.Config{Schema: schema}))
	b := must(state.NewStore(state.Config{Schema: schema}))
	must(a.Commit(state.Batch{Updates: []state.Update{n.With(1)}}))
	fmt.Println(n.Get(a.Snapshot()), n.Get(b.Snapshot()))
	// Output: 1 0
}
