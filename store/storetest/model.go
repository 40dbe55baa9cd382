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
	effects modelEffects
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
	m := &model{threads: map[string]*modelThread{}, effects: modelEffects{}}
	_, leases := f.Journal.(store.Leaser)
	_, outbox := f.Journal.(store.Outbox)
	_, queue := f.Journal.(store.Queue)
	for range n {
		id := modelThreads[random.IntN(len(modelThreads))]
		switch k := random.IntN(24); {
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
			maps.DeleteFunc(m.effects, func(ref store.EffectRef, _ *modelEffect) bool { return ref.Thread == id })
		case k == 14 && f.Reopen != nil && random.IntN(4) == 0:
			f.Journal = f.Reopen(t)
		case k < 20 && outbox:
			m.effects.claim(t, f.Journal, random)
		case k < 22 && outbox:
			m.effects.settle(t, f.Journal, random)
		case queue:
			m.effects.requeue(t, f.Journal, random)
		}
		m.compare(t, f.Journal, id)
		if queue {
			m.effects.compare(t, f.Journal)
		}
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
	for range random.IntN(4) {
		e := store.Effect{Lane: modelLanes[random.IntN(len(modelLanes))], Body: []byte{byte(random.IntN(256))}}
		if random.IntN(6) == 0 {
			e.NotBefore = farOff()
		}
		c.Effects = append(c.Effects, e)
	}
	for _, ref := range m.effects.sorted(nil) {
		if random.IntN(8) == 0 {
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
	m.effects.commit(c)
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
