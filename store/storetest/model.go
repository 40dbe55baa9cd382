package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// modelTests run random calls, one after the other, against a store and against a
// model of a few maps, and compare all answers.
var modelTests = []test{
	{"random calls", func(t *testing.T, f Fixture) {
		for seed := range uint64(3) {
			runModel(t, &f, rand.New(rand.NewPCG(seed, 77)), 150)
			for _, thread := range modelThreads {
				noError(t, f.Journal.Delete(t.Context(), thread), "delete")
			}
		}
	}},
}

var modelThreads = []string{"a", "b", "a/1"}

type model struct {
	threads map[string]*modelThread
	effects map[store.EffectRef]bool // true: claimed for good
}

type modelThread struct {
	commits []store.Commit // lease commits included, which have no record
	epoch   uint64
}

func (m *model) thread(id string) *modelThread {
	if m.threads[id] == nil {
		return &modelThread{}
	}
	return m.threads[id]
}

// runModel makes n random calls.
func runModel(t *testing.T, f *Fixture, random *rand.Rand, n int) {
	m := &model{threads: map[string]*modelThread{}, effects: map[store.EffectRef]bool{}}
	_, leases := f.Journal.(store.Leaser)
	_, outbox := f.Journal.(store.Outbox)
	for range n {
		id := modelThreads[random.IntN(len(modelThreads))]
		switch k := random.IntN(20); {
		case k < 10:
			m.append(t, f.Journal, id, random)
		case k == 10:
			m.repeat(t, f.Journal, id)
		case k == 11 && leases:
			m.acquire(t, f.Journal, id)
		case k == 12:
			noError(t, f.Journal.Prune(t.Context(), id, store.PrunePolicy{KeepSnapshots: 1 + random.IntN(2)}), "prune")
		case k == 13 && random.IntN(4) == 0:
			noError(t, f.Journal.Delete(t.Context(), id), "delete")
			delete(m.threads, id)
			maps.DeleteFunc(m.effects, func(ref store.EffectRef, _ bool) bool { return ref.Thread == id })
		case k == 14 && outbox:
			m.claim(t, f.Journal, random)
		case k == 15 && f.Reopen != nil && random.IntN(4) == 0:
			f.Journal = f.Reopen(t)
		}
		m.compare(t, f.Journal, id)
	}
}

func (m *model) append(t *testing.T, j store.Journal, id string, random *rand.Rand) {
	thread := m.thread(id)
	have := uint64(len(thread.commits))
	c := commit(id, have)
	if random.IntN(4) == 0 {
		c = snapshotCommit(id, have)
	}
	c.Epoch = thread.epoch
	wrong := random.IntN(8)
	switch wrong {
	case 0:
		c.Base += uint64(1 + random.IntN(3))
	case 1:
		if thread.epoch > 0 {
			c.Epoch = thread.epoch - 1
		}
	}
	for range random.IntN(3) {
		c.Effects = append(c.Effects, store.Effect{Lane: "lane", Body: []byte{byte(random.IntN(256))}})
	}
	for ref := range m.effects {
		if random.IntN(4) == 0 {
			c.Settles = append(c.Settles, ref)
		}
	}
	revision, err := j.Append(t.Context(), c)
	switch {
	case wrong == 1 && thread.epoch > 0:
		isError(t, err, "append with an old epoch", store.ErrFenced)
		return
	case wrong == 0:
		isError(t, err, "append at another revision", store.ErrConflict)
		return
	}
	noError(t, err, "append to %s at %d", id, have)
	equal(t, have+1, revision, "revision")
	thread.commits = append(thread.commits, c)
	m.threads[id] = thread
	for _, ref := range c.Settles {
		delete(m.effects, ref)
	}
	for i := range c.Effects {
		m.effects[store.EffectRef{Thread: id, Revision: revision, Index: uint32(i)}] = false
	}
}

// repeat sends the newest commit again; it changes nothing.
func (m *model) repeat(t *testing.T, j store.Journal, id string) {
	thread := m.thread(id)
	if len(thread.commits) > 0 {
		appendAll(t, j, thread.commits[len(thread.commits)-1])
	}
}

func (m *model) acquire(t *testing.T, j store.Journal, id string) {
	lease, err := j.(store.Leaser).Acquire(t.Context(), id, "kit", time.Hour)
	noError(t, err, "acquire")
	thread := m.thread(id)
	equal(t, uint64(len(thread.commits))+1, lease.Epoch, "epoch")
	thread.epoch = lease.Epoch
	image := load(t, j, id, lease.Epoch)
	c := store.Commit{ID: image.LastID, Thread: id, Base: lease.Epoch - 1, Epoch: lease.Epoch}
	if n := len(image.Tail); n > 0 {
		c.Time = image.Tail[n-1].Time // the store's
	}
	thread.commits = append(thread.commits, c)
	m.threads[id] = thread
}

// claim takes some effects, checks their order, and settles half of them.
func (m *model) claim(t *testing.T, j store.Journal, random *rand.Rand) {
	var free []store.EffectRef
	for ref, claimed := range m.effects {
		if !claimed {
			free = append(free, ref)
		}
	}
	limit := random.IntN(len(free) + 2)
	claims := claim(t, j, "lane", limit, time.Hour)
	equal(t, min(limit, len(free)), len(claims), "claims of at most %d among %d", limit, len(free))
	last := map[string]store.EffectRef{}
	for _, c := range claims {
		if !slices.Contains(free, c.Ref) {
			t.Fatalf("effect %s was claimed, or settled, or never emitted", c.Ref)
		}
		if before, ok := last[c.Ref.Thread]; ok && (before.Revision > c.Ref.Revision || before.Revision == c.Ref.Revision && before.Index >= c.Ref.Index) {
			t.Fatalf("%s comes after %s", c.Ref, before)
		}
		last[c.Ref.Thread] = c.Ref
		m.effects[c.Ref] = true
		if random.IntN(2) == 0 {
			settle(t, j, c, store.Settlement{})
			delete(m.effects, c.Ref)
		}
	}
}

func (m *model) compare(t *testing.T, j store.Journal, id string) {
	want := store.Image{}
	if thread := m.threads[id]; thread != nil {
		want = imageOf(1, thread.commits)
		want.Epoch = thread.epoch
	}
	sameImage(t, want, load(t, j, id, 0), fmt.Sprintf("load of %s", id))
	page, err := j.Threads(t.Context(), "", 10)
	noError(t, err, "threads")
	if !slices.Equal(page, slices.Sorted(maps.Keys(m.threads))) {
		t.Fatalf("threads are %q, want %q", page, slices.Sorted(maps.Keys(m.threads)))
	}
}
