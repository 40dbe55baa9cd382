package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// breaker cuts a store's connections again and again.
type breaker struct {
	cuts atomic.Int32
	stop chan struct{}
	done sync.WaitGroup
}

// breaks starts cutting; it ends with the test at the latest, and after some cuts, so that
// a store that needs long to get over one gets over the last.
func breaks(t *testing.T, f Fixture, seed uint64) *breaker {
	b := &breaker{stop: make(chan struct{})}
	random := rand.New(rand.NewPCG(seed, 5))
	b.done.Go(func() {
		for b.cuts.Load() < 2*enoughCuts {
			select {
			case <-b.stop:
				return
			case <-time.After(time.Duration(random.IntN(30_000)) * time.Microsecond):
			}
			f.Break()
			b.cuts.Add(1)
		}
	})
	t.Cleanup(b.end)
	return b
}

// enough reports whether there were so many cuts that the test has seen some.
func (b *breaker) enough() bool { return b.cuts.Load() >= enoughCuts }

const enoughCuts = 12

func (b *breaker) end() {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	b.done.Wait()
}

// final reports whether an error is an answer, not the sign of a broken connection.
func final(err error) bool {
	return err == nil || slices.ContainsFunc([]error{
		store.ErrConflict, store.ErrFenced, store.ErrLeaseHeld, store.ErrNoEffect, store.ErrTooLarge,
		store.ErrCorrupt, store.ErrClosed, store.ErrNoRevision,
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// insist repeats a call until it has an answer or the context ends.
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if final(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// insistent is a store that repeats appends until they have an answer.
type insistent struct{ store.Journal }

func (s insistent) Append(ctx context.Context, c store.Commit) (revision uint64, err error) {
	err = insist(ctx, func() error {
		revision, err = s.Journal.Append(ctx, c)
		return err
	})
	return revision, err
}

// loadWhole loads a thread when the connections are cut no more.
func loadWhole(t *testing.T, j store.Journal, thread string, atLeast uint64) (image store.Image) {
	t.Helper()
	ctx := ctxOf(t)
	noError(t, insist(ctx, func() (err error) {
		image, err = j.Load(ctx, thread, atLeast)
		return err
	}), "load %s", thread)
	return image
}

var breakTests = []test{
	{"every commit lands once", func(t *testing.T, f Fixture) {
		const writers = 6
		cutter := breaks(t, f, 1)
		ctx := ctxOf(t)
		landed := make([][]store.Commit, writers)
		failures := together(writers, func(n int) error {
			thread := fmt.Sprint("thread ", n)
			for len(landed[n]) < 20 || !cutter.enough() {
				c := withEffects(thread, uint64(len(landed[n])), "mail", 1)
				revision, err := f.Journal.Append(ctx, c)
				if errors.Is(err, store.ErrUnknownOutcome) {
					revision, err = insistent{f.Journal}.Append(ctx, c) // until it is known
				}
				switch {
				case err == nil && revision != c.Base+1:
					return fmt.Errorf("append at %d gave revision %d", c.Base, revision)
				case err == nil:
					landed[n] = append(landed[n], c)
				case final(err) || ctx.Err() != nil:
					return fmt.Errorf("append at %d, where nobody else writes: %w", c.Base, err)
				default:
					// Nothing was done, it says, so that another commit may take the place.
					<-time.After(time.Millisecond)
				}
			}
			return nil
		})
		cutter.end()
		for n, err := range failures {
			noError(t, err, "writer %d", n)
		}
		effects := 0
		for n, commits := range landed {
			thread := fmt.Sprint("thread ", n)
			sameImage(t, imageOf(1, commits), loadWhole(t, f.Journal, thread, uint64(len(commits))), "load of "+thread)
			effects += len(commits)
		}
		outbox, ok := f.Journal.(store.Outbox)
		if !ok {
			return
		}
		claims, err := outbox.Claim(ctx, "mail", "kit", 2*effects, time.Hour)
		noError(t, err, "claim")
		equal(t, effects, len(claims), "effects")
	}},
	{"rivals", func(t *testing.T, f Fixture) {
		cutter := breaks(t, f, 2)
		var acks []Ack
		ctx := ctxOf(t)
		for seed := uint64(0); seed == 0 || !cutter.enough(); seed++ {
			more, err := runWork(ctx, insistent{f.Journal}, Work{Threads: []string{"a", "b"}, Writers: 6, Commits: 8, Seed: seed, Every: 20})
			noError(t, err, "work")
			acks = append(acks, more...)
		}
		cutter.end()
		for _, thread := range []string{"a", "b"} {
			loadWhole(t, f.Journal, thread, 1)
		}
		noError(t, Check(ctx, f.Journal, acks), "check")
	}},
	{"every effect is delivered, and none again that is settled", func(t *testing.T, f Fixture) {
		outbox, ok := f.Journal.(store.Outbox)
		if !ok {
			t.Log("the store has no outbox")
			return
		}
		const each, workers = 6, 5
		journal := insistent{f.Journal}
		var mu sync.Mutex
		delivered, settled := map[store.EffectRef]int{}, map[store.EffectRef]bool{}
		emitted := 0
		cutter := breaks(t, f, 3)
		ctx := ctxOf(t)
		_, short := f.ttl()
		// more emits effects when all are settled, until there were enough cuts. It returns
		// what is settled; nil is the end.
		more := func() (map[store.EffectRef]bool, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(settled) == emitted {
				if cutter.enough() && emitted >= 10*each {
					return nil, nil
				}
				if _, err := journal.Append(ctx, withEffects("t", uint64(emitted/each), "mail", each)); err != nil {
					return nil, fmt.Errorf("append of effects: %w", err)
				}
				emitted += each
			}
			return maps.Clone(settled), nil
		}
		failures := together(workers, func(n int) error {
			results := fmt.Sprint("results ", n)
			done := uint64(0)
			for ctx.Err() == nil {
				before, err := more()
				if before == nil {
					return err
				}
				claims, err := outbox.Claim(ctx, "mail", results, 3, short)
				if err != nil && final(err) {
					return err
				}
				if len(claims) == 0 {
					f.wait(short / 10) // claims whose answer got lost run out
				}
				for i, c := range claims {
					mu.Lock()
					delivered[c.Ref]++
					mu.Unlock()
					if before[c.Ref] {
						return fmt.Errorf("%s was claimed after it was settled", c.Ref)
					}
					if i%2 == 0 { // in the commit of its result, or on its own
						result := commit(results, done)
						result.Settles = []store.EffectRef{c.Ref}
						if _, err := journal.Append(ctx, result); err != nil {
							return fmt.Errorf("append of a result: %w", err)
						}
						done++
					} else if err := insist(ctx, func() error { return outbox.Settle(ctx, c, store.Settlement{}) }); errors.Is(err, store.ErrFenced) {
						continue // the claim ran out, and somebody else has it
					} else if err != nil {
						return fmt.Errorf("settle: %w", err)
					}
					mu.Lock()
					settled[c.Ref] = true
					mu.Unlock()
				}
			}
			return ctx.Err()
		})
		cutter.end()
		for n, err := range failures {
			noError(t, err, "worker %d", n)
		}
		equal(t, emitted, len(delivered), "effects delivered")
		f.wait(2 * short)
		noError(t, insist(ctx, func() error {
			claims, err := outbox.Claim(ctx, "mail", "kit", 100, time.Hour)
			equal(t, 0, len(claims), "effects left")
			return err
		}), "claim in the end")
	}},
	{"leases", func(t *testing.T, f Fixture) {
		leaser, ok := f.Journal.(store.Leaser)
		if !ok {
			t.Log("the store has no leases")
			return
		}
		cutter := breaks(t, f, 4)
		ctx := ctxOf(t)
		failures := together(4, func(n int) error {
			owner := fmt.Sprint("owner ", n)
			for round := 0; round < 5 || !cutter.enough(); round++ {
				var lease store.Lease
				err := insist(ctx, func() (err error) {
					lease, err = leaser.Acquire(ctx, "t", owner, 0)
					return err
				})
				if errors.Is(err, store.ErrLeaseHeld) {
					continue
				}
				if err != nil {
					return err
				}
				for base := lease.Epoch; base < lease.Epoch+3; base++ {
					c := commit("t", base)
					c.Epoch, c.Record = lease.Epoch, fmt.Appendf(nil, "epoch %d", lease.Epoch)
					_, err := insistent{f.Journal}.Append(ctx, c)
					if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) {
						break
					}
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		cutter.end()
		for n, err := range failures {
			noError(t, err, "owner %d", n)
		}
		inEpochs(t, loadWhole(t, f.Journal, "t", 1))
	}},
	{"who listens goes on listening", func(t *testing.T, f Fixture) {
		notifier, ok := f.Journal.(store.Notifier)
		if !ok {
			t.Log("the store has no notices")
			return
		}
		heard := listen(t.Context(), t, f.Journal, "wake")
		ctx := ctxOf(t)
		for n := range 5 {
			f.Break()
			text := fmt.Sprint("notice ", n)
			for came := false; !came; { // what was sent meanwhile is missed
				err := notifier.Notify(ctx, "wake", []byte(text))
				if err != nil && final(err) || ctx.Err() != nil {
					t.Fatalf("notify: %v", err)
				}
				select {
				case data, open := <-heard:
					equal(t, true, open, "the channel is open after cut %d", n)
					came = string(data) == text
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
	}},
}
