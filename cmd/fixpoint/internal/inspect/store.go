package inspect

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

// JournalLimits says what is not known of a run that only its store tells of.
const JournalLimits = "a store knows what each commit changed and when, not who wrote it, nor what hooks and gates did; " +
	"a run with --trace FILE tells that too"

// ReadStore reads the threads of a store: what its journal tells of them, and where a run
// was started with --trace, that trace. It does so in a copy, and runs may go on
// meanwhile.
func ReadStore(ctx context.Context, folder string) (*recording.Recording, error) {
	s, err := newShelf(folder)
	if err != nil {
		return nil, err
	}
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

	seen os.FileInfo // of the file that was read last
	took time.Duration
}

// reading is how far a thread was read.
type reading struct {
	past
	narrator
	news []engine.Event // that were not told yet
}

func newShelf(folder string) (*shelf, error) {
	keys, err := schema()
	if err != nil {
		return nil, err
	}
	s := &shelf{
		folder: folder, rec: recording.New(folder), keys: keys,
		threads: map[string]*reading{}, traces: map[string]*traced{}, owed: map[effects.ID]bool{},
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
	for _, t := range s.traces {
		if err := t.more(); err != nil {
			return err
		}
	}
	for _, t := range s.threads {
		s.tell(t)
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
			found[id], after = true, id
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
		t.narrator = narrator{thread: id, tell: func(e engine.Event) { t.news = append(t.news, e) }}
		s.threads[id] = t
	}
	return t.more(ctx, j, s.keys, func(c commit) error {
		if rec := kept.Key.Get(c.after); rec.Trace != "" && s.traces[rec.Trace] == nil {
			s.traces[rec.Trace] = newTraced(rec.Trace, s.rec)
		}
		return t.commit(c)
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
		t.news = append(t.news, e)
	}
	for id := range s.owed {
		if !left[id] {
			return errPruned // it was told to be there, and was delivered since
		}
	}
	return nil
}

// tell gives the recording the news of a thread, but those that a trace tells better.
func (s *shelf) tell(t *reading) {
	for len(t.news) > 0 {
		e := t.news[0]
		h := e.Head()
		switch r := s.reach(place{h.Thread, h.Run}); {
		case r == nil:
			s.rec.Observe(e)
		case h.Run == "":
			if !r.commits[h.Revision] {
				s.rec.Observe(e)
			}
		case h.Revision <= r.revision: // told
		case !r.over && h.Time.Before(r.time.Add(lag)):
			return // the trace is about to tell it
		default:
			if r.seq++; e.Type() == (engine.RunResumed{}).Type() {
				r.seq = 1
			}
			s.rec.Observe(numbered(e, r.seq))
		}
		t.news = t.news[1:]
	}
}

// reach is how far traces tell of a place; nil: they do not.
func (s *shelf) reach(at place) *reach {
	for _, t := range s.traces {
		if r := t.runs[at]; r != nil {
			return r
		}
	}
	return nil
}
