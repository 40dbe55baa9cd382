package resilient_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// answer is what a fake says to one request: chunks, then an error or something worse.
type answer struct {
	chunks []inference.Chunk
	err    error
	panics any
	exits  bool
	// waits is how long each chunk and the end take; deaf is true if the context does not shorten that.
	waits time.Duration
	deaf  bool
}

// fake is a model that says what it was told to, and then errNoAnswer. It spoils the requests it gets.
type fake struct {
	mu       sync.Mutex
	answers  []answer
	requests []inference.Request
	open     int // streams and calls under way
}

var errNoAnswer = errors.New("the fake has no more answers")

func plain(answers ...answer) (*fake, inference.Model) {
	f := &fake{answers: answers}
	return f, inference.ModelFunc(f.Generate)
}

func streaming(answers ...answer) (*fake, inference.Model) {
	f := &fake{answers: answers}
	return f, f
}

func (f *fake) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	return inference.Collect(f.Stream(ctx, r))
}

func (f *fake) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		a := f.next(r)
		defer f.end()
		for _, c := range a.chunks {
			if err := a.wait(ctx); err != nil {
				yield(inference.Chunk{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		err := a.wait(ctx)
		switch {
		case a.panics != nil:
			panic(a.panics)
		case a.exits:
			runtime.Goexit()
		case err != nil:
			yield(inference.Chunk{}, err)
		case a.err != nil:
			yield(inference.Chunk{}, a.err)
		}
	}
}

func (a answer) wait(ctx context.Context) error {
	if a.deaf {
		time.Sleep(a.waits)
		return nil
	}
	select {
	case <-time.After(a.waits):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fake) next(r inference.Request) answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.requests = append(f.requests, r.Clone())
	for i := range r.Messages {
		r.Messages[i].Text = "spoiled"
	}
	if len(f.answers) == 0 {
		return answer{err: errNoAnswer}
	}
	a := f.answers[0]
	f.answers = f.answers[1:]
	return a
}

func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

func (f *fake) underWay() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// says is an answer of those texts, one chunk each, that ends well.
func says(texts ...string) answer {
	var a answer
	for _, text := range texts {
		a.chunks = append(a.chunks, inference.Chunk{Text: text})
	}
	return a.and(inference.Chunk{Stop: inference.StopEnd})
}

// breaks is an answer that breaks off after those texts.
func breaks(err error, texts ...string) answer {
	a := says(texts...)
	a.chunks, a.err = a.chunks[:len(texts)], err
	return a
}

func (a answer) and(chunks ...inference.Chunk) answer {
	a.chunks = slices.Concat(a.chunks, chunks)
	return a
}

func (a answer) paid(tokens int64) answer {
	return a.and(inference.Chunk{Usage: inference.Usage{OutputTokens: tokens}})
}

func calls(name, args string) inference.Chunk {
	return inference.Chunk{ToolCall: inference.ToolCallDelta{ID: "c-" + name, Name: name, Args: args}}
}

func failure(class resilient.Class) *resilient.Failure {
	return &resilient.Failure{Class: class, Provider: "fake", Model: "m", Err: errors.New("no luck")}
}

func request(text string) inference.Request {
	return inference.Request{Model: "m", Messages: []inference.Message{inference.User(text)}}
}

func wrap(t testing.TB, m inference.Model, layers ...resilient.Layer) inference.Model {
	t.Helper()
	m, err := resilient.Wrap(m, layers...)
	require.NoError(t, err)
	return m
}

func pool(t testing.TB, p resilient.Pool) inference.Model {
	t.Helper()
	m, err := resilient.NewPool(p)
	require.NoError(t, err)
	return m
}

// collect asks for a stream and puts it together.
func collect(ctx context.Context, m inference.Model, r inference.Request) (inference.Response, error) {
	return inference.Collect(m.(inference.Streamer).Stream(ctx, r))
}

// ways are the two ways to ask a model.
var ways = map[string]func(context.Context, inference.Model, inference.Request) (inference.Response, error){
	"generate": func(ctx context.Context, m inference.Model, r inference.Request) (inference.Response, error) {
		return m.Generate(ctx, r)
	},
	"stream": collect,
}

// silent is a model with a nil stream.
type silent struct{}

func (silent) Generate(context.Context, inference.Request) (inference.Response, error) {
	return inference.Response{}, errNoAnswer
}

func (silent) Stream(context.Context, inference.Request) iter.Seq2[inference.Chunk, error] {
	return nil
}

// streamFunc is a model that only streams.
type streamFunc func(ctx context.Context, yield func(inference.Chunk, error) bool)

func (streamFunc) Generate(context.Context, inference.Request) (inference.Response, error) {
	return inference.Response{}, errNoAnswer
}

func (f streamFunc) Stream(ctx context.Context, _ inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) { f(ctx, yield) }
}
