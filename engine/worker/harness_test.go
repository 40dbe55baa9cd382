package worker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
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
	e, err := engine.New(engine.Config{Journal: journal, Plugins: []engine.Plugin{worker.Plugin()}})
	require.NoError(t, err)
	th, err := e.OpenThread(context.Background(), thread)
	require.NoError(t, err)
	for _, m := range engine.Transcript.Get(th.Snapshot()).Slice() {
		list = append(list, m.Text)
	}
	return list
}

func newStore() *memstore.Store { return memstore.New(memstore.Options{}) }
