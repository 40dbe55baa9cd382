package nats

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ddd26017/fixpoint/store"
)

// outbox is the store's index of effects and what keeps it up to date: an ordered,
// ephemeral consumer of the effects' subjects, headers only. It starts when the outbox is
// used first.
type outbox struct {
	j     *Journal
	done  sync.WaitGroup
	ready chan struct{} // closed when the index holds the whole outbox

	mu      sync.Mutex
	started bool
	index   *index
	failure error // of the last feed
}

func newOutbox(j *Journal) *outbox {
	return &outbox{j: j, ready: make(chan struct{}), index: newIndex()}
}

// use starts the feed and waits until the index is complete.
func (o *outbox) use(ctx context.Context) error {
	o.mu.Lock()
	if !o.started {
		o.started = true
		o.done.Go(o.feed)
	}
	o.mu.Unlock()
	select {
	case <-o.ready:
		return nil
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return ended(ctx, false, o.failure)
	}
}

// wait waits for the feed to end with the store.
func (o *outbox) wait() { o.done.Wait() }

// learn notes what this process itself has written, if the outbox is in use.
func (o *outbox) learn(ref store.EffectRef, s state, seq uint64) {
	now := o.j.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.started {
		o.index.learn(ref, s, seq, false, now)
	}
}

// relearn notes what was just read of an effect that the index may have dropped.
func (o *outbox) relearn(ref store.EffectRef, s state, seq uint64) {
	now := o.j.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.index.gone, ref)
	o.index.learn(ref, s, seq, true, now)
}

// known returns what is known of an effect, which is nothing unless the outbox is in use.
func (o *outbox) known(ref store.EffectRef) item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.index.effects[ref]; e != nil {
		return *e
	}
	return item{}
}

func (o *outbox) forget(thread string, before uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.index.forget(thread, before)
}

// feed keeps the index up to date until the store is closed. When the consumer is lost, or
// may have been, it begins anew with the newest message of every effect.
func (o *outbox) feed() {
	for try := 0; o.j.ctx.Err() == nil; try++ {
		began := time.Now()
		err := o.consume(o.j.ctx)
		o.mu.Lock()
		o.failure = err
		o.mu.Unlock()
		if time.Since(began) > time.Minute {
			try = 0
		}
		if o.j.ctx.Err() == nil {
			pause(o.j.ctx, try, err)
		}
	}
}

// consume fills the index until something goes wrong.
func (o *outbox) consume(ctx context.Context) error {
	o.mu.Lock()
	o.index.age++
	o.mu.Unlock()
	// The server that serves the consumer may be behind the leader, so the leader says how far
	// the consumer has to come before the index is complete.
	until, err := o.newest(ctx)
	if err != nil {
		return err
	}
	// The newest message of every effect first. The consumer that brings them is not good for
	// more: it makes the server count all effects each time that something is purged.
	from := uint64(1)
	err = o.read(ctx, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}, func(msg jetstream.Msg, at *jetstream.MsgMetadata) {
		from = max(from, at.Sequence.Stream+1)
		o.receive(msg, at.Sequence.Stream, true)
	})
	if err != nil {
		return err
	}
	var reached atomic.Uint64
	reached.Store(from - 1)
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { o.catchUp(ctx, &reached, until) })
	return o.read(ctx, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from}, func(msg jetstream.Msg, at *jetstream.MsgMetadata) {
		o.receive(msg, at.Sequence.Stream, false)
		reached.Store(at.Sequence.Stream)
	})
}

// newest returns the newest message about an effect that the leader has; 0 is none.
func (o *outbox) newest(ctx context.Context) (uint64, error) {
	msg, err := o.j.last(ctx, o.j.effects())
	if err != nil {
		return 0, ifAbsent(err, nil)
	}
	return msg.Sequence, nil
}

// catchUp waits until the feed has reached a message and says that the index is complete.
// When that message was deleted meanwhile the feed never does, so the leader is asked again.
func (o *outbox) catchUp(ctx context.Context, reached *atomic.Uint64, until uint64) {
	for try := 1; ctx.Err() == nil; try++ {
		if reached.Load() >= until {
			o.complete()
			return
		}
		pauseForNews(ctx, try)
		if try%20 == 0 {
			if newest, err := o.newest(ctx); err == nil {
				until = newest
			}
		}
	}
}

// read receives messages about effects from an ephemeral consumer: those that are there,
// or all until something goes wrong.
func (o *outbox) read(ctx context.Context, c jetstream.ConsumerConfig, receive func(jetstream.Msg, *jetstream.MsgMetadata)) error {
	j := o.j
	setup, cancel := j.attempt(ctx, 2*attemptTimeout)
	defer cancel()
	c.AckPolicy, c.HeadersOnly = jetstream.AckNonePolicy, true
	c.FilterSubject = j.effects()
	c.MemoryStorage, c.Replicas, c.InactiveThreshold = true, 1, 30*time.Second
	consumer, err := j.js.CreateConsumer(setup, j.name, c)
	if err != nil {
		return err
	}
	endless := c.DeliverPolicy == jetstream.DeliverByStartSequencePolicy
	defer func() {
		clean, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = j.js.DeleteConsumer(clean, j.name, consumer.CachedInfo().Name) // it ends by itself too
	}()
	if !endless && consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	// A server that was down does not tell its consumers of what it catches up with; they see
	// it with the next request, so those come often.
	messages, err := consumer.Messages(jetstream.PullMaxMessages(2000), jetstream.PullExpiry(4*time.Second), jetstream.PullHeartbeat(1500*time.Millisecond))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for last := uint64(0); ; last++ {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		at, err := msg.Metadata()
		if err != nil {
			return err
		}
		if at.Sequence.Consumer != last+1 {
			return fmt.Errorf("message %d came after %d", at.Sequence.Consumer, last)
		}
		receive(msg, at)
		if !endless && at.NumPending == 0 {
			return nil
		}
	}
}

// receive notes one message of the feed. One that cannot be read is left out here; a claim
// or a look at what is dead would not believe it either.
func (o *outbox) receive(msg jetstream.Msg, seq uint64, old bool) {
	kind, thread, rest, ok := o.j.parseSubject(msg.Subject())
	header := msg.Headers().Get(headerState)
	now := o.j.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.index.pass(seq)
	switch {
	case !ok:
	case kind != kindEffect:
	case len(rest) == 1 && rest[0] == "d":
		if s, ok := readState(store.EffectRef{Thread: thread}, header); ok {
			o.index.forget(thread, s.of)
		}
	default:
		ref, ok := parseEffect(thread, rest)
		if !ok {
			return
		}
		if s, ok := readState(ref, header); ok {
			o.index.learn(ref, s, seq, true, now)
			if old && s.kind == isGone {
				o.j.janitor.purge(o.j.effectPrefix(ref)+".>", seq) // in case the process that settled it did not live to do so
			}
		}
	}
}

// complete says that the index now holds the whole outbox.
func (o *outbox) complete() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.index.sweep()
	select {
	case <-o.ready:
	default:
		close(o.ready)
	}
}
