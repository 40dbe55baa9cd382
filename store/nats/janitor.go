package nats

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// janitor removes messages that mean nothing any more: those of settled effects and the
// former states of effects and leases. All it does could as well be left undone, so it never
// repeats anything: what is left over by a process that ends is found by the next one that
// reads the outbox.
//
// The server has means of its own, roll-ups and a limit of messages a subject, but the first
// makes every consumer count again what it has before it, and the second would be one for
// the journal too.
type janitor struct {
	j    *Journal
	done sync.WaitGroup

	mu    sync.Mutex
	tasks []task // by time
}

// task is a subject to purge up to and with a message, or, without a subject, that message
// alone to delete.
type task struct {
	at      time.Time
	subject string
	seq     uint64
}

const (
	// cleanAfter is how long a settled effect's last message stays, so that the consumers of
	// all processes have time to pass on that it is settled. Who was not connected for as
	// long looks at the whole outbox anew.
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
func (n *janitor) purge(subject string, upTo uint64) {
	n.add(task{time.Now().Add(cleanAfter), subject, upTo})
}

// drop removes one message, later.
func (n *janitor) drop(seq uint64) { n.add(task{time.Now().Add(cleanAfter), "", seq}) }

func (n *janitor) add(t task) {
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
	if t.subject == "" {
		_ = n.j.stream.DeleteMsg(ctx, t.seq)
		return
	}
	_ = n.j.stream.Purge(ctx, jetstream.WithPurgeSubject(t.subject), jetstream.WithPurgeSequence(t.seq+1))
}
