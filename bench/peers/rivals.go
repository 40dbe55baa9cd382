package main

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/bench/peers/internal/byhand"
	"github.com/ddd26017/fixpoint/bench/peers/internal/eino"
	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// Rivals returns the works of other libraries, in the order of the rows whose work
// they do.
func Rivals() []bench.Rival {
	var all []bench.Rival
	for _, part := range [][]bench.Rival{gathers(), counters(), conflicts(), cascades(), commits(), reads()} {
		all = append(all, part...)
	}
	return all
}

// Notes that several rivals have; the doc comment of the command says more.
const (
	noteHand  = "no conflict detection, reports, deadlines or recovery; integer keys, not boxed"
	noteStore = "a store, no scheduler; integer keys, not boxed"
	noteTen   = "the baseline is Fixpoint with 10 keys"
	noteEino  = "has callbacks, streaming and interrupts that go unused"
	noteSmall = "no tree beats a map this small: there the case is what happens on a conflict, not speed"
)

// onStores makes a rival of a row for each of the stores.
func onStores(row, way, note string, prepare func(stores.Backend) (trial.Trial, error)) []bench.Rival {
	var all []bench.Rival
	for _, b := range stores.All() {
		all = append(all, bench.Rival{
			ID: b.ID, Row: row, Name: way + versioned(b.Name, b.Module), Note: note,
			Work: trial.Work(func() (trial.Trial, error) { return prepare(b) }),
		})
	}
	return all
}

// onGraphs makes a rival of a row for each way in which eino runs a graph.
func onGraphs(row, note string, prepare func(eino.Mode) (trial.Trial, error)) []bench.Rival {
	var all []bench.Rival
	for _, m := range eino.Modes() {
		all = append(all, onGraph(row, m, m.ID, m.Name, note, prepare))
	}
	return all
}

func onGraph(row string, m eino.Mode, id, way, note string, prepare func(eino.Mode) (trial.Trial, error)) bench.Rival {
	return bench.Rival{
		ID: id, Row: row, Name: versioned("eino", eino.Module) + ", " + way, Note: note,
		Work: trial.Work(func() (trial.Trial, error) { return prepare(m) }),
	}
}

// byHand is how stores run hooks, for their names.
const byHand = "errgroup, "

// few keys are less than this.
const few = 16

// small adds to the notes of cloned maps that few keys are where they are best.
func small(rivals []bench.Rival) []bench.Rival {
	for i := range rivals {
		if rivals[i].ID == "map" {
			rivals[i].Note += "; " + noteSmall
		}
	}
	return rivals
}

func gathers() (all []bench.Rival) {
	for _, at := range []struct {
		row string
		n   int
	}{{"P1/hooks=64", 64}, {"P2/hooks=8", 8}, {"P2/hooks=1", 1}} {
		of := onStores(at.row, byHand, noteHand, func(b stores.Backend) (trial.Trial, error) { return byhand.Gather(b, at.n) })
		if at.n < few {
			of = small(of)
		}
		all = append(all, of...)
		all = append(all, onGraphs(at.row, noteEino+"; no state between runs: the output is the next input",
			func(m eino.Mode) (trial.Trial, error) { return eino.Gather(m, at.n) })...)
	}
	return all
}

func counters() []bench.Rival {
	const row, n = "P3/hooks=64", 64
	return append(
		small(onStores(row, byHand, noteHand, func(b stores.Backend) (trial.Trial, error) { return byhand.Counter(b, n) })),
		onGraphs(row, noteEino+"; the sum by a merge function of the whole process",
			func(m eino.Mode) (trial.Trial, error) { return eino.Counter(m, n) })...)
}

func conflicts() []bench.Rival {
	const row, n = "P4/hooks=8", 8
	all := small(onStores(row, byHand, "detects and retries; no reports, deadlines or recovery; integer keys, not boxed",
		func(b stores.Backend) (trial.Trial, error) { return byhand.Conflict(b, n) }))
	all = append(all, onGraphs(row, "DOES NOT DO THE WORK: the run fails and nothing is written",
		func(m eino.Mode) (trial.Trial, error) { return eino.Conflict(m, n) })...)
	pregel := eino.Modes()[0]
	return append(all,
		onGraph(row, pregel, "eino-handlers", pregel.Name+" with state handlers",
			"DOES NOT DO THE WORK: loses 7 of 8 writes without a word",
			func(m eino.Mode) (trial.Trial, error) { return eino.Handlers(m, n) }),
		onGraph(row, pregel, "eino-locked", pregel.Name+" with a locked state",
			"all 8 writes, in an order that changes, on a state that changes; hooks wait for each other",
			func(m eino.Mode) (trial.Trial, error) { return eino.Locked(m, n) }),
	)
}

func cascades() []bench.Rival {
	const row, rounds = "P5/rounds=16", 16
	pregel := eino.Modes()[0]
	return append(
		small(onStores(row, "loop, ", "the queue is a variable, while it is saved state in Fixpoint and the baseline; "+noteHand,
			func(b stores.Backend) (trial.Trial, error) { return byhand.Cascade(b, rounds) })),
		onGraph(row, pregel, "eino-pregel", pregel.Name+" with a loop",
			noteEino+"; the state is two integers that go around, no store",
			func(eino.Mode) (trial.Trial, error) { return eino.Cascade(rounds) }))
}

func commits() (all []bench.Rival) {
	for _, at := range []struct {
		row string
		n   int
	}{{"P6/keys=1000", 1000}, {"P6/entries=100000", 10}, {"P6/entries=100000", 100_000}} {
		of := onStores(at.row, "", noteStore+"; "+noteTen, func(b stores.Backend) (trial.Trial, error) { return byhand.CommitOne(b, at.n) })
		if at.n < few {
			of = small(of)
		}
		for i := range of {
			of[i].ID += fmt.Sprintf("-%d", at.n)
			of[i].Name += fmt.Sprintf(", %d keys", at.n)
		}
		all = append(all, of...)
	}
	return all
}

func reads() (all []bench.Rival) {
	all = append(all, onStores("P7/read=snapshot", "", noteStore, byhand.TakeView)...)
	all = append(all, onStores("P7/read=key", "", noteStore, byhand.ReadHeld)...)
	return append(all, onStores("P7/read=busy", "", noteStore+"; the baseline is Fixpoint's idle read",
		func(b stores.Backend) (trial.Trial, error) { return byhand.ReadBusy(b, time.Millisecond) })...)
}

// versioned is the name of a library with the version that this program is built
// with.
func versioned(name, path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return name + " " + dep.Version
			}
		}
	}
	return name
}
