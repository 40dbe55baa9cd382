package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// duAt returns the newest revision of the thread's history that fits.
func duAt(t testing.TB, th *engine.Thread, fits func(engine.Revision) bool) uint64 {
	t.Helper()
	for _, r := range duHistory(t, th) {
		if fits(r) {
			return r.Revision
		}
	}
	require.Fail(t, "no such revision")
	return 0
}

// Capability B3. Fault B31. A revision that only the journal has can be forked, by
// another process too: the fork has its own run and tickets, and the original is as it
// was, byte for byte.
func TestForkFromTheJournal(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, seen := duRun(t, store)
	first := phase.RunLifecycle.Get(th.Snapshot()).Run
	paused := duAt(t, th, func(r engine.Revision) bool { return r.Status == phase.Waiting })
	_, inMemory := th.At(paused)
	require.False(t, inMemory, "it must not be at hand")
	before, err := store.Load(t.Context(), "t", 0)
	require.NoError(t, err)

	shop := newPeShop()
	c := shop.config(store)
	c.Limits.History = 1
	other, err := duEngine(t, c).OpenThread(t.Context(), "t")
	require.NoError(t, err)
	fork, err := other.Fork(t.Context(), paused, "fork", shop.sold.With(40))
	require.NoError(t, err)
	from, forked := fork.Origin()
	require.True(t, forked)
	require.Equal(t, engine.Lineage{Thread: "t", Run: first, Revision: paused}, from)
	require.Greater(t, fork.Snapshot().Revision(), paused)
	require.EqualValues(t, 41, shop.sold.Get(fork.Snapshot()))

	fork, err = duEngine(t, c).OpenThread(t.Context(), "fork")
	require.NoError(t, err)
	again, err := fork.Resume(t.Context(), peSpec, engine.Input{})
	require.NoError(t, err)
	require.Equal(t, phase.Waiting, again.Status)
	require.NotEqual(t, first, again.Run)
	require.Len(t, again.Tickets, 1)
	require.Contains(t, again.Tickets[0].ID, again.Run)
	done, err := fork.Resume(t.Context(), peSpec, engine.Input{}, feYes)
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, done.Reason)
	require.EqualValues(t, 1, shop.bodies.Load(), "the call that had its result did not run again")

	after, err := store.Load(t.Context(), "t", 0)
	require.NoError(t, err)
	require.Equal(t, before, after)
	seen.same(t, th)
	require.NotEmpty(t, duHistory(t, fork))
	_, err = other.Fork(t.Context(), paused, "fork")
	require.ErrorIs(t, err, engine.ErrJournalConflict, "a thread of that id is kept already")
	_, err = other.Fork(t.Context(), th.Snapshot().Revision()+1, "")
	require.ErrorIs(t, err, engine.ErrNoRevision)
}

// Capability B3. Every revision of a run can be forked, and each fork whose run was
// under way or waited can be brought to its end.
func TestForkAnywhere(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, _ := duRun(t, store)
	for _, r := range duHistory(t, th) {
		fork, res, err := th.Replay(t.Context(), r.Revision, "", peSpec, engine.Input{})
		require.NotNil(t, fork)
		if r.Status != phase.Running && r.Status != phase.Waiting {
			require.ErrorIs(t, err, engine.ErrNotWaiting, "revision %d", r.Revision)
			continue
		}
		require.NoError(t, err, "revision %d", r.Revision)
		require.NotEqual(t, r.Run, res.Run)
		if res.Status == phase.Waiting {
			res, err = fork.Resume(t.Context(), peSpec, engine.Input{}, feYes)
			require.NoError(t, err)
		}
		require.NoError(t, res.Err, "revision %d", r.Revision)
		require.Equal(t, phase.Done, res.Status)
		gbPaired(t, engine.Transcript.Get(fork.Snapshot()).Slice())
	}
}

// Capability B3. Replay lets a waiting run ask again and a running one go on, both on
// forks; of a finished one there is nothing to replay, and the fork is returned.
func TestReplay(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, _ := duRun(t, store)
	run := phase.RunLifecycle.Get(th.Snapshot()).Run

	waiting := duAt(t, th, func(r engine.Revision) bool { return r.Status == phase.Waiting })
	fork, res, err := th.Replay(t.Context(), waiting, "w", peSpec, engine.Input{})
	require.NoError(t, err)
	require.Equal(t, "w", fork.ID())
	require.Equal(t, phase.Waiting, res.Status)
	require.NotEqual(t, run, res.Run)

	running := duAt(t, th, func(r engine.Revision) bool { return r.Status == phase.Running && r.Step == 2 })
	fork, res, err = th.Replay(t.Context(), running, "r", peSpec, engine.Input{})
	require.NoError(t, err)
	require.Equal(t, "r", fork.ID())
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, 2, res.Steps)

	fork, res, err = th.Replay(t.Context(), th.Snapshot().Revision(), "d", peSpec, engine.Input{})
	require.ErrorIs(t, err, engine.ErrNotWaiting)
	require.Nil(t, res)
	require.Equal(t, "d", fork.ID())
	require.Equal(t, phase.Done, phase.RunLifecycle.Get(fork.Snapshot()).Status)

	fork, _, err = th.Replay(t.Context(), 9999, "n", peSpec, engine.Input{})
	require.ErrorIs(t, err, engine.ErrNoRevision)
	require.Nil(t, fork)
}

// Capability B3. Fault B31. A question about a result that a tool gave already is asked
// again too, with an id of the fork, whether it was open or answered at that revision,
// and it has its time anew; the tool does not run again.
func TestForkAsksAgainAboutAResult(t *testing.T) {
	bodies := 0
	wait := gate.Ticket{Message: "release it?", Lifetime: time.Hour}
	eng := duEngine(t, engine.Config{
		Journal: memstore.New(memstore.Options{}),
		Model:   gaCalls(gbCall("c", "look", "{}")),
		Plugins: []engine.Plugin{
			gaTools(gaTool{name: "look", call: func(context.Context, *phase.Context) (engine.Output, error) {
				bodies++
				return engine.Text("seen"), nil
			}}),
			gaOn("censor", phase.AfterToolExecute, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				cmd.Schedule(engine.WithholdResult.New(wait))
				return cmd, nil
			}),
		},
	})
	th, err := eng.NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), gaAgent, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.Waiting, res.Status)
	_, err = th.Resume(t.Context(), gaAgent, engine.Input{}, feYes)
	require.NoError(t, err)
	answered := 0
	for _, r := range duHistory(t, th) {
		past, err := th.Past(t.Context(), r.Revision)
		require.NoError(t, err)
		c, _ := engine.ToolCalls.Get(past, "c")
		if c.Status != engine.CallSuspended && (c.Status != engine.CallResuming || !c.Ended) {
			continue
		}
		if c.Status == engine.CallResuming {
			answered++
		}
		fork, again, err := th.Replay(t.Context(), r.Revision, "", gaAgent, engine.Input{})
		require.NoError(t, err)
		require.Equal(t, phase.Waiting, again.Status, "revision %d: the old answer does not count", r.Revision)
		require.Len(t, again.Tickets, 1)
		require.NotEqual(t, res.Tickets[0].ID, again.Tickets[0].ID)
		require.Contains(t, again.Tickets[0].ID, again.Run)
		_, err = fork.Resume(t.Context(), gaAgent, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: res.Tickets[0].ID, Approved: true}})
		require.ErrorIs(t, err, engine.ErrUnknownTicket)
		done, err := fork.Resume(t.Context(), gaAgent, engine.Input{}, engine.Decision{Answer: phase.Answer{Reason: "no"}})
		require.NoError(t, err)
		require.Equal(t, phase.ReasonNatural, done.Reason, "%d %+v", r.Revision, c)
	}
	require.Positive(t, answered)
	require.Equal(t, 1, bodies)
}

// Capability A18. A run leaves a checkpoint, a snapshot of the whole state, at the end
// of each step (where the next one begins, or the run ends) and at each pause, before
// either is told: from there alone it can be taken up again.
func TestCheckpointAtEachStepAndPause(t *testing.T) {
	store := duNewStore(memstore.Options{})
	_, seen := duRun(t, store)
	type point struct {
		status phase.RunStatus
		step   int
	}
	var points []point
	var states []state.Dump
	for _, c := range store.commits {
		if c.Snapshot == nil {
			continue
		}
		// A store that has nothing but this snapshot.
		alone := memstore.New(memstore.Options{})
		_, err := alone.Append(t.Context(), engine.JournalCommit{ID: c.ID, Thread: "t", Record: c.Record, Snapshot: c.Snapshot})
		require.NoError(t, err)
		th, err := newPeShop().engine(t, alone).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		l := phase.RunLifecycle.Get(th.Snapshot())
		points = append(points, point{l.Status, l.Step})
		dump, err := th.Export()
		require.NoError(t, err)
		states = append(states, dump)
	}
	require.Equal(t, []point{
		{phase.Running, 1}, {phase.Waiting, 1}, {phase.Running, 2}, {phase.Done, 2},
	}, points)
	for _, dump := range states {
		require.Equal(t, seen.states[dump.Revision], dump)
	}
}
