package worker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store"
)

const (
	liveEvery  = 50 * time.Millisecond // events wait for others to go with
	liveBuffer = 4 << 20               // bytes that wait to be sent; events beyond them are lost
	liveFrame  = store.MaxNotice - 256 // bytes of events in one notice
)

// live tells those who watch a thread what its runs do. It is an observer of the engine,
// and never holds a run up.
type live struct {
	bell bell

	mu      sync.Mutex
	streams map[string]*stream // by run
	ready   []*stream          // that have events, in the order in which they got the first
	size    int
	kick    chan struct{} // 1-buffered
}

type stream struct {
	id, thread string
	events     []json.RawMessage
}

func newLive(b bell) *live {
	return &live{bell: b, streams: map[string]*stream{}, kick: make(chan struct{}, 1)}
}

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// expect begins a stream for a run.
func (l *live) expect(run, thread string) {
	if l == nil {
		return
	}
	id := newID()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams[run] = &stream{id: hex.EncodeToString(id[:]), thread: thread}
}

func (l *live) forget(run string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, run)
}

// Observe implements engine.Observer.
func (l *live) Observe(e engine.Event) {
	run, _, _ := strings.Cut(e.Head().Run, "/") // runs of delegates are named after the one at the top
	l.mu.Lock()
	known := l.streams[run] != nil && l.size < liveBuffer
	l.mu.Unlock()
	if !known {
		return
	}
	line, err := engine.MarshalEvent(e)
	if err != nil || len(line) > liveFrame {
		return // it counts as missed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[run]
	if s == nil {
		return
	}
	if len(s.events) == 0 {
		l.ready = append(l.ready, s)
	}
	s.events = append(s.events, line)
	l.size += len(line)
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// send sends what there is until ctx ends, and what is left then.
func (l *live) send(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-l.kick:
			_ = pause(ctx, liveEvery)
		case <-ctx.Done():
		}
		l.flush(context.WithoutCancel(ctx))
	}
}

func (l *live) flush(ctx context.Context) {
	l.mu.Lock()
	ready := l.ready
	l.ready = nil
	type batch struct {
		*stream
		events []json.RawMessage
	}
	var batches []batch
	for _, s := range ready {
		batches = append(batches, batch{s, s.events})
		s.events = nil
	}
	l.size = 0
	l.mu.Unlock()
	for _, b := range batches {
		for events := b.events; len(events) > 0; {
			n, size := 1, len(events[0])
			for n < len(events) && size+len(events[n])+1 <= liveFrame {
				size += len(events[n]) + 1
				n++
			}
			l.bell.ring(ctx, threadTopic(b.thread), frame{Stream: b.id, Events: events[:n]})
			events = events[n:]
		}
	}
}
