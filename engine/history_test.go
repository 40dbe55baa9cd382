package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// duPast is what somebody who watches a thread from its beginning knows of its past.
type duPast struct {
	mu     sync.Mutex
	states map[uint64]state.Dump
	keys   map[uint64][]string
	order  []uint64
}

func duWatch(t testing.TB, th *engine.Thread) *duPast {
	p := &duPast{states: map[uint64]state.Dump{}, keys: map[uint64][]string{}}
	th.Subscribe(func(c state.Commit) {
		dump, err := c.Snapshot.Export()
		require.NoError(t, err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.states[dump.Revision] = dump
		for _, w := range c.Writes {
			p.keys[dump.Revision] = append(p.keys[dump.Revision], w.Update.Key().Name())
		}
		slices.Sort(p.keys[dump.Revision])
		p.order = append(p.order, dump.Revision)
	})
	return p
}

func duHistory(t testing.TB, th *engine.Thread) (list []engine.Revision) {
	t.Helper()
	for r, err := range th.History(t.Context()) {
		require.NoError(t, err)
		list = append(list, r)
	}
	return list
}

// same checks that a thread's past is as it was watched.
func (p *duPast) same(t testing.TB, th *engine.Thread) {
	t.Helper()
	var revisions []uint64
	for i, r := range duHistory(t, th) {
		revisions = append(revisions, r.Revision)
		past, err := th.Past(t.Context(), r.Revision)
		require.NoError(t, err)
		dump, err := past.Export()
		require.NoError(t, err)
		require.Equal(t, p.states[r.Revision], dump, "revision %d", r.Revision)
		l := phase.RunLifecycle.Get(past)
		require.Equal(t, []any{l.Run, l.Step, l.Status}, []any{r.Run, r.Step, r.Status})
		require.False(t, r.Time.IsZero())
		if i < len(p.order)-1 {
			require.Subset(t, p.keys[r.Revision], r.Keys, "revision %d", r.Revision)
		}
	}
	want := slices.Clone(p.order)
	slices.Reverse(want)
	require.Equal(t, want, revisions, "every commit once, the newest first")
}

// Capability B3. A property: whatever happens on a thread that is kept, its history has
// every commit once, and Past gives for each the state that a subscriber saw, for the
// thread that made it and for those opened later, whose revisions are the same.
func TestHistoryIsWhatWasSeen(t *testing.T) {
	for seed := range uint64(6) {
		dice := rand.New(rand.NewPCG(seed, 1))
		store, shop, post := memstore.New(memstore.Options{}), newPeShop(), &duPost{}
		c := shop.config(store)
		if seed%2 == 1 {
			c.Owner = "ann"
		}
		c.Plugins = append(c.Plugins, post.plugin(), gaOn("mailer", phase.StepEnd, duEmits(duMail.New("x"))))
		eng := duEngine(t, c)
		th, err := eng.NewThread("t")
		require.NoError(t, err)
		seen := duWatch(t, th)
		for range 7 {
			switch dice.IntN(4) {
			case 0, 1:
				_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
				if errors.Is(err, engine.ErrWaiting) {
					_, err = th.Resume(t.Context(), peSpec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: dice.IntN(2) == 0}})
				}
			case 2:
				_, err = th.Submit(t.Context(), "x", duSends(fmt.Sprint(dice.IntN(9))))
			default:
				seen.same(t, th)
				ended := th
				th, err = eng.OpenThread(t.Context(), "t")
				require.NoError(t, err)
				require.Equal(t, ended.Snapshot().Revision(), th.Snapshot().Revision())
				next := duWatch(t, th)
				next.states, next.keys, next.order = seen.states, seen.keys, seen.order
				seen = next
			}
			require.NoError(t, err)
		}
		seen.same(t, th)
		_, err = th.Past(t.Context(), th.Snapshot().Revision()+1)
		require.ErrorIs(t, err, engine.ErrNoRevision)
	}
}

// duRun is a thread on which a run of two steps has happened, and what was seen of it.
func duRun(t testing.TB, journal engine.Journal) (*engine.Thread, *duPast) {
	t.Helper()
	th, err := newPeShop().engine(t, journal).NewThread("t")
	require.NoError(t, err)
	seen := duWatch(t, th)
	_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	res, err := th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Len(t, seen.order, int(th.Snapshot().Revision()))
	require.Greater(t, len(seen.order), 20)
	return th, seen
}

// Capability B3. Without a journal the history is what Limits.History keeps.
func TestHistoryInMemory(t *testing.T) {
	th, seen := duRun(t, nil)
	list := duHistory(t, th)
	require.Len(t, list, 17)
	for i, r := range list {
		require.Equal(t, th.Snapshot().Revision()-uint64(i), r.Revision)
		require.True(t, r.Time.IsZero())
		if i < len(list)-1 {
			require.Subset(t, seen.keys[r.Revision], r.Keys)
		}
	}
	_, err := th.Past(t.Context(), 1)
	require.ErrorIs(t, err, engine.ErrNoRevision)
}

// Capability B3. What was pruned is not in the history, and what a store without a past
// has is what came after its newest snapshot.
func TestHistoryThatIsNotWhole(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, seen := duRun(t, store)
	require.Len(t, duHistory(t, th), len(seen.order))
	require.NoError(t, store.Prune(t.Context(), "t", engine.PrunePolicy{KeepSnapshots: 2}))
	list := duHistory(t, th)
	require.Less(t, len(list), len(seen.order))
	for i, r := range list {
		require.Equal(t, th.Snapshot().Revision()-uint64(i), r.Revision)
	}
	require.Empty(t, list[len(list)-1].Keys, "nobody knows what the oldest one changed")
	_, err := th.Past(t.Context(), 1)
	require.ErrorIs(t, err, engine.ErrNoRevision)

	short, _ := duRun(t, onlyJournal{memstore.New(memstore.Options{})})
	require.Len(t, duHistory(t, short), 1, "the last commit was a snapshot")
	empty, err := newPeShop().engine(t, store).NewThread("empty")
	require.NoError(t, err)
	require.Empty(t, duHistory(t, empty))
}

// Capability B3. The iteration may be broken off anywhere.
func TestHistoryBrokenOff(t *testing.T) {
	th, seen := duRun(t, memstore.New(memstore.Options{}))
	for n := range len(seen.order) {
		got := 0
		for range th.History(t.Context()) {
			if got++; got > n {
				break
			}
		}
		require.Equal(t, n+1, got)
	}
}

// Capability B3. A store that fails ends the history with its error, after what could be
// told rightly; it is not taken for the beginning of the thread.
func TestHistoryOfABadJournal(t *testing.T) {
	stop := make(chan struct{})
	for _, name := range []string{"error", "panic", "goexit"} {
		store := duNewStore(memstore.Options{})
		th, _ := duRun(t, store)
		calls := 0
		store.loadAt = func() error {
			if calls++; calls == 2 {
				return duFaults(stop)[name]()
			}
			return nil
		}
		var list []engine.Revision
		var failed error
		for r, err := range th.History(t.Context()) {
			require.NoError(t, failed, "nothing comes after an error")
			if err != nil {
				failed = err
				continue
			}
			list = append(list, r)
		}
		require.ErrorContains(t, failed, "thread t", name)
		require.NotEmpty(t, list)
		for i, r := range list {
			require.Equal(t, th.Snapshot().Revision()-uint64(i), r.Revision)
		}
		calls = 1
		_, err := th.Past(t.Context(), 1)
		require.Error(t, err)
		require.NotErrorIs(t, err, engine.ErrNoRevision)
	}
	faulty, err := faultstore.New(onlyJournal{memstore.New(memstore.Options{})}, faultstore.Config{})
	require.NoError(t, err)
	th, _ := duRun(t, faulty)
	require.Len(t, duHistory(t, th), 1, "a store without a past")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range th.History(ended) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// Capability B3. The past can be read while runs go on.
func TestHistoryMeanwhile(t *testing.T) {
	store := memstore.New(memstore.Options{})
	th, _ := duRun(t, store)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 4 {
			_, _ = th.Run(t.Context(), peSpec, engine.Prompt("sell"))
			_, _ = th.Resume(t.Context(), peSpec, engine.Input{}, feYes)
		}
	}()
	for more := true; more; {
		select {
		case <-done:
			more = false
		case <-time.After(time.Microsecond):
		}
		last := uint64(0)
		for r, err := range th.History(t.Context()) {
			require.NoError(t, err)
			require.True(t, last == 0 || r.Revision == last-1)
			last = r.Revision
		}
		require.EqualValues(t, 1, last)
	}
}

// Capability B3. Diff tells which keys differ, with their values, in either direction.
func TestHistoryDiff(t *testing.T) {
	th, _ := duRun(t, memstore.New(memstore.Options{}))
	now := th.Snapshot().Revision()
	diff, err := th.Diff(t.Context(), 1, now)
	require.NoError(t, err)
	back, err := th.Diff(t.Context(), now, 1)
	require.NoError(t, err)
	require.Len(t, back, len(diff))
	var names []string
	for i, d := range diff {
		names = append(names, d.Key)
		require.Equal(t, engine.KeyDiff{Key: d.Key, Before: d.After, After: d.Before}, back[i])
	}
	require.True(t, slices.IsSorted(names))
	require.Contains(t, names, "shop.sold")
	i := slices.Index(names, "shop.sold")
	require.Nil(t, diff[i].Before)
	require.Equal(t, "2", string(diff[i].After))
	same, err := th.Diff(t.Context(), 5, 5)
	require.NoError(t, err)
	require.Empty(t, same)
	_, err = th.Diff(t.Context(), 5, now+1)
	require.ErrorIs(t, err, engine.ErrNoRevision)
	_, err = th.Diff(t.Context(), now+1, 5)
	require.ErrorIs(t, err, engine.ErrNoRevision)
}
