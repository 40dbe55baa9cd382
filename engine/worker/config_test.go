package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/store"
)

// plain hides what a store offers besides the journal.
type plain struct{ store.Journal }

func TestConfigIsChecked(t *testing.T) {
	good := config(newStore(), echo)
	for name, spoil := range map[string]func(*worker.Config){
		"Journal is missing":             func(c *worker.Config) { c.Journal = nil },
		"Journal must be a store.Leaser": func(c *worker.Config) { c.Journal = plain{newStore()} },
		"Engine is missing":              func(c *worker.Config) { c.Engine = nil },
		"Specs is missing":               func(c *worker.Config) { c.Specs = nil },
		"Poll is negative":               func(c *worker.Config) { c.Poll = -time.Second },
		"is negative":                    func(c *worker.Config) { c.MaxAttempts = -1 },
		`Weights: "high" has 0`:          func(c *worker.Config) { c.Weights = map[worker.Priority]int{worker.High: 0} },
		`Weights: "odd"`:                 func(c *worker.Config) { c.Weights = map[worker.Priority]int{"odd": 1} },
		`without plugin "worker"`: func(c *worker.Config) {
			c.Engine = func(engine.Config) (*engine.Engine, error) { return engine.New(engine.Config{Model: echo}) }
		},
	} {
		c := good
		spoil(&c)
		_, err := worker.New(c)
		require.ErrorIs(t, err, engine.ErrConfig, name)
		require.ErrorContains(t, err, name)
	}
	good.Engine = func(engine.Config) (*engine.Engine, error) { return nil, errors.New("no engine") }
	_, err := worker.New(good)
	require.ErrorContains(t, err, "no engine")
	_, err = worker.NewClient(worker.ClientConfig{})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = worker.NewClient(worker.ClientConfig{Journal: plain{newStore()}})
	require.ErrorIs(t, err, engine.ErrConfig)
}

// Two workers that nobody named have different names.
func TestOwnersDiffer(t *testing.T) {
	a, err := worker.New(config(newStore(), echo))
	require.NoError(t, err)
	b, err := worker.New(config(newStore(), echo))
	require.NoError(t, err)
	require.NotEqual(t, a.Owner(), b.Owner())
}

type door struct {
	engine.Plugin
	open, closed error
}

func (d door) Open(context.Context) error  { return d.open }
func (d door) Close(context.Context) error { return d.closed }

// The worker opens and closes its engine, and says what went wrong.
func TestRunOpensTheEngine(t *testing.T) {
	nothing := engine.NewPlugin("door", func(*engine.Registrar) error { return nil })
	w, err := worker.New(config(newStore(), echo, door{Plugin: nothing, open: errors.New("jammed")}))
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "jammed")
	synctest.Test(t, func(t *testing.T) {
		_, stop := work(t, config(newStore(), echo, door{Plugin: nothing, closed: errors.New("stuck")}))
		synctest.Wait()
		require.ErrorContains(t, stop(), "stuck")
	})
}

func TestLanes(t *testing.T) {
	for _, l := range []worker.Lane{{}, {worker.High, "a/b %"}, {worker.Low, "ü"}} {
		got, ok := worker.ParseLane(l.String())
		require.True(t, ok)
		require.Equal(t, l.String(), got.String())
		require.Equal(t, l.Tenant, got.Tenant)
	}
	for _, name := range []string{"", "run/", "run/high", "effects", "run/odd/x", "run/high/a/b", "run/high/%zz", "run//x"} {
		_, ok := worker.ParseLane(name)
		require.False(t, ok, name)
	}
}

// What is over is told with what it was, and how long it waited.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newStore()
		reports := make(chan worker.Report, 10)
		client := newClient(t, journal)
		a := say("t", "x")
		a.Tenant, a.Priority = "acme", worker.Low
		r := submit(t, client, a)
		lanes, err := client.Lanes(t.Context())
		require.NoError(t, err)
		require.Len(t, lanes, 1)
		require.Equal(t, worker.Lane{Priority: worker.Low, Tenant: "acme"}, lanes[0].Lane)
		require.Equal(t, 1, lanes[0].Due)
		time.Sleep(time.Hour)
		c := config(journal, echo)
		c.Observe = func(r worker.Report) { reports <- r }
		w, stop := work(t, c)
		rep := <-reports
		require.Equal(t, r.Seq, rep.Outcome.Seq)
		require.Equal(t, "acme", rep.Lane.Tenant)
		require.InDelta(t, time.Hour, rep.Waited, float64(time.Minute))
		require.NoError(t, stop())
		require.EqualValues(t, 1, w.Stats().Runs)
		require.Zero(t, w.Stats().Running)
	})
}
