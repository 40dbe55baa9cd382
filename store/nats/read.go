package nats

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ddd26017/fixpoint/store"
)

// errAbsent means that there is no such message.
var errAbsent = errors.New("there is no such message")

// get asks the leader of the stream for a message until it answers or ctx ends.
func (j *Journal) get(ctx context.Context, ask func(ctx context.Context) (*jetstream.RawStreamMsg, error)) (*jetstream.RawStreamMsg, error) {
	for try := 0; ; try++ {
		once, cancel := j.attempt(ctx, attemptTimeout)
		msg, err := ask(once)
		cancel()
		switch {
		case err == nil:
			return msg, nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, errAbsent
		case ctx.Err() != nil:
			return nil, ended(ctx, false, err)
		}
		pause(ctx, try, err)
	}
}

func (j *Journal) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return j.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return j.stream.GetLastMsgForSubject(ctx, subject)
	})
}

func (j *Journal) at(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	return j.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return j.stream.GetMsg(ctx, seq)
	})
}

// next returns the first message of a subject at or after a sequence number.
func (j *Journal) next(ctx context.Context, subject string, seq uint64) (*jetstream.RawStreamMsg, error) {
	return j.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return j.stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
	})
}

// head returns the newest message of a thread's journal, as the leader has it. One of a
// thread that is not there has seq 0.
func (j *Journal) head(ctx context.Context, thread string) (*entry, error) {
	msg, err := j.last(ctx, j.subject(kindJournal, thread))
	if errors.Is(err, errAbsent) {
		return &entry{}, nil
	}
	if err != nil {
		return nil, err
	}
	return j.decode(thread, msg)
}

func (j *Journal) decode(thread string, msg *jetstream.RawStreamMsg) (*entry, error) {
	e, ok := decodeEntry(thread, msg.Sequence, msg.Data)
	if !ok || msg.Subject != j.subject(kindJournal, thread) {
		return nil, corrupt("message %d of stream %s is not one of thread %s", msg.Sequence, j.name, thread)
	}
	return e, nil
}

// entryAt returns the message of a revision that a trail says is there. The error is
// errAbsent when it was pruned.
func (j *Journal) entryAt(ctx context.Context, thread string, seq, revision uint64) (*entry, error) {
	msg, err := j.at(ctx, seq)
	if err != nil {
		return nil, err
	}
	e, err := j.decode(thread, msg)
	if err == nil && e.revision != revision {
		return nil, corrupt("message %d of thread %s is of revision %d, not %d", seq, thread, e.revision, revision)
	}
	return e, err
}

// find returns the message of a revision up to that of e. The error is errAbsent when
// it was pruned.
func (j *Journal) find(ctx context.Context, thread string, e *entry, revision uint64) (*entry, error) {
	for e.revision != revision {
		back := e.revision - revision
		if len(e.trail) == 0 || revision == 0 || revision > e.revision {
			return nil, errAbsent
		}
		back = min(back, uint64(len(e.trail)))
		var err error
		if e, err = j.entryAt(ctx, thread, e.trail[back-1], e.revision-back); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// image returns what a load at the revision of e returns. The error is errAbsent when
// a message was pruned meanwhile.
func (j *Journal) image(ctx context.Context, thread string, e *entry) (store.Image, error) {
	image := store.Image{Revision: e.revision, Epoch: e.epoch, LastID: e.id}
	at, seq := e.newest()
	if seq > 0 {
		with := e
		if seq != e.seq {
			var err error
			if with, err = j.entryAt(ctx, thread, seq, at); err != nil {
				return store.Image{}, err
			}
		}
		snapshot, err := j.fetch(ctx, j.blobSubject(thread, at, blobSnapshot), with.snapshot)
		if err != nil {
			return store.Image{}, err
		}
		image.SnapshotAt, image.Snapshot = at, snapshot
	}
	image.Tail = make([]store.Record, e.revision-at)
	// From the newest back: each message names those before it, which are fetched at once.
	for e.revision > at {
		if err := j.fill(ctx, thread, e, &image); err != nil {
			return store.Image{}, err
		}
		n := min(uint64(len(e.trail)), e.revision-at-1)
		if n == 0 {
			break
		}
		entries := make([]*entry, n)
		err := inParallel(int(n), func(i int) (err error) {
			back := uint64(i) + 1
			entries[i], err = j.entryAt(ctx, thread, e.trail[i], e.revision-back)
			if err == nil && back < n { // the last one is the next to begin with
				err = j.fill(ctx, thread, entries[i], &image)
			}
			return err
		})
		if err != nil {
			return store.Image{}, err
		}
		e = entries[n-1]
	}
	if len(image.Tail) == 0 {
		image.Tail = nil
	}
	return image, nil
}

// fill puts the record of a message into its place in the image.
func (j *Journal) fill(ctx context.Context, thread string, e *entry, image *store.Image) error {
	record, err := j.fetch(ctx, j.blobSubject(thread, e.revision, blobRecord), e.record)
	if err != nil {
		return err
	}
	image.Tail[e.revision-image.SnapshotAt-1] = store.Record{Revision: e.revision, ID: e.id, Time: e.time, Record: record}
	return nil
}

// The two kinds of blobs of a commit, in the subjects of their parts.
const (
	blobRecord   = 'r'
	blobSnapshot = 's'
)

// fetch returns the bytes of a blob, whose parts are in subjects that begin so.
func (j *Journal) fetch(ctx context.Context, subject string, v blob) ([]byte, error) {
	if v.parts == 0 {
		return append([]byte{}, v.inline...), nil
	}
	parts := make([][]byte, v.parts)
	err := inParallel(v.parts, func(i int) error {
		msg, err := j.last(ctx, subject+strconv.Itoa(i))
		if err == nil {
			parts[i] = msg.Data
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	if uint64(len(all)) != v.size || crc32.Checksum(all, castagnoli) != v.sum {
		return nil, corrupt("the messages of stream %s with subjects %s0 and so on do not fit together", j.name, subject)
	}
	return all, nil
}

// parallel is how many requests a call has under way at a time.
const parallel = 16

// inParallel calls fn with 0 to n-1, several at a time, and returns the first error.
func inParallel(n int, fn func(i int) error) error {
	if n == 1 {
		return fn(0)
	}
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		next   int
		failed error
	)
	for range min(n, parallel) {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= n || failed != nil
				mu.Unlock()
				if stop {
					return
				}
				if err := fn(i); err != nil {
					mu.Lock()
					if failed == nil {
						failed = err
					}
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return failed
}

// lease returns a thread's lease and the message that has it; none has seq 0.
func (j *Journal) lease(ctx context.Context, thread string) (l lease, seq uint64, err error) {
	msg, err := j.last(ctx, j.subject(kindLease, thread))
	if errors.Is(err, errAbsent) {
		return lease{}, 0, nil
	}
	if err != nil {
		return lease{}, 0, err
	}
	l, ok := decodeLease(thread, msg.Data)
	if !ok {
		return lease{}, 0, corrupt("message %d of stream %s is no lease of thread %s", msg.Sequence, j.name, thread)
	}
	return l, msg.Sequence, nil
}

// readState reads the state of an effect off a header.
func readState(ref store.EffectRef, header string) (state, bool) {
	b, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return state{}, false
	}
	return decodeState(ref.String(), b)
}

func writeState(ref store.EffectRef, s state) string {
	return base64.RawURLEncoding.EncodeToString(s.encode(ref.String()))
}

// effect returns the newest state of an effect and the message that has it. One that is not
// there, or settled, is gone.
func (j *Journal) effect(ctx context.Context, ref store.EffectRef) (s state, seq uint64, data []byte, err error) {
	msg, err := j.last(ctx, j.effectSubject(ref))
	if errors.Is(err, errAbsent) {
		return state{kind: isGone}, 0, nil, nil
	}
	if err != nil {
		return state{}, 0, nil, err
	}
	s, ok := readState(ref, msg.Header.Get(headerState))
	if !ok {
		return state{}, 0, nil, corrupt("message %d of stream %s is no state of effect %s", msg.Sequence, j.name, ref)
	}
	return s, msg.Sequence, msg.Data, nil
}

// body returns what an effect said when it was emitted. The error is errAbsent when it is
// settled.
func (j *Journal) body(ctx context.Context, ref store.EffectRef, seq uint64) (store.Effect, error) {
	msg, err := j.at(ctx, seq)
	if err != nil {
		return store.Effect{}, err
	}
	s, ok := readState(ref, msg.Header.Get(headerState))
	if !ok || s.bodySeq != 0 || s.body.parts == 0 && s.body.sum != crc32.Checksum(msg.Data, castagnoli) {
		return store.Effect{}, corrupt("message %d of stream %s is not the body of effect %s", seq, j.name, ref)
	}
	if s.body.parts > 0 {
		if msg.Data, err = j.fetch(ctx, j.effectPrefix(ref)+".", s.body); err != nil {
			return store.Effect{}, err
		}
	}
	return store.Effect{Lane: s.lane, NotBefore: s.notBefore, Body: msg.Data}, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("nats: "+format+"; restore the stream from a backup: %w", append(args, store.ErrCorrupt)...)
}
