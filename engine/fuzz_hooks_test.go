package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// FuzzHooks runs random sets of hooks, with random keys, tiers, declared reads,
// actions, effects and failures, and compares the engine with the reference.
//
// Capability A3. Capability A4. Capability B9.
func FuzzHooks(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0})
	f.Add([]byte("\x07 the greedy partition in registration order \x01\x05\x02\x63\x63\x00\x63"))
	f.Add([]byte{7, 2, 5, 1, 3, 99, 1, 0, 4, 2, 0, 0, 2, 1, 1, 99, 3, 99, 1, 99, 2, 99, 0, 99, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 99, 99})
	f.Fuzz(func(t *testing.T, text []byte) {
		refCompare(t, text)
	})
}

// Keys of the fuzzed programs.
var (
	fuzzCells = [refCells]state.Cell[int]{
		state.NewCell[int]("cell0", state.Options[int]{}), state.NewCell[int]("cell1", state.Options[int]{}), state.NewCell[int]("cell2", state.Options[int]{}),
	}
	fuzzCounter = state.NewCounter("counter", state.Options[int64]{})
	fuzzLog     = state.NewLog("log", state.Options[string]{})
	fuzzTable   = state.NewTable[int]("table", state.Options[int]{})
	fuzzSet     = state.NewSet[int]("set", state.Options[int]{})

	fuzzEffect = effects.NewSpec[string]("fuzz")
	fuzzKinds  = [3]phase.ActionSpec[int]{
		phase.NewAction[int]("serial0", phase.StepEnd), phase.NewAction[int]("serial1", phase.StepEnd), phase.NewAction[int]("safe", phase.StepEnd).ReplaySafe(),
	}
	errFuzz = errors.New("the program says so")
)

func fuzzKey(k refKey) state.AnyKey {
	switch k {
	case refCounter:
		return fuzzCounter
	case refLog:
		return fuzzLog
	case refTable:
		return fuzzTable
	case refSet:
		return fuzzSet
	default:
		return fuzzCells[k]
	}
}

// fuzzReader lets an author see a snapshot.
type fuzzReader struct{ s *state.Snapshot }

func (r fuzzReader) cell(i int) int    { return fuzzCells[i].Get(r.s) }
func (r fuzzReader) counter() int      { return int(fuzzCounter.Get(r.s)) }
func (r fuzzReader) logLen() int       { return fuzzLog.Get(r.s).Len() }
func (r fuzzReader) member(k int) bool { return fuzzSet.Has(r.s, k) }

func (r fuzzReader) entry(k int) int {
	v, _ := fuzzTable.Get(r.s, k)
	return v
}

func fuzzUpdate(author string, o refOp) state.Update {
	item := fmt.Sprintf("%s:%d", author, o.value)
	switch o.key {
	case refCounter:
		if o.verb == "reset" {
			return fuzzCounter.Reset()
		}
		return fuzzCounter.With(int64(o.value))
	case refLog:
		switch o.verb {
		case "append":
			return fuzzLog.Append(item)
		case "replace":
			return fuzzLog.Replace(item)
		default:
			return fuzzLog.Reset()
		}
	case refTable:
		switch o.verb {
		case "put":
			return fuzzTable.Put(o.entry, o.value)
		case "delete":
			return fuzzTable.Delete(o.entry)
		default:
			return fuzzTable.Reset()
		}
	case refSet:
		switch o.verb {
		case "add":
			return fuzzSet.Add(o.entry)
		case "remove":
			return fuzzSet.Remove(o.entry)
		default:
			return fuzzSet.Reset()
		}
	default:
		if o.verb == "reset" {
			return fuzzCells[o.key].Reset()
		}
		return fuzzCells[o.key].With(o.value)
	}
}

// fuzzCommand is the engine's form of what an author returns.
func fuzzCommand(p *refProgram, b *refBody, pc *phase.Context) (cmd phase.Command, err error) {
	out := b.run(fuzzReader{pc.Snapshot()})
	for range len(b.name)*7%5 + len(out.ops) {
		runtime.Gosched() // so that hooks finish in any order
	}
	for _, o := range out.ops {
		cmd.Update(fuzzUpdate(b.name, o))
	}
	for _, k := range out.reads {
		cmd.Reads(fuzzKey(k))
	}
	for _, body := range out.schedules {
		cmd.Schedule(fuzzKinds[p.kinds[body]].New(body))
	}
	for _, text := range out.emits {
		cmd.Emit(fuzzEffect.New(text))
	}
	if out.stops {
		cmd.StopPhase()
	}
	if out.failed {
		err = errFuzz
	}
	return cmd, err
}

// refCompare runs a program both ways and returns what it led to.
func refCompare(t *testing.T, text []byte) refTrace {
	p := refDecode(text)
	want := refExecute(&p)
	var got refTrace
	plugins := []engine.Plugin{gaPlugin("handlers", func(r *engine.Registrar) {
		r.Key(fuzzCells[0], fuzzCells[1], fuzzCells[2], fuzzCounter, fuzzLog, fuzzTable, fuzzSet)
		for _, kind := range fuzzKinds {
			r.Action(kind.Handle(func(_ context.Context, pc *phase.Context, body int) (phase.Command, error) {
				return fuzzCommand(&p, &p.bodies[body], pc)
			}))
		}
		r.Effect(fuzzEffect.Handle(func(ctx context.Context, snap *state.Snapshot, s string) error {
			id, _ := effects.IDFrom(ctx)
			if snap.Revision() != id.Revision {
				t.Errorf("effect %s of revision %d on snapshot %d", s, id.Revision, snap.Revision())
			}
			got.Effects = append(got.Effects, fmt.Sprintf("%s @%d/%d", s, id.Revision, id.Index))
			return nil
		}))
	})}
	for i := range p.hooks {
		h := &p.hooks[i]
		options := []engine.HookOption{engine.Tier(h.tier)}
		if h.skip {
			options = append(options, engine.OnError(engine.Skip))
		}
		for _, k := range h.declares {
			options = append(options, engine.Reads(fuzzKey(k)))
		}
		plugins = append(plugins, gaOn(h.name, phase.StepEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			return fuzzCommand(&p, &h.refBody, pc)
		}, options...))
	}
	th := gaPlugins(t, plugins...)
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
	if err != nil && !errors.Is(err, errFuzz) {
		t.Fatal(err)
	}
	snap := th.Snapshot()
	left := &refState{count: int(fuzzCounter.Get(snap)), log: fuzzLog.Get(snap).Slice(), table: map[int]int{}, set: map[int]bool{}}
	for i, c := range fuzzCells {
		left.cells[i] = c.Get(snap)
	}
	for k, v := range fuzzTable.All(snap) {
		left.table[k] = v
	}
	for k := range fuzzSet.All(snap) {
		left.set[k] = true
	}
	got.State, got.Revision, got.Failed = left.String(), int(snap.Revision()), err != nil
	got.Stopped, got.Rounds, got.Retries, got.Commits = rep.Stopped, rep.Rounds, rep.Retries, rep.Commits
	for _, h := range rep.Hooks {
		got.Hooks = append(got.Hooks, fmt.Sprintf("%s %s %d", h.Plugin, h.Status, h.Calls))
	}
	for _, a := range rep.Actions {
		got.Actions = append(got.Actions, fmt.Sprintf("%d %s round %d %s", a.ID, a.Plugin, a.Round, a.Status))
	}
	// What a failed phase left in its queue shows when the phase runs without hooks.
	if delivered := slices.Clip(got.Effects); got.Failed {
		rest, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "rest", ActiveHookFilter: []string{"handlers"}}, phase.StepEnd)
		require.NoError(t, err)
		for _, a := range rest.Actions {
			if a.Round == 1 {
				got.Queue = append(got.Queue, fmt.Sprintf("%d %s", a.ID, a.Plugin))
			}
		}
		got.Effects = delivered
	}
	require.Equal(t, want, got, "%+v", p)
	return want
}
