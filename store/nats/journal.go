package nats

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Append implements [store.Journal]. A zero ID is never recognised as a repeat; others
// are as long as the record is kept. An epoch other than the thread's, newer ones
// included, is fenced off.
//
// It repeats what servers do not answer or answer with a passing failure, until it knows
// the outcome, ctx ends or Options.Patience is over.
func (j *Journal) Append(ctx context.Context, c store.Commit) (uint64, error) {
	if err := j.checkCommit(c); err != nil {
		return 0, err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	tip := j.heads.get(c.Thread)
	if tip != nil && (tip.revision != c.Base || tip.epoch != c.Epoch) {
		tip = nil // answers need what is there now
	}
	sent := false
	for try := 0; ; try++ {
		if tip == nil {
			if tip, err = j.tip(ctx, c.Thread); err != nil {
				return 0, unknown(sent, err)
			}
		}
		repeat, err := j.judge(ctx, c, tip)
		switch {
		case repeat:
			j.heads.put(c.Thread, tip)
			return c.Base + 1, nil
		case err == nil:
			var landed *entry
			if landed, err = j.commit(ctx, c, tip); err == nil {
				return landed.revision, nil
			}
			sent = sent || mayHaveLanded(err)
		}
		j.heads.drop(c.Thread)
		if answer := (&answerError{}); errors.As(err, &answer) {
			return 0, answer.err // it holds for earlier attempts too
		}
		if refused := (&refusedError{}); errors.As(err, &refused) {
			return 0, unknown(sent, fmt.Errorf("nats: the server refuses a commit of thread %s: %w", c.Thread, err))
		}
		if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrTooLarge) {
			return 0, unknown(sent, err)
		}
		if ctx.Err() == nil {
			pause(ctx, try, err)
		}
		if ctx.Err() != nil {
			return 0, ended(ctx, sent, err)
		}
		tip = nil
	}
}

// answerError is an answer to a commit that is certain.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }

func mayHaveLanded(err error) bool {
	lost := (*lostError)(nil)
	return errors.As(err, &lost)
}

// unknown adds to an error that something that was sent before may have landed.
func unknown(sent bool, err error) error {
	if !sent || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// tip returns the head of a thread to build on. It finishes a deletion that was broken off.
func (j *Journal) tip(ctx context.Context, thread string) (*entry, error) {
	for try := 0; ; try++ {
		e, err := j.head(ctx, thread)
		if err != nil || e.kind != isDeletion {
			return e, err
		}
		if err := j.finishDelete(ctx, thread, e.seq); err != nil {
			return nil, err
		}
		pause(ctx, try, errBusy)
	}
}

// judge compares a commit with the thread's head. It reports a repeat, returns an
// *answerError when the commit cannot land, and nothing when it may. That a revision is
// taken is proved by the read that shows it, old or not; the opposite is not, and is
// confirmed by a write.
func (j *Journal) judge(ctx context.Context, c store.Commit, tip *entry) (repeat bool, err error) {
	fenced := &answerError{errFenced(c.Thread, c.Epoch, tip.epoch)}
	conflict := &answerError{&store.Conflict{Thread: c.Thread, Base: c.Base, Have: tip.revision}}
	switch {
	case tip.revision > c.Base:
		made, err := j.made(ctx, c, tip)
		switch {
		case made || err != nil:
			return made, err
		case c.Epoch != tip.epoch:
			return false, fenced
		}
		return false, conflict
	case tip.revision == c.Base && tip.epoch == c.Epoch:
		return false, nil
	}
	if err := j.confirm(ctx, c.Thread, j.subject(kindJournal, c.Thread), tip.seq); err != nil {
		return false, fmt.Errorf("%w: %w", errBusy, err) // nothing of the commit was sent
	}
	if c.Epoch != tip.epoch {
		return false, fenced
	}
	return false, conflict
}

// made reports whether the commit made its revision, which is not above that of tip.
func (j *Journal) made(ctx context.Context, c store.Commit, tip *entry) (bool, error) {
	if c.ID == [16]byte{} {
		return false, nil
	}
	e, err := j.find(ctx, c.Thread, tip, c.Base+1)
	if errors.Is(err, errAbsent) {
		return false, nil
	}
	return err == nil && e.id == c.ID, err
}

// commit sends a commit that is to follow tip.
func (j *Journal) commit(ctx context.Context, c store.Commit, tip *entry) (*entry, error) {
	e := &entry{head: tip.next(isCommit, c.ID, c.Epoch, c.Time), hasSnapshot: c.Snapshot != nil}
	messages := []message{{subject: j.subject(kindJournal, c.Thread), check: true, expect: tip.seq}}
	e.record, e.snapshot = blob{inline: c.Record}, blob{inline: c.Snapshot}
	inline := len(c.Record) + len(c.Snapshot)
	for _, b := range []struct {
		kind byte
		blob *blob
	}{{blobSnapshot, &e.snapshot}, {blobRecord, &e.record}} {
		if inline > j.part {
			inline -= len(b.blob.inline)
			messages = append(messages, j.split(j.blobSubject(c.Thread, e.revision, b.kind), b.blob)...)
		}
	}
	messages[0].data = e.encode(c.Thread)

	firstSettled := len(messages)
	var refs []store.EffectRef
	var known []item
	for _, ref := range c.Settles {
		if !slices.Contains(refs, ref) {
			refs, known = append(refs, ref), append(known, j.outbox.known(ref))
			messages = append(messages, message{subject: j.effectSubject(ref), state: writeState(ref, state{kind: isGone})})
		}
	}
	now := j.now()
	states, places := make([]state, len(c.Effects)), make([]int, len(c.Effects))
	for i, effect := range c.Effects {
		ref := store.EffectRef{Thread: c.Thread, Revision: e.revision, Index: uint32(i)}
		body := blob{inline: effect.Body, size: uint64(len(effect.Body)), sum: crc32.Checksum(effect.Body, castagnoli)}
		if len(effect.Body) > j.part {
			messages = append(messages, j.split(j.effectPrefix(ref)+".", &body)...)
		}
		data := body.inline
		body.inline = nil
		states[i] = state{kind: isWaiting, lane: effect.Lane, notBefore: effect.NotBefore, due: later(effect.NotBefore, now), body: body}
		places[i] = len(messages)
		messages = append(messages, message{subject: j.effectSubject(ref), data: data, state: writeState(ref, states[i])})
	}
	if len(messages) > maxBatch {
		return nil, fmt.Errorf("nats: a commit of %d messages, and the limit is %d; emit and settle fewer effects at once, or smaller ones: %w", len(messages), maxBatch, store.ErrTooLarge)
	}
	last, err := j.publish(ctx, messages...)
	if err != nil {
		return nil, err
	}
	// The messages of a batch follow each other. If they did not, what is learnt here would
	// be wrong, and the next write that relies on it refused.
	seq := func(i int) uint64 { return last - uint64(len(messages)-1-i) }
	e.seq = seq(0)
	e.record, e.snapshot = blob{}, blob{}
	j.heads.put(c.Thread, e)
	if e.revision == 1 {
		j.threads.forget()
	}
	for i, ref := range refs {
		j.cleanUp(ref, known[i], seq(firstSettled+i))
		j.outbox.learn(ref, state{kind: isGone}, seq(firstSettled+i))
	}
	for i := range c.Effects {
		ref := store.EffectRef{Thread: c.Thread, Revision: e.revision, Index: uint32(i)}
		j.outbox.learn(ref, states[i], seq(places[i]))
	}
	return e, nil
}

// split moves the bytes of a blob into messages of their own, with subjects that begin so.
func (j *Journal) split(subject string, b *blob) (messages []message) {
	all := b.inline
	*b = blob{size: uint64(len(all)), sum: crc32.Checksum(all, castagnoli)}
	for len(all) > 0 {
		n := min(len(all), j.part)
		messages = append(messages, message{subject: subject + strconv.Itoa(b.parts), data: all[:n]})
		all = all[n:]
		b.parts++
	}
	return messages
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// checkCommit refuses what the store has no room for.
func (j *Journal) checkCommit(c store.Commit) error {
	err := errors.Join(checkName("thread id", c.Thread), j.checkSize("record", c.Record), j.checkSize("snapshot", c.Snapshot))
	for _, e := range c.Effects {
		err = errors.Join(err, checkName("lane", e.Lane), j.checkSize("effect", e.Body))
	}
	return err
}

func (j *Journal) checkSize(what string, b []byte) error {
	if len(b) > j.maxBytes {
		return fmt.Errorf("nats: a %s of %d bytes, and the limit is %d; raise Options.MaxBytes: %w", what, len(b), j.maxBytes, store.ErrTooLarge)
	}
	return nil
}

func errFenced(thread string, epoch, have uint64) error {
	return fmt.Errorf("nats: thread %s is at epoch %d, not at %d; acquire its lease again: %w", thread, have, epoch, store.ErrFenced)
}

// Load implements [store.Journal]. It reads from the leader of the stream. Right
// after a leader changed, the former one may answer for a moment, so what Load returns may
// then be old, but never older than atLeast.
func (j *Journal) Load(ctx context.Context, thread string, atLeast uint64) (store.Image, error) {
	if err := checkName("thread id", thread); err != nil {
		return store.Image{}, err
	}
	ctx, leave, err := j.enter(ctx)
	if err != nil {
		return store.Image{}, behind(ctx, thread, atLeast, err)
	}
	defer leave()
	for try := 0; ; try++ {
		image, err := j.loadOnce(ctx, thread, atLeast)
		switch {
		case err == nil && image.Revision >= atLeast:
			return image, nil
		case err != nil && !errors.Is(err, errImpatient):
			return store.Image{}, behind(ctx, thread, atLeast, err)
		case err != nil && atLeast == 0:
			return store.Image{}, err
		}
		pauseForNews(ctx, try)
		if ctx.Err() != nil {
			return store.Image{}, behind(ctx, thread, atLeast, ended(ctx, false, nil))
		}
	}
}

// pauseForNews waits before a load looks again.
func pauseForNews(ctx context.Context, try int) {
	timer := time.NewTimer(min(2*time.Millisecond<<min(try, 7), 100*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// loadOnce returns what is there, or only its revision if that is below atLeast.
func (j *Journal) loadOnce(ctx context.Context, thread string, atLeast uint64) (store.Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, j.patience, errImpatient)
	defer cancel()
	for missed := uint64(0); ; {
		e, err := j.head(ctx, thread)
		switch {
		case err != nil:
			return store.Image{}, err
		case e.seq == 0 || e.kind == isDeletion:
			return store.Image{}, nil
		case e.revision < atLeast:
			return store.Image{Revision: e.revision}, nil
		}
		image, err := j.image(ctx, thread, e)
		if !errors.Is(err, errAbsent) {
			return image, err
		}
		// Pruned meanwhile; then there is a newer head.
		if missed == e.seq {
			return store.Image{}, corrupt("messages of thread %s before message %d are missing", thread, e.seq)
		}
		missed = e.seq
	}
}

// behind adds to the end of a wait what was waited for.
func behind(ctx context.Context, thread string, atLeast uint64, err error) error {
	if ctx == nil || ctx.Err() == nil || atLeast == 0 || errors.Is(err, store.ErrClosed) {
		return err
	}
	return errors.Join(fmt.Errorf("nats: thread %s did not reach revision %d in time: %w", thread, atLeast, store.ErrBehind), err)
}

// LoadAt implements [store.Historian].
func (j *Journal) LoadAt(ctx context.Context, thread string, revision uint64) (store.Image, error) {
	if err := checkName("thread id", thread); err != nil {
		return store.Image{}, err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return store.Image{}, err
	}
	defer end()
	tip, err := j.head(ctx, thread)
	if err != nil {
		return store.Image{}, err
	}
	err = errAbsent
	var image store.Image
	if revision > 0 && revision <= tip.revision {
		var e *entry
		if e, err = j.find(ctx, thread, tip, revision); err == nil {
			image, err = j.image(ctx, thread, e)
		}
	}
	if errors.Is(err, errAbsent) {
		return store.Image{}, fmt.Errorf("nats: revision %s of thread %s: %w", strconv.FormatUint(revision, 10), thread, store.ErrNoRevision)
	}
	return image, err
}

// heads remembers the newest message of some threads, so that an owner that goes on
// need not read it. What it says is a guess that the next write checks.
type heads struct {
	mu   sync.Mutex
	tips map[string]*entry
}

// maxHeads is how many threads are remembered; each takes about half a KiB.
const maxHeads = 8192

func (h *heads) get(thread string) *entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tips[thread]
}

func (h *heads) put(thread string, e *entry) {
	known := *e
	known.record, known.snapshot = blob{}, blob{}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tips == nil {
		h.tips = map[string]*entry{}
	}
	if old := h.tips[thread]; old != nil && old.seq > e.seq {
		return
	}
	for other := range h.tips {
		if len(h.tips) < maxHeads {
			break
		}
		delete(h.tips, other) // any one
	}
	h.tips[thread] = &known
}

func (h *heads) drop(thread string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tips, thread)
}
