package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

// JournalLimits says what is not known of a run that only its store tells of.
const JournalLimits = "of a run without a trace the store tells what each commit changed and when, not who wrote it, nor what hooks and gates did; " +
	"run --trace FILE tells that too"

// ReadStore reads the threads of a store: what its journal tells of them, and where a run
// was started with --trace, that trace. It does so in a copy, and runs may go on
// meanwhile.
func ReadStore(ctx context.Context, folder string) (*recording.Recording, error) {
	s, err := newShelf(folder)
	if err != nil {
		return nil, err
	}
	s.patience = 0 // what is there now is all there is
	return s.rec, s.read(ctx)
}

// FollowStore is ReadStore for a source, and what is added to the store until ctx ends.
func FollowStore(ctx context.Context, folder string, source *Source, caught func()) error {
	return followStore(ctx, folder, source, caught, time.Second)
}

func followStore(ctx context.Context, folder string, source *Source, caught func(), every time.Duration) error {
	s, err := newShelf(folder)
	if err != nil {
		return err
	}
	err = s.read(ctx)
	s.rec.SetLive(true)
	source.Replace(s.rec)
	if err != nil {
		return err
	}
	caught()
	for err == nil {
		// A store that is large is looked at less often than a small one.
		select {
		case <-time.After(max(every, 10*s.took)):
		case <-ctx.Done():
			return nil
		}
		switch err = s.read(ctx); {
		case errors.Is(err, errPruned):
			if s, err = newShelf(folder); err == nil {
				err = s.read(ctx)
				s.rec.SetLive(true)
				source.Replace(s.rec)
			}
		case errors.Is(err, kept.ErrNoStore):
			s.rec.Note("the store is not there any more")
			s.rec.SetLive(false)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return err
}

// shelf is what was read of a store.
type shelf struct {
	folder  string
	rec     *recording.Recording
	keys    *state.Schema
	threads map[string]*reading
	traces  map[string]*traced // by path
	owed    map[effects.ID]bool

	patience time.Duration // with a trace that is behind the store
	seen     os.FileInfo   // of the file that was read last
	took     time.Duration
}

// reading is how far a thread was read.
type reading struct {
	past
	narrator
	made []engine.Event // by the narrator, of the commit that is being read
	news []piece        // that were not told yet
}

// piece is an event, and the trace that may tell it better.
type piece struct {
	event engine.Event
	trace *traced // nil: none
	since time.Time
}

func newShelf(folder string) (*shelf, error) {
	sweep()
	keys, err := schema()
	if err != nil {
		return nil, err
	}
	s := &shelf{
		folder: folder, rec: recording.New(folder), keys: keys,
		threads: map[string]*reading{}, traces: map[string]*traced{}, owed: map[effects.ID]bool{}, patience: lag,
	}
	s.rec.Note(JournalLimits)
	return s, nil
}

// read reads what is new. The error is errPruned when what was told is not true any
// more.
func (s *shelf) read(ctx context.Context) error {
	if err := kept.Check(s.folder); err != nil {
		return err
	}
	file, err := os.Stat(kept.File(s.folder))
	if err != nil {
		return err
	}
	if s.seen == nil || file.Size() != s.seen.Size() || !file.ModTime().Equal(s.seen.ModTime()) {
		began := time.Now()
		err := withCopy(ctx, s.folder, func(store *kept.Store) error { return s.journal(ctx, store) })
		if err != nil {
			return err
		}
		s.seen, s.took = file, time.Since(began)
	}
	for _, path := range slices.Sorted(maps.Keys(s.traces)) {
		if err := s.traces[path].news(); err != nil {
			return err
		}
	}
	waiting := slices.DeleteFunc(slices.Collect(maps.Values(s.threads)), func(t *reading) bool { return len(t.news) == 0 })
	slices.SortFunc(waiting, func(a, b *reading) int {
		x, y := a.news[0].event.Head(), b.news[0].event.Head()
		return cmp.Or(x.Time.Compare(y.Time), cmp.Compare(x.Thread, y.Thread))
	})
	for _, t := range waiting {
		if err := s.tell(t); err != nil {
			return err
		}
	}
	return nil
}

// journal reads the news of all threads.
func (s *shelf) journal(ctx context.Context, store *kept.Store) error {
	found := map[string]bool{}
	for after := ""; ; {
		ids, err := store.Journal.Threads(ctx, after, 256)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			after = id
			if worker.IsInbox(id) {
				continue
			}
			found[id] = true
			if err := s.thread(ctx, store.Journal, id); err != nil {
				return err
			}
		}
	}
	for id := range s.threads {
		if !found[id] {
			return errPruned
		}
	}
	return s.effects(ctx, store)
}

func (s *shelf) thread(ctx context.Context, j engine.Journal, id string) error {
	t := s.threads[id]
	if t == nil {
		t = &reading{past: past{thread: id}}
		t.narrator = narrator{thread: id, tell: func(e engine.Event) { t.made = append(t.made, e) }}
		s.threads[id] = t
	}
	return t.more(ctx, j, s.keys, func(c commit) error {
		if first := c.after.Revision(); c.before == nil && first > 1 {
			s.rec.Note(fmt.Sprintf("of thread %s nothing is kept before revision %d", id, first))
		}
		// The record is written before its run begins.
		path := kept.Key.Get(c.after).Trace
		if path != "" && s.traces[path] == nil {
			s.traces[path] = newTraced(path, s.rec)
		}
		err := t.commit(c)
		for _, e := range t.made {
			t.news = append(t.news, piece{e, s.traces[path], time.Now()})
		}
		t.made = nil
		return err
	})
}

// effects tells of what is in the outbox of runs that are not under way.
func (s *shelf) effects(ctx context.Context, store *kept.Store) error {
	all, err := outbox(ctx, store)
	if err != nil {
		return err
	}
	left := map[effects.ID]bool{}
	for _, o := range all {
		left[o.event.ID] = true
		t := s.threads[o.thread]
		if t == nil || t.store == nil || s.owed[o.event.ID] {
			continue
		}
		if l := phase.RunLifecycle.Get(t.store.Snapshot()); l.Status == phase.Running {
			continue // about to be delivered
		}
		s.owed[o.event.ID] = true
		e := o.event
		e.Header = t.header(commit{time: t.last, after: t.store.Snapshot()}, 0)
		e.Revision = o.event.ID.Revision
		// A trace tells how its delivery went.
		t.news = append(t.news, piece{e, s.traces[kept.Key.Get(t.store.Snapshot()).Trace], time.Now()})
	}
	for id := range s.owed {
		if !left[id] {
			return errPruned // it was told to be there, and was delivered since
		}
	}
	return nil
}

// tell gives the recording the news of a thread, but those that a trace tells better.
func (s *shelf) tell(t *reading) error {
	for len(t.news) > 0 {
		p := t.news[0]
		if p.trace != nil && !p.trace.begun {
			if err := p.trace.begin(); err != nil {
				return err
			}
		}
		h := p.event.Head()
		var r *reach
		told := false
		if p.trace != nil {
			r, told = p.trace.runs[place{h.Thread, h.Run}], p.trace.told[commitOf{h.Thread, h.Revision}]
		}
		switch {
		case h.Run == "" && told: // by which what the command keeps of a run came into the store
		case r == nil:
			s.rec.Observe(p.event)
		case h.Revision <= r.revision: // told
		case !r.over && time.Since(p.since) < s.patience:
			return nil // the trace is about to tell it
		default:
			if r.seq++; p.event.Type() == (engine.RunResumed{}).Type() {
				r.seq = 1
			}
			s.rec.Observe(numbered(p.event, r.seq))
		}
		t.news = t.news[1:]
	}
	return nil
}
