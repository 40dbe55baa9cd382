package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

var iuMark = state.NewCell[string]("iu.mark", state.Options[string]{Scope: state.ScopeThread})

// iuShop is an engine that keeps iuMark, over a shop whose calls need an answer.
func iuShop(t *testing.T, store engine.Journal) *engine.Engine {
	t.Helper()
	c := newPeShop().config(store)
	c.Plugins = append(c.Plugins, gaKeys(iuMark))
	return duEngine(t, c)
}

// iuMarks returns what each commit of the thread left in iuMark, and the run's status.
func iuMarks(t *testing.T, th *engine.Thread) (marks []string) {
	t.Helper()
	for r, err := range th.History(t.Context()) {
		require.NoError(t, err)
		snap, err := th.Past(t.Context(), r.Revision)
		require.NoError(t, err)
		marks = append([]string{string(r.Status) + " " + iuMark.Get(snap)}, marks...)
	}
	return marks
}

// The updates of an input are in the commit that begins the run, and in the one that
// applies decisions: no revision has one without the other.
func TestUpdatesOfAnInputCommitWithTheStart(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, err := iuShop(t, store).NewThread("t")
	require.NoError(t, err)
	in := engine.Prompt("sell two")
	in.Updates = []state.Update{iuMark.With("begun")}
	res, err := th.Run(t.Context(), peSpec, in)
	require.NoError(t, err)
	require.Equal(t, phase.Waiting, res.Status)

	th, err = iuShop(t, store).OpenThread(t.Context(), "t")
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), peSpec, engine.Input{Updates: []state.Update{iuMark.With("never")}}, engine.Decision{Call: "other"})
	require.ErrorIs(t, err, engine.ErrUnknownTicket)
	require.Equal(t, "begun", iuMark.Get(th.Snapshot()))
	res, err = th.Resume(t.Context(), peSpec, engine.Input{Updates: []state.Update{iuMark.With("resumed")}}, feYes)
	require.NoError(t, err)
	require.Equal(t, phase.Done, res.Status)
	for _, m := range iuMarks(t, th) {
		require.Contains(t, []string{"created ", "running begun", "waiting begun", "running resumed", "done resumed"}, m)
	}
}

// An update that cannot commit is the error of the run, which leaves no mark of itself.
func TestUpdatesOfAnInputThatCannotCommit(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, err := iuShop(t, store).NewThread("t")
	require.NoError(t, err)
	unknown := state.NewCell[string]("iu.unknown", state.Options[string]{})
	in := engine.Prompt("sell two")
	in.Updates = []state.Update{unknown.With("x")}
	res, err := th.Run(t.Context(), peSpec, in)
	require.NoError(t, err)
	require.ErrorIs(t, res.Err, state.ErrUnknownKey)
	require.NotEqual(t, res.Run, phase.RunLifecycle.Get(th.Snapshot()).Run)
	require.Zero(t, engine.Transcript.Get(th.Snapshot()).Len())

	_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), peSpec, engine.Input{Updates: in.Updates}, feYes)
	require.ErrorIs(t, err, state.ErrUnknownKey)
	require.Len(t, th.Tickets(), 1, "the decision was not spent")
}
