package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// echo is a model that repeats what it was told last.
var echo = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
	return inference.Response{Message: inference.Assistant("you said " + r.Messages[len(r.Messages)-1].Text)}, nil
})

// only is a lookup that knows one agent.
func only(id string) func(context.Context, string) (engine.AgentSpec, error) {
	return func(_ context.Context, agent string) (engine.AgentSpec, error) {
		if agent != id {
			return engine.AgentSpec{}, errors.New("there is no such agent")
		}
		return engine.AgentSpec{ID: id}, nil
	}
}

// config is that of a worker whose engine has a model and plugins.
func config(journal store.Journal, model inference.Model, plugins ...engine.Plugin) worker.Config {
	return worker.Config{
		Journal: journal, Specs: only("helper"),
		Engine: func(c engine.Config) (*engine.Engine, error) {
			c.Model, c.Plugins = model, append(c.Plugins, plugins...)
			return engine.New(c)
		},
	}
}

func newClient(t testing.TB, journal store.Journal) *worker.Client {
	t.Helper()
	c, err := worker.NewClient(worker.ClientConfig{Journal: journal})
	require.NoError(t, err)
	return c
}

// work runs a worker until the returned function is called, which returns Run's error.
func work(t testing.TB, c worker.Config) (*worker.Worker, func() error) {
	t.Helper()
	w, err := worker.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return w, func() error { cancel(); return <-done }
}

func say(thread, text string) worker.Activation {
	return worker.Activation{Thread: thread, Agent: "helper", Messages: []inference.Message{inference.User(text)}}
}

func submit(t testing.TB, c *worker.Client, a worker.Activation) worker.Receipt {
	t.Helper()
	r, err := c.Submit(t.Context(), a)
	require.NoError(t, err)
	return r
}

func await(t testing.TB, c *worker.Client, r worker.Receipt) worker.Outcome {
	t.Helper()
	o, err := c.Await(t.Context(), r)
	require.NoError(t, err)
	return o
}

// texts are what was said on a thread.
func texts(t testing.TB, journal store.Journal, thread string) (list []string) {
	t.Helper()
	for _, m := range engine.Transcript.Get(open(t, journal, thread).Snapshot()).Slice() {
		list = append(list, m.Text)
	}
	return list
}

func newStore() *memstore.Store { return memstore.New(memstore.Options{}) }

// open opens a thread to look at it.
func open(t testing.TB, journal store.Journal, thread string) *engine.Thread {
	t.Helper()
	e, err := engine.New(engine.Config{Journal: journal, Plugins: []engine.Plugin{worker.Plugin(), newShop().plugin()}})
	require.NoError(t, err)
	th, err := e.OpenThread(context.Background(), thread)
	require.NoError(t, err)
	return th
}

func yes(id string) worker.Activation {
	return worker.Activation{Kind: worker.KindDecide, Decisions: []engine.Decision{{ID: id, Answer: phase.Answer{Approved: true}}}}
}

func on(thread string, a worker.Activation) worker.Activation { a.Thread = thread; return a }

// callsOnce is a model that calls a tool and is done.
func callsOnce(tool string) inference.Model {
	return inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		if r.Messages[len(r.Messages)-1].Role == inference.RoleTool {
			return inference.Response{Message: inference.Assistant("done")}, nil
		}
		return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "c", Name: tool, Args: "{}"})}, nil
	})
}

// mortal is the view that a worker has of a store until it dies.
type mortal struct {
	whole
	threads whole // for what is written to threads, if that is another view
	dead    atomic.Bool
}

// of returns the view that a thread is written through.
func (m *mortal) of(thread string) whole {
	if m.threads == nil || worker.IsInbox(thread) {
		return m.whole
	}
	return m.threads
}

var errDead = errors.New("this worker is dead")

// kill makes all calls fail from now on; false if they do already.
func (m *mortal) kill() bool { return !m.dead.Swap(true) }

func alive[T any](m *mortal, call func() (T, error)) (out T, err error) {
	if m.dead.Load() {
		return out, errDead
	}
	out, err = call()
	if m.dead.Load() {
		err = errDead
	}
	return out, err
}

func done(m *mortal, call func() error) error {
	_, err := alive(m, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (m *mortal) Append(ctx context.Context, c store.Commit) (uint64, error) {
	return alive(m, func() (uint64, error) { return m.of(c.Thread).Append(ctx, c) })
}

func (m *mortal) Load(ctx context.Context, thread string, atLeast uint64) (store.Image, error) {
	return alive(m, func() (store.Image, error) { return m.whole.Load(ctx, thread, atLeast) })
}

func (m *mortal) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (store.Lease, error) {
	return alive(m, func() (store.Lease, error) { return m.of(thread).Acquire(ctx, thread, owner, ttl) })
}

func (m *mortal) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	return alive(m, func() (store.Lease, error) { return m.of(l.Thread).Renew(ctx, l, ttl) })
}

func (m *mortal) Release(ctx context.Context, l store.Lease) error {
	return done(m, func() error { return m.of(l.Thread).Release(ctx, l) })
}

func (m *mortal) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	return alive(m, func() ([]store.Claim, error) { return m.whole.Claim(ctx, lane, worker, limit, ttl) })
}

func (m *mortal) Settle(ctx context.Context, c store.Claim, s store.Settlement) error {
	return done(m, func() error { return m.whole.Settle(ctx, c, s) })
}

func (m *mortal) Lanes(ctx context.Context, prefix string) ([]string, error) {
	return alive(m, func() ([]string, error) { return m.whole.Lanes(ctx, prefix) })
}

func (m *mortal) Notify(ctx context.Context, topic string, data []byte) error {
	return done(m, func() error { return m.whole.Notify(ctx, topic, data) })
}
