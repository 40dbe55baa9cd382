package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ddd26017/fixpoint/store"
)

// Prune implements [store.Journal]. The beginning of a thread counts as a snapshot
// of the time of its first record, so that a policy that keeps more snapshots than
// there are, or only drops what is older than the thread, drops no record.
//
// It reads one message for each snapshot that it keeps or drops for its age. When it is
// broken off, what is left over goes with the next one.
func (j *Journal) Prune(ctx context.Context, thread string, p store.PrunePolicy) error {
	if err := checkName("thread id", thread); err != nil {
		return err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	tip, err := j.head(ctx, thread)
	if err != nil || tip.revision == 0 {
		return err
	}
	oldest, err := j.oldestToKeep(ctx, thread, tip, p)
	if err != nil || oldest == 0 {
		return err
	}
	// The message of the snapshot's own revision stays: it has the commit's id. Its parts
	// follow it in the stream. Records go before their parts, so that none is left without.
	return errors.Join(
		j.purge(ctx, j.subject(kindJournal, thread), oldest),
		j.purge(ctx, j.below(kindPart, thread), oldest))
}

// oldestToKeep returns the message of the oldest snapshot that a policy keeps; 0 means that
// all is kept.
func (j *Journal) oldestToKeep(ctx context.Context, thread string, tip *entry, p store.PrunePolicy) (seq uint64, err error) {
	at, seq := tip.newest()
	for kept := 1; seq > 0; kept++ {
		if p.KeepSnapshots > 0 && kept >= p.KeepSnapshots {
			return seq, nil
		}
		e, err := j.entryAt(ctx, thread, seq, at)
		if err != nil {
			return 0, ifAbsent(err, nil) // somebody else has pruned more
		}
		before, beforeSeq := e.snapshotAt, e.snapshotSeq
		var older time.Time
		if beforeSeq > 0 {
			b, err := j.entryAt(ctx, thread, beforeSeq, before)
			if errors.Is(err, errAbsent) {
				return 0, nil // this one is the oldest
			}
			if err != nil {
				return 0, err
			}
			older = b.time
		} else {
			msg, err := j.next(ctx, j.subject(kindJournal, thread), 0)
			if err != nil {
				return 0, ifAbsent(err, nil)
			}
			first, err := j.decode(thread, msg)
			if err != nil || first.revision != 1 {
				return 0, err // the beginning is gone already
			}
			older = first.time
		}
		if !p.Before.IsZero() && older.Before(p.Before) {
			return seq, nil
		}
		at, seq = before, beforeSeq
	}
	return 0, nil
}

func ifAbsent(err, then error) error {
	if errors.Is(err, errAbsent) {
		return then
	}
	return err
}

// purge drops all messages below a filter that are older than one.
func (j *Journal) purge(ctx context.Context, filter string, before uint64) error {
	for try := 0; ; try++ {
		once, cancel := j.attempt(ctx, attemptTimeout)
		err := j.stream.Purge(once, jetstream.WithPurgeSubject(filter), jetstream.WithPurgeSequence(before))
		cancel()
		if err == nil {
			return nil
		}
		var api *jetstream.APIError
		if errors.As(err, &api) && api.Code < 500 {
			return fmt.Errorf("nats: purge %s: %w", filter, err)
		}
		if ctx.Err() != nil {
			return ended(ctx, false, err)
		}
		pause(ctx, try, err)
	}
}

// Delete implements [store.Journal]. It first marks the thread as deleted, by a message that
// decides against appends that come at the same time, and then purges what it had. A
// deletion that was broken off between is finished by the next Append, Acquire or Delete of
// the thread; until then Threads may list it.
func (j *Journal) Delete(ctx context.Context, thread string) error {
	if err := checkName("thread id", thread); err != nil {
		return err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	defer j.threads.forget()
	for try := 0; ; try++ {
		j.heads.drop(thread)
		e, err := j.head(ctx, thread)
		if err != nil {
			return err
		}
		switch {
		case e.kind == isDeletion:
			return j.finishDelete(ctx, thread, e.seq)
		case e.seq == 0:
			// A read that finds nothing may be old.
			err = j.confirm(ctx, thread, j.subject(kindJournal, thread), 0)
			if err == nil {
				return nil
			}
		default:
			mark := &entry{head: head{kind: isDeletion, id: newID(), time: j.now()}}
			var seq uint64
			seq, err = j.publish(ctx, message{
				subject: j.subject(kindJournal, thread), data: mark.encode(thread),
				check: true, expect: e.seq,
			})
			if err == nil {
				return j.finishDelete(ctx, thread, seq)
			}
		}
		if refused := (&refusedError{}); errors.As(err, &refused) {
			return fmt.Errorf("nats: delete thread %s: %w", thread, err)
		}
		if ctx.Err() == nil {
			pause(ctx, try, err)
		}
		if ctx.Err() != nil {
			return ended(ctx, false, err)
		}
	}
}

// finishDelete drops all that a deleted thread had, and its mark last.
func (j *Journal) finishDelete(ctx context.Context, thread string, mark uint64) error {
	// Tell the others' outboxes. It is a hint: who misses it finds nothing to claim.
	_, _ = j.publish(ctx, message{subject: j.deletionSubject(thread), ttl: deletionTTL, state: writeState(store.EffectRef{Thread: thread}, state{kind: isGone, of: mark})})
	for _, filter := range []string{
		j.below(kindEffect, thread), j.below(kindPart, thread),
		j.subject(kindLease, thread),
	} {
		if err := j.purge(ctx, filter, mark); err != nil {
			return err
		}
	}
	j.outbox.forget(thread, mark)
	return j.purge(ctx, j.subject(kindJournal, thread), mark+1)
}

// listing is the ids of all threads, as they were read last.
type listing struct {
	reading sync.Mutex
	stream  jetstream.Stream // a handle of its own, since what it returns it also keeps

	mu      sync.Mutex
	ids     []string
	read    time.Time
	changes int
}

// listingAge is how old the ids may be that later pages come from.
const listingAge = 5 * time.Second

// forget makes the next page read the ids again.
func (l *listing) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = nil
	l.changes++
}

func (l *listing) recent() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.read) > listingAge {
		return nil
	}
	return l.ids
}

// Threads implements [store.Journal]. The first page reads the ids of all threads from the
// server, about 30 bytes a thread and 100,000 in one answer; pages after it use the same ids
// for five seconds, unless this store makes or deletes a thread.
func (j *Journal) Threads(ctx context.Context, after string, limit int) ([]string, error) {
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if limit <= 0 {
		return nil, nil
	}
	var ids []string
	if after != "" {
		ids = j.threads.recent()
	}
	if ids == nil {
		if ids, err = j.readThreads(ctx); err != nil {
			return nil, err
		}
	}
	i, found := slices.BinarySearch(ids, after)
	if found && after != "" {
		i++
	}
	return slices.Clone(ids[i:min(i+limit, len(ids))]), nil
}

func (j *Journal) readThreads(ctx context.Context) ([]string, error) {
	j.threads.reading.Lock()
	defer j.threads.reading.Unlock()
	j.threads.mu.Lock()
	changes := j.threads.changes
	j.threads.mu.Unlock()
	for try := 0; ; try++ {
		once, cancel := j.attempt(ctx, 2*attemptTimeout)
		info, err := j.threads.stream.Info(once, jetstream.WithSubjectFilter(j.prefix+"."+kindJournal+".*"))
		cancel()
		if err == nil {
			ids := make([]string, 0, len(info.State.Subjects))
			for subject := range info.State.Subjects {
				_, thread, _, ok := j.parseSubject(subject)
				if !ok {
					return nil, corrupt("subject %s of stream %s is none of a thread", subject, j.name)
				}
				ids = append(ids, thread)
			}
			slices.Sort(ids)
			j.threads.mu.Lock()
			defer j.threads.mu.Unlock()
			if j.threads.changes == changes {
				j.threads.ids, j.threads.read = ids, time.Now()
			}
			return ids, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx, false, err)
		}
		pause(ctx, try, err)
	}
}
