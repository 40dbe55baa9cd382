package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// door is a plugin that is opened and closed.
type door struct {
	name          string
	open, close   func(ctx context.Context) error
	opens, closes *atomic.Int32
}

func newDoor(name string, open, close func(ctx context.Context) error) door {
	return door{name, open, close, new(atomic.Int32), new(atomic.Int32)}
}

func (d door) Name() string                     { return d.name }
func (d door) Register(*engine.Registrar) error { return nil }
func (d door) Source() string                   { return "the carpenter" }
func (d door) Open(ctx context.Context) error   { d.opens.Add(1); return d.open(ctx) }
func (d door) Close(ctx context.Context) error  { d.closes.Add(1); return d.close(ctx) }

func fine(context.Context) error { return nil }

// Capability G1. The session's begin and end are Open and Close, which every plugin
// gets once; runs are between them.
func TestOpenAndClose(t *testing.T) {
	a, b := newDoor("front", fine, fine), newDoor("back", fine, fine)
	config := gaBusy()
	config.Plugins = append(config.Plugins, a, b)
	eng := gaNew(t, config)
	spec := engine.AgentSpec{ID: "a"}

	_, err := eng.Run(t.Context(), spec, engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrNotOpen)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	_, err = th.RunPhase(t.Context(), spec, phase.StepEnd)
	require.ErrorIs(t, err, engine.ErrNotOpen)
	_, err = th.Resume(t.Context(), spec, engine.Input{})
	require.ErrorIs(t, err, engine.ErrNotOpen)

	require.NoError(t, eng.Open(t.Context()))
	for range 2 {
		res, err := eng.Run(t.Context(), spec, engine.Prompt("go"))
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.NoError(t, eng.Open(t.Context()), "it is open")
	require.NoError(t, eng.Close(t.Context()))
	require.NoError(t, eng.Close(t.Context()))
	require.ErrorIs(t, eng.Open(t.Context()), engine.ErrClosed)
	_, err = eng.Run(t.Context(), spec, engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrClosed)
	for _, d := range []door{a, b} {
		require.EqualValues(t, 1, d.opens.Load())
		require.EqualValues(t, 1, d.closes.Load())
	}
}

// When a plugin cannot be opened, all are closed again and no run begins.
func TestOpenFails(t *testing.T) {
	boom := errors.New("boom")
	good := newDoor("good", fine, fine)
	bad := newDoor("bad", func(context.Context) error { return boom }, fine)
	worse := newDoor("worse", func(context.Context) error { panic("splinters") }, fine)
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{good, bad, worse}})
	err := eng.Open(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "engine: opening plugin bad: boom")
	require.ErrorContains(t, err, "engine: opening plugin worse: engine: plugin worse panicked: splinters")
	require.EqualValues(t, 1, good.closes.Load())
	_, err = eng.NewThread("")
	require.ErrorIs(t, err, engine.ErrClosed)
}

// Report 9. Plugins that hang while they are closed cost one grace limit together.
func TestHungClosesShareOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hang := func(context.Context) error { <-release; return nil }
		config := engine.Config{Limits: engine.Limits{Grace: 2 * time.Second}}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			config.Plugins = append(config.Plugins, newDoor(name, fine, hang))
		}
		eng := gaNew(t, config)
		require.NoError(t, eng.Open(t.Context()))
		start := time.Now()
		require.ErrorIs(t, eng.Close(t.Context()), engine.ErrTimeout)
		require.Equal(t, 2*time.Second, time.Since(start))
		close(release)
	})
}

// An engine that was closed is not opened any more.
func TestOpenAfterClose(t *testing.T) {
	d := newDoor("door", fine, fine)
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{d}})
	require.NoError(t, eng.Close(t.Context()))
	require.ErrorIs(t, eng.Open(t.Context()), engine.ErrClosed)
	require.Zero(t, d.opens.Load())
}

// A plugin that hangs while it is opened is given up on with the context.
func TestOpenHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{
			newDoor("a", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, fine),
		}})
		require.ErrorIs(t, eng.Open(ctx), context.DeadlineExceeded)
	})
}

// byPointer is a plugin of a type that does not tell its source.
type byPointer struct{ door }

func (*byPointer) Source() {}

// Capability H6. The manifest shows where each plugin comes from.
func TestManifestSource(t *testing.T) {
	m := manifestOf(t, newDoor("said", fine, fine), gaPlugin("func", func(*engine.Registrar) {}), &byPointer{newDoor("type", fine, fine)})
	require.Equal(t, "the carpenter", m.Plugins[0].Source)
	require.Equal(t, "github.com/ddd26017/fixpoint/engine_test", m.Plugins[2].Source)
}
