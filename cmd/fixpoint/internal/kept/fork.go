package kept

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// ErrTaken is returned for the id of a thread that is there.
var ErrTaken = errors.New("there is a thread of that id")

// Open opens a thread, to look at its past. Its run cannot go on from here: only the
// keys of the engine and of this package are known, the others are kept as they are.
func (s *Store) Open(ctx context.Context, id string) (*engine.Thread, error) {
	return s.reader.OpenThread(ctx, id)
}

// Fork makes a new thread that begins as another one was at a revision. A run that had
// not ended there is the new thread's own, and can be resumed.
func (s *Store) Fork(ctx context.Context, from string, revision uint64, id string) (Thread, error) {
	image, err := s.Journal.Load(ctx, id, 0)
	if err != nil {
		return Thread{}, err
	}
	if image.Revision > 0 {
		return Thread{}, fmt.Errorf("%w: %s", ErrTaken, id)
	}
	th, err := s.Open(ctx, from)
	if err != nil {
		return Thread{}, err
	}
	past, err := th.Past(ctx, revision)
	if err != nil {
		return Thread{}, err
	}
	rec, l := Key.Get(past), phase.RunLifecycle.Get(past)
	var edits []state.Update
	if ended := l.Run == rec.Run && l.Status == phase.Done; rec.Run != "" && !ended {
		rec.Run = RunID(id, rec.Runs)
		edits = append(edits, Key.With(rec))
	}
	// An engine of its own, since the fork's run gets its id from it.
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{Plugin(), worker.Plugin()}, Journal: s.Journal, NewID: func() string { return RunID(id, rec.Runs) },
	})
	if err != nil {
		return Thread{}, err
	}
	defer func() { _ = eng.Close(context.WithoutCancel(ctx)) }() // it has nothing open
	if th, err = eng.OpenThread(ctx, from); err != nil {
		return Thread{}, err
	}
	if _, err := th.Fork(ctx, revision, id, edits...); err != nil {
		return Thread{}, err
	}
	return s.Thread(ctx, id)
}
