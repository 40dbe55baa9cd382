package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/ddd26017/fixpoint/store"
)

// request is a write that waits for its turn. The writer answers on done, once.
type request struct {
	// apply makes the change. All it can refuse it refuses before it writes, since the
	// requests of a batch share one transaction. It may run more than once, and owns all
	// that it uses: its caller may have gone.
	apply func(tx *txn) (changed bool, err error)
	size  int // about, in bytes
	state atomic.Int32
	done  chan error
}

// The states of a request.
const (
	queued int32 = iota
	running
	withdrawn
)

// A batch ends with the request that reaches one of these.
const (
	batchRequests = 512
	batchBytes    = 16 << 20
)

// update hands a write to the writer and waits for it. When ctx ends before the write
// was begun, nothing was done; when it ends later, the outcome is unknown.
func (j *Journal) update(ctx context.Context, size int, apply func(tx *txn) (bool, error)) error {
	if ctx.Err() != nil {
		return fmt.Errorf("bolt: not done: %w", context.Cause(ctx))
	}
	r := &request{apply: apply, size: size, done: make(chan error, 1)}
	j.mu.Lock()
	err := j.refusal()
	if err == nil {
		j.queue = append(j.queue, r)
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	j.signal()
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(queued, withdrawn) {
		return fmt.Errorf("bolt: not done: %w", context.Cause(ctx))
	}
	select {
	case err := <-r.done:
		return err
	default:
		return fmt.Errorf("bolt: %w (%w)", store.ErrUnknownOutcome, context.Cause(ctx))
	}
}

// refusal says why no writes are taken, or nil. The lock is held.
func (j *Journal) refusal() error {
	if j.closed {
		return errClosed()
	}
	if j.failed != nil {
		return fmt.Errorf("bolt: an earlier write failed; close the store and open it again: %w: %w", store.ErrClosed, j.failed)
	}
	return nil
}

// signal wakes the writer.
func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// write is the writer: it takes all that is queued, makes one transaction of it, and
// while that is synced the next batch gathers. It ends with Close.
func (j *Journal) write() {
	defer close(j.done)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for range j.wake {
		for {
			batch, closed := j.take()
			if closed {
				return
			}
			if len(batch) == 0 {
				break
			}
			rivals := len(batch) > 1
			j.commit(batch)
			if rivals {
				// Let those just answered queue their next write for this batch rather than for
				// the one after. A lone writer would only pay for the switch.
				runtime.Gosched()
			}
		}
	}
}

// take takes the next batch off the queue. On a store that is closed it answers all
// that is there instead.
func (j *Journal) take() (batch []*request, closed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	refusal := j.refusal()
	size, n := 0, 0
	for _, r := range j.queue {
		if refusal == nil && (len(batch) >= batchRequests || size >= batchBytes) {
			break
		}
		n++
		switch {
		case !r.state.CompareAndSwap(queued, running):
		case refusal != nil:
			r.done <- refusal
		default:
			batch = append(batch, r)
			size += r.size
		}
	}
	clear(j.queue[:n])
	j.queue = j.queue[n:]
	if len(j.queue) == 0 {
		j.queue = nil
	}
	return batch, j.closed
}

var errNothing = errors.New("bolt: nothing to write")

// commit makes the changes of a batch durable and answers its requests.
func (j *Journal) commit(batch []*request) {
	for len(batch) > 0 {
		answers := make([]error, len(batch))
		broken := -1
		err := j.transact(func(tx *txn) error {
			changed := false
			for i, r := range batch {
				var wrote bool
				if wrote, answers[i] = attempt(tx, r); errors.Is(answers[i], errHalf) {
					broken = i
					return answers[i]
				}
				changed = changed || wrote
			}
			if !changed {
				return errNothing
			}
			return nil
		})
		switch {
		case broken >= 0:
			// It may have written half of its change, so the others start anew without it.
			batch[broken].done <- answers[broken]
			batch = append(batch[:broken], batch[broken+1:]...)
			continue
		case err != nil && !errors.Is(err, errNothing):
			err = j.fail(err)
			for i := range answers {
				answers[i] = err
			}
		}
		j.mu.Lock()
		j.broadcast()
		j.mu.Unlock()
		for i, r := range batch {
			r.done <- answers[i]
		}
		return
	}
}

// errHalf marks a request that failed in the middle of its change.
var errHalf = errors.New("bolt: the change was given up half-way")

// attempt runs one request of a batch.
func attempt(tx *txn, r *request) (changed bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			changed, err = false, errors.Join(errHalf, panicked(tx.path, v))
		}
	}()
	changed, err = r.apply(tx)
	if err != nil && changed {
		err = errors.Join(errHalf, err)
	}
	return changed, err
}

// transact runs a transaction of bbolt and makes errors of its panics.
func (j *Journal) transact(fn func(tx *txn) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(j.path, v)
		}
	}()
	return j.db.Update(func(tx *bbolt.Tx) error { return fn(&txn{tx: tx, path: j.path}) })
}

// fail stops all writing. After a write or sync failed, what is in memory and what is
// on the disk may differ, and a later sync that succeeds would not tell.
func (j *Journal) fail(cause error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		j.failed = cause
	}
	return fmt.Errorf("bolt: write %s: %w: %w", j.path, store.ErrUnknownOutcome, cause)
}
