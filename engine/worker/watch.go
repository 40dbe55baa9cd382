package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store"
)

// workersTopic is what workers listen to.
const workersTopic = "fixpoint.workers"

// threadTopic is what those listen to who watch a thread.
func threadTopic(thread string) string { return "fixpoint.thread/" + thread }

// notice tells workers of an activation.
type notice struct {
	Lane   string `json:"lane,omitempty"`
	Thread string `json:"thread,omitempty"`
	Cancel bool   `json:"cancel,omitempty"` // look at the thread's inbox if it runs
}

// frame tells those who watch a thread what happens there.
type frame struct {
	Stream string            `json:"stream,omitempty"` // a run from its start or resumption on
	Events []json.RawMessage `json:"events,omitempty"`
	Done   bool              `json:"done,omitempty"` // an activation has its outcome
}

func decodeFrame(data []byte) (f frame, err error) { return f, json.Unmarshal(data, &f) }

// bell sends notices, where that can be done. One that is lost costs time only.
type bell struct {
	store.Notifier // nil if the store has none
	limit          time.Duration
}

func newBell(j store.Journal, limit time.Duration) bell {
	n, _ := j.(store.Notifier)
	return bell{n, limit}
}

func (b bell) ring(ctx context.Context, topic string, v any) {
	if b.Notifier == nil {
		return
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // it would make events longer
	if encoder.Encode(v) == nil {
		_, _ = bounded(ctx, b.limit, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, b.Notify(ctx, topic, text.Bytes())
		})
	}
}

// Live is an event as it happens on some worker.
type Live struct {
	engine.Event
	// Stream tells one run, or resumption of a run, from others: its events have the
	// numbers from 1 on (Header.Seq).
	Stream string
	// Missed is how many events of the stream were lost right before this one.
	Missed uint64
}

// ErrNoNotices is returned by Watch when the store has no Notifier.
var ErrNoNotices = errors.New("worker: the store cannot tell what happens; look at the thread's status and history instead")

// Watch yields the events of a thread's runs, wherever they run, from now on until ctx
// ends or the loop does. It shows what is going on and is no record of it: events get
// lost when the reader is slow or the connection fails, and one that is too large for a
// notice always is; Live.Missed tells. The thread's history has all that counts. A
// RunFinished whose status is not done means that a worker lost the run, which another
// goes on with. An error ends the sequence: ErrNoNotices, one of the store, or
// store.ErrClosed when listening ended by itself.
func (c *Client) Watch(ctx context.Context, thread string) iter.Seq2[Live, error] {
	return func(yield func(Live, error) bool) {
		if c.bell.Notifier == nil {
			yield(Live{}, ErrNoNotices)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		notices, err := c.bell.Notifier.Listen(ctx, threadTopic(thread))
		if err != nil {
			yield(Live{}, fmt.Errorf("worker: watching thread %s: %w", thread, err))
			return
		}
		last := map[string]uint64{}
		for data := range notices {
			f, err := decodeFrame(data)
			if err != nil {
				continue // of a newer program
			}
			for _, raw := range f.Events {
				e, err := engine.UnmarshalEvent(raw)
				if err != nil {
					continue // of a newer program: it counts as missed
				}
				seq := e.Head().Seq
				missed := max(seq, last[f.Stream]+1) - last[f.Stream] - 1
				last[f.Stream] = seq
				switch e.(type) {
				case engine.RunFinished, engine.RunSuspended:
					if e.Head().Parent == "" {
						delete(last, f.Stream)
					}
				}
				if !yield(Live{e, f.Stream, missed}, nil) {
					return
				}
			}
		}
		if ctx.Err() == nil {
			yield(Live{}, fmt.Errorf("worker: watching thread %s ended: %w", thread, store.ErrClosed))
		}
	}
}
