package nats

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ddd26017/fixpoint/store"
)

// janitor removes messages that mean nothing any more: those of settled effects and the
// former states of effects and leases. All it does could as well be left undone, so it hardly
// repeats anything: what is left over by a process that ends is found by the next one that
// reads the outbox.
//
// It deletes messages one by one where it knows the first and the last of them. The other
// means of the server, purges, roll-ups and a limit of messages a subject, are slower by far
// where there are many effects, because the server then looks for the messages of the
// subject, and every consumer counts again what it has before it; and a limit would be one
// for the journal too.
type janitor struct {
	j    *Journal
	done sync.WaitGroup

	mu    sync.Mutex
	tasks []task // by time
}

// task is one of three: messages of a subject to delete, from one up to another; a subject to
// purge up to and with a message; an effect to bury.
type task struct {
	at         time.Time
	subject    string
	from, upTo uint64
	purge      string
	bury       store.EffectRef
	bodySeq    uint64 // of the effect to bury
}

const (
	// cleanAfter is how long a settled effect's last message stays, so that the consumers of
	// all processes have time to pass on that it is settled. No leader that was deposed
	// answers for as long.
	cleanAfter = 30 * time.Second
	cleanEvery = time.Second
	// maxTasks is how many wait; more are forgotten.
	maxTasks = 1 << 18
)

func newJanitor(j *Journal) *janitor {
	n := &janitor{j: j}
	n.done.Go(n.work)
	return n
}

// purge removes all messages of a subject up to one, later.
func (n *janitor) purge(subject string, upTo uint64) { n.add(task{purge: subject, upTo: upTo}) }

// drop removes the messages of a subject from one up to another, later, one after the other:
// what comes last must not go before the others, lest one of those be taken for the newest.
func (n *janitor) drop(subject string, from, upTo uint64) {
	n.add(task{subject: subject, from: from, upTo: upTo})
}

// bury settles an effect that has no body, later, if it still has none then.
func (n *janitor) bury(ref store.EffectRef, bodySeq uint64) {
	n.add(task{bury: ref, bodySeq: bodySeq})
}

func (n *janitor) add(t task) {
	t.at = time.Now().Add(cleanAfter)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.tasks) < maxTasks {
		n.tasks = append(n.tasks, t)
	}
}

func (n *janitor) due(now time.Time) []task {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := 0
	for i < len(n.tasks) && !n.tasks[i].at.After(now) {
		i++
	}
	due := n.tasks[:i:i]
	n.tasks = n.tasks[i:]
	return due
}

func (n *janitor) work() {
	ticker := time.NewTicker(cleanEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-n.j.ctx.Done():
			return
		}
		due := n.due(time.Now())
		if len(due) == 0 {
			continue
		}
		_ = inParallel(len(due), func(i int) error {
			n.do(due[i])
			return n.j.ctx.Err()
		})
	}
}

func (n *janitor) do(t task) {
	ctx, cancel := context.WithTimeout(n.j.ctx, attemptTimeout)
	defer cancel()
	switch {
	case t.bodySeq > 0:
		n.lookAgain(ctx, t.bury, t.bodySeq)
	case t.purge != "":
		_ = n.j.stream.Purge(ctx, jetstream.WithPurgeSubject(t.purge), jetstream.WithPurgeSequence(t.upTo+1))
	default:
		// What is there is asked for: a claim of another process may be among it that this one
		// has not heard of.
		for at := t.from; at <= t.upTo; at++ {
			msg, err := n.j.next(ctx, t.subject, at)
			if err != nil || msg.Sequence > t.upTo || n.j.stream.DeleteMsg(ctx, msg.Sequence) != nil {
				return
			}
			at = msg.Sequence
		}
	}
}

// lookAgain settles an effect that still has no body, whoever claimed it meanwhile: it was
// settled before, and the message that said so is gone.
func (n *janitor) lookAgain(ctx context.Context, ref store.EffectRef, bodySeq uint64) {
	_, bodyErr := n.j.at(ctx, bodySeq)
	s, seq, _, err := n.j.effect(ctx, ref)
	switch {
	case err != nil || s.kind == isGone || cmp.Or(s.bodySeq, seq) != bodySeq:
	case errors.Is(bodyErr, errAbsent):
		_, _ = n.j.change(ctx, ref, seq, state{kind: isGone, nonce: newID()}, nil)
	case bodyErr == nil:
		n.j.outbox.relearn(ref, s, seq) // a server that was behind did not know the body
	}
}
