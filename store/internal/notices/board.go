package notices

import (
	"context"
	"slices"
	"sync"
)

// Buffered is how many notices wait for a listener before it misses some.
const Buffered = 256

// Board is where listeners are kept, by topic.
type Board struct {
	mu     sync.Mutex
	topics map[string][]*listener
}

type listener struct {
	topic string
	heard chan []byte
	stop  func() bool // of what waits for the end of the context
}

// Send gives data to all who listen to the topic. Notices that are sent one after the
// other are heard in that order.
func (b *Board) Send(topic string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.topics[topic] {
		if len(l.heard) == cap(l.heard) { // nobody else sends, so it does not become full meanwhile
			continue
		}
		l.heard <- append(make([]byte, 0, len(data)), data...)
	}
}

// Listen returns what is sent to the topic from now on. The channel is closed when ctx
// ends or Close is called.
func (b *Board) Listen(ctx context.Context, topic string) <-chan []byte {
	l := &listener{topic: topic, heard: make(chan []byte, Buffered)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics == nil {
		b.topics = map[string][]*listener{}
	}
	b.topics[topic] = append(b.topics[topic], l)
	l.stop = context.AfterFunc(ctx, func() { b.drop(l) })
	return l.heard
}

// drop ends one listener, unless Close was first.
func (b *Board) drop(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.topics[l.topic]
	at := slices.Index(rest, l)
	if at < 0 {
		return
	}
	if rest = slices.Delete(rest, at, at+1); len(rest) > 0 {
		b.topics[l.topic] = rest
	} else {
		delete(b.topics, l.topic)
	}
	close(l.heard)
}

// Topics returns the topics that somebody listens to, in no order.
func (b *Board) Topics() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	topics := make([]string, 0, len(b.topics))
	for topic := range b.topics {
		topics = append(topics, topic)
	}
	return topics
}

// Close ends all who listen now.
func (b *Board) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, listeners := range b.topics {
		for _, l := range listeners {
			l.stop()
			close(l.heard)
		}
	}
	b.topics = nil
}
