package storetest_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// defect names the fault of the store that a child process tests.
const defect = "FIXPOINT_STORETEST_DEFECT"

// faulty is a store with one fault, which the kit has to find.
type faulty struct {
	*memstore.Store
	fault string
	child bool // it stands for another process
	now   func() time.Time

	mu     sync.Mutex
	images map[string]engine.JournalImage
	seen   map[[16]byte]uint64
	cuts   int            // calls that are still to fail since connections were cut
	gone   []engine.Claim // settled
	ends   []func()       // of those who listen
	last   []byte         // notice
}

func newFaulty(inner *memstore.Store, fault string, child bool, now func() time.Time) *faulty {
	return &faulty{Store: inner, fault: fault, child: child, now: now, images: map[string]engine.JournalImage{}, seen: map[[16]byte]uint64{}}
}

// finds says which part of the kit finds each fault. What is wrong is in the methods
// below.
var finds = map[string]string{
	"":                          "",
	"winners twice":             "race",
	"repeats are conflicts":     "journal/a_repeat_gives_the_same_answer",
	"repeats anywhere":          "journal/an_id_counts_only_at_its_own_revision",
	"no fence":                  "leases/expiry_and_takeover",
	"takes leases away":         "leases/held,_taken_again_by_its_owner,_released",
	"renews what is lost":       "leases/held,_taken_again_by_its_owner,_released",
	"releases what is lost":     "leases/held,_taken_again_by_its_owner,_released",
	"hands out its own bytes":   "bytes/nothing_is_shared_with_callers",
	"keeps the caller's bytes":  "bytes/nothing_is_shared_with_callers",
	"loads too little":          "journal/append_and_load",
	"does not wait":             "journal/load_gives_up_with_its_context",
	"tail from the start":       "journal/a_snapshot_ends_the_tail",
	"threads out of order":      "journal/threads_in_pages",
	"page too long":             "journal/threads_in_pages",
	"delete does nothing":       "journal/delete",
	"prunes too much":           "history/prune_by_count_and_age",
	"prunes the newest":         "history/prune_by_count_and_age",
	"does not prune":            "history/prune_by_count_and_age",
	"tells not what is pruned":  "history/prune_by_count_and_age",
	"tells not what is to come": "history/history",
	"claims are not kept":       "outbox/claim_and_settle",
	"claims out of order":       "outbox/claim_and_settle",
	"claims too many":           "outbox/claim_and_settle",
	"settles stale claims":      "outbox/a_claim_runs_out",
	"does not settle":           "outbox/a_commit_settles",
	"forgets effects":           "outbox/claim_and_settle",
	"delivers too early":        "outbox/not_before_its_time",
	"delivers the dead":         "outbox/dead",
	"counts no attempts":        "outbox/retry",
	"emits what was refused":    "outbox/a_refused_commit_emits_and_settles_nothing",
	"lies about its limit":      "size_limit",
	"stays open":                "close",
	"forgets when closed":       "durability",
	"unknown outcomes for ever": "journal/append_and_load",
	"conflicts of long ago":     "race/one_winner_a_revision",
	"conflicts with others":     "race/writers_that_keep_apart_never_conflict",
	"keeps effects small":       "size_limit",
}

// TestKitFindsFaults runs the kit on faulty stores, each in a process of its own.
func TestKitFindsFaults(t *testing.T) {
	t.Parallel()
	all := maps.Clone(finds)
	maps.Copy(all, queueFinds)
	require.Len(t, all, len(finds)+len(queueFinds))
	for fault, group := range all {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			only := "^TestKitChild$"
			for part := range strings.SplitSeq(group, "/") {
				only += "/^" + regexp.QuoteMeta(part) + "$"
			}
			if group == "" {
				only = "^TestKitChild$"
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+only, "-test.v", "-test.timeout=5m")
			cmd.Env = append(os.Environ(), defect+"="+fault)
			out, err := cmd.CombinedOutput()
			if fault == "" {
				require.NoError(t, err, "%s", out)
				return
			}
			require.Error(t, err)
			require.Contains(t, string(out), "--- FAIL: TestKitChild/"+group)
		})
	}
}

// TestKitChild is the child of TestKitFindsFaults. On its own it tests a store without a
// fault.
func TestKitChild(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		var mu sync.Mutex
		now := time.Unix(1_900_000_000, 0)
		clock := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
		inner, fault := memstore.New(memstore.Options{Now: clock, MaxBytes: 1 << 17}), os.Getenv(defect)
		store := newFaulty(inner, fault, false, clock)
		return storetest.Fixture{
			Journal: store,
			Child: func(ctx context.Context, in io.Reader, out io.Writer) error {
				return storetest.Serve(ctx, newFaulty(inner, fault, true, clock), in, out)
			},
			Break: store.cut,
			Advance: func(d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				now = now.Add(d)
			},
			Reopen: func(t *testing.T) engine.Journal {
				_ = store.Store.Close()
				store.Store.Reopen()
				if store.fault == "forgets when closed" {
					store.Store = memstore.New(memstore.Options{Now: clock})
				}
				return store
			},
		}
	})
}

func (f *faulty) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	if err := f.broken(func() error { _, err := f.Store.Append(ctx, c); return err }); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.fault {
	case "conflicts with others":
		if _, busy := f.images[c.Thread]; !busy && len(f.images) > 5 {
			return 0, &engine.JournalConflict{Thread: c.Thread, Base: c.Base, Have: c.Base + 1}
		}
		f.images[c.Thread] = engine.JournalImage{}
	case "repeats are conflicts":
		c.ID[15]++
		if f.seen[c.ID] > 0 {
			c.ID[0]++
		}
	case "repeats anywhere":
		if revision := f.seen[c.ID]; revision > 0 {
			return revision, nil
		}
	case "no fence":
		image, _ := f.Store.Load(ctx, c.Thread, 0)
		c.Epoch = image.Epoch
	case "does not settle":
		c.Settles = nil
	case "forgets effects":
		c.Effects = nil
	case "lies about its limit":
		c.Record = c.Record[:min(len(c.Record), 1<<17)]
	case "keeps effects small":
		c.Effects = slices.Clone(c.Effects)
		for i, e := range c.Effects {
			c.Effects[i].Body = e.Body[:min(len(e.Body), 1<<16)]
		}
	case "delivers too early":
		c.Effects = slices.Clone(c.Effects)
		for i := range c.Effects {
			c.Effects[i].NotBefore = time.Time{}
		}
	case "unknown outcomes for ever":
		return 0, engine.ErrUnknownOutcome
	}
	revision, err := f.Store.Append(ctx, c)
	switch {
	case err == nil:
		f.seen[c.ID] = revision
		if f.fault == "keeps the caller's bytes" {
			image, _ := f.Store.Load(ctx, c.Thread, 0)
			if n := len(image.Tail); n > 0 {
				image.Tail[n-1].Record = c.Record
			}
			f.images[c.Thread] = image
		}
	case f.fault == "conflicts of long ago" && errors.Is(err, engine.ErrJournalConflict):
		return 0, &engine.JournalConflict{Thread: c.Thread, Base: c.Base, Have: c.Base - 1}
	case f.fault == "winners twice" && errors.Is(err, engine.ErrJournalConflict):
		return c.Base + 1, nil
	case f.fault == "emits what was refused" && errors.Is(err, engine.ErrJournalConflict):
		_, _ = f.Store.Append(ctx, engine.JournalCommit{ID: c.ID, Thread: "elsewhere", Effects: c.Effects})
	}
	return revision, err
}

func (f *faulty) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	if err := f.broken(func() error { return nil }); err != nil {
		return engine.JournalImage{}, err
	}
	if f.fault == "does not wait" || f.fault == "loads what is old" && f.child {
		atLeast = 0
	}
	image, err := f.Store.Load(ctx, thread, atLeast)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.fault {
	case "loads what is old":
		if f.child && image.Revision > 3 {
			return f.Store.LoadAt(ctx, thread, image.Revision-1)
		}
	case "loads too little":
		image.Tail = image.Tail[:max(0, len(image.Tail)-1)]
	case "tail from the start":
		if image.SnapshotAt > 0 {
			image.Tail = slices.Insert(image.Tail, 0, engine.JournalRecord{Revision: image.SnapshotAt})
		}
	case "hands out its own bytes", "keeps the caller's bytes":
		if kept, ok := f.images[thread]; ok && kept.Revision == image.Revision {
			return kept, err
		}
		f.images[thread] = image
	}
	return image, err
}

func (f *faulty) LoadAt(ctx context.Context, thread string, revision uint64) (engine.JournalImage, error) {
	image, err := f.Store.LoadAt(ctx, thread, revision)
	untold := f.fault == "tells not what is pruned" && revision > 0 && revision <= 10 || f.fault == "tells not what is to come" && revision > 10
	if untold && errors.Is(err, engine.ErrNoRevision) {
		return image, errors.New("some error")
	}
	return image, err
}

func (f *faulty) Threads(ctx context.Context, after string, limit int) ([]string, error) {
	if f.fault == "page too long" {
		limit++
	}
	ids, err := f.Store.Threads(ctx, after, limit)
	if f.fault == "threads out of order" {
		slices.Reverse(ids)
	}
	return ids, err
}

func (f *faulty) Prune(ctx context.Context, thread string, p engine.PrunePolicy) error {
	switch f.fault {
	case "does not prune":
		return nil
	case "prunes too much":
		p.KeepSnapshots = 1
	case "prunes the newest":
		return f.Store.Delete(ctx, thread)
	}
	return f.Store.Prune(ctx, thread, p)
}

func (f *faulty) Delete(ctx context.Context, thread string) error {
	if f.fault == "delete does nothing" {
		return nil
	}
	return f.Store.Delete(ctx, thread)
}

func (f *faulty) Close() error {
	if f.fault == "stays open" {
		return nil
	}
	return f.Store.Close()
}

func (f *faulty) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	if err := f.broken(func() error { _, err := f.Store.Acquire(ctx, thread, owner, ttl); return err }); err != nil {
		return engine.Lease{}, err
	}
	l, err := f.Store.Acquire(ctx, thread, owner, ttl)
	var held *engine.LeaseHeld
	if (f.fault == "takes leases away" || f.fault == "knows leases of its process only" && f.child) && errors.As(err, &held) {
		return f.Store.Acquire(ctx, thread, held.Owner, ttl)
	}
	return l, err
}

func (f *faulty) Renew(ctx context.Context, l engine.Lease, ttl time.Duration) (engine.Lease, error) {
	if f.fault == "renews what is lost" {
		l.Until = f.now().Add(ttl)
		return l, nil
	}
	return f.Store.Renew(ctx, l, ttl)
}

func (f *faulty) Release(ctx context.Context, l engine.Lease) error {
	err := f.Store.Release(ctx, l)
	if f.fault == "releases what is lost" && errors.Is(err, engine.ErrFenced) {
		return nil
	}
	return err
}

func (f *faulty) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]engine.Claim, error) {
	if err := f.broken(func() error { _, err := f.Store.Claim(ctx, lane, worker, limit, ttl); return err }); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.fault == "delivers again what is settled" && len(f.gone) > 0 {
			return f.gone[:1], nil
		}
		return nil, err
	}
	switch f.fault {
	case "claims for its process only":
		if f.child {
			ttl = 0
		}
	case "claims are not kept":
		ttl = 0
	case "claims too many":
		limit++
	}
	claims, err := f.Store.Claim(ctx, lane, worker, limit, ttl)
	switch f.fault {
	case "claims out of order":
		slices.Reverse(claims)
	case "counts no attempts":
		for i := range claims {
			claims[i].Attempts = 1
		}
	}
	return claims, err
}

func (f *faulty) Settle(ctx context.Context, c engine.Claim, how engine.Settlement) error {
	if f.fault == "delivers the dead" && how.Dead {
		how = engine.Settlement{RetryAt: time.Unix(1, 0)}
	}
	if err := f.broken(func() error { return f.Store.Settle(ctx, c, how) }); err != nil {
		return err
	}
	if f.fault == "postpones to now" && !how.RetryAt.IsZero() {
		how.RetryAt = time.Unix(1, 0)
	}
	if f.fault == "forgets why" {
		how.Error = ""
	}
	err := f.Store.Settle(ctx, c, how)
	if err == nil {
		f.mu.Lock()
		f.gone = append(f.gone, c)
		f.mu.Unlock()
	}
	if f.fault == "settles stale claims" && errors.Is(err, engine.ErrFenced) {
		return nil
	}
	return err
}
