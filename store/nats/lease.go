package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Acquire implements [store.Leaser]. The lease and the commit that takes it are one batch.
// Whether a lease of somebody else has run out is for Options.Now of this process to say.
func (j *Journal) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (store.Lease, error) {
	if err := errors.Join(checkName("thread id", thread), checkName("owner", owner)); err != nil {
		return store.Lease{}, err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return store.Lease{}, err
	}
	defer end()
	id, sent := newID(), false
	for try := 0; ; try++ {
		tip, err := j.tip(ctx, thread)
		if err != nil {
			return store.Lease{}, unknown(sent, err)
		}
		held, heldSeq, err := j.lease(ctx, thread)
		if err != nil {
			return store.Lease{}, unknown(sent, err)
		}
		if sent && held.nonce == id {
			return store.Lease{Thread: thread, Owner: owner, Epoch: held.epoch, Until: held.until}, nil
		}
		now := j.now()
		if !held.free && held.owner != owner && now.Before(held.until) {
			return store.Lease{}, &store.LeaseHeld{Thread: thread, Owner: held.owner, Until: held.until}
		}
		e := &entry{head: tip.next(isLease, id, tip.revision+1, now)}
		l := lease{owner: owner, epoch: e.revision, until: now.Add(ttl), nonce: id}
		last, err := j.publish(ctx,
			message{subject: j.subject(kindJournal, thread), data: e.encode(thread), check: true, expect: tip.seq},
			message{subject: j.subject(kindLease, thread), data: l.encode(thread), check: true, expect: heldSeq})
		if err == nil {
			if heldSeq > 0 {
				j.janitor.drop(j.subject(kindLease, thread), heldSeq, heldSeq)
			}
			e.seq = last - 1
			j.heads.put(thread, e)
			if e.revision == 1 {
				j.threads.forget()
			}
			return store.Lease{Thread: thread, Owner: owner, Epoch: e.revision, Until: l.until}, nil
		}
		j.heads.drop(thread)
		sent = sent || mayHaveLanded(err)
		if done, err := j.again(ctx, try, sent, err); done {
			return store.Lease{}, err
		}
	}
}

// again pauses before a call is repeated. It reports the end of the call and its error.
func (j *Journal) again(ctx context.Context, try int, sent bool, err error) (done bool, _ error) {
	if refused := (&refusedError{}); errors.As(err, &refused) {
		return true, unknown(sent, fmt.Errorf("nats: the server refuses: %w", err))
	}
	if ctx.Err() == nil {
		pause(ctx, try, err)
	}
	if ctx.Err() != nil {
		return true, ended(ctx, sent, err)
	}
	return false, nil
}

// Renew implements [store.Leaser]. A lease that ran out can be renewed as long as
// nobody else took it; one that was released cannot.
func (j *Journal) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	until := j.now().Add(ttl)
	if err := j.setLease(ctx, l, lease{owner: l.Owner, epoch: l.Epoch, until: until}); err != nil {
		return store.Lease{}, err
	}
	return store.Lease{Thread: l.Thread, Owner: l.Owner, Epoch: l.Epoch, Until: until}, nil
}

// Release implements [store.Leaser]. The epoch stays, so that whoever comes next
// has to acquire the lease or to know the epoch from a load.
func (j *Journal) Release(ctx context.Context, l store.Lease) error {
	return j.setLease(ctx, l, lease{epoch: l.Epoch, owner: l.Owner, free: true})
}

// setLease changes a lease that is still that of its owner. Every lease is written together
// with the epoch that it stands for, so its own subject decides.
func (j *Journal) setLease(ctx context.Context, old store.Lease, next lease) error {
	if err := errors.Join(checkName("thread id", old.Thread), checkName("owner", old.Owner)); err != nil {
		return err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	next.nonce = newID()
	subject := j.subject(kindLease, old.Thread)
	for try := 0; ; try++ {
		held, seq, err := j.lease(ctx, old.Thread)
		if err != nil {
			return err
		}
		switch {
		case held.nonce == next.nonce && seq > 0:
			return nil
		case held.epoch == old.Epoch && old.Epoch > 0 && held.owner == old.Owner && (!held.free || next.free):
			_, err = j.publish(ctx, message{subject: subject, data: next.encode(old.Thread), check: true, expect: seq})
			if err == nil {
				j.janitor.drop(subject, seq, seq)
				return nil
			}
		case held.epoch > old.Epoch:
			return errFenced(old.Thread, old.Epoch, held.epoch)
		default:
			// Older than what the caller has, or released: the read may be old.
			if err = j.confirm(ctx, old.Thread, subject, seq); err == nil {
				return errFenced(old.Thread, old.Epoch, held.epoch)
			}
		}
		if done, err := j.again(ctx, try, false, err); done {
			return err
		}
	}
}
