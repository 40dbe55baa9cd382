package snapshots

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	// ErrUnknown is returned for the id of a snapshot that the thread does not have.
	ErrUnknown = errors.New("snapshots: no such snapshot")
	// ErrNoStore is returned when the workspace is in no git work tree and Options.Store
	// says no place for copies.
	ErrNoStore = errors.New("snapshots: there is no place for snapshots: make the workspace a git work tree, or set Options.Store")
	// ErrStores is returned for two snapshots whose files are not in one place.
	ErrStores = errors.New("snapshots: one of the snapshots is in the repository and one is in copies; they cannot be compared")
	// ErrTooLarge is returned for a workspace that is beyond Options.Limits.
	ErrTooLarge = errors.New("snapshots: the workspace is too large")
)

// Take takes a snapshot now and returns it, or the last one if nothing has changed
// since. Unlike those that the plugin takes by itself it makes the thread forget none.
func (p *Plugin) Take(ctx context.Context, th *engine.Thread) (Snapshot, error) {
	if _, err := p.options(); err != nil {
		return Snapshot{}, err
	}
	defer p.lock()()
	got, err := p.submit(ctx, th, Snapshot{Why: Asked}, nil)
	return got.Snapshot, err
}

// submit takes a snapshot and tells the thread.
func (p *Plugin) submit(ctx context.Context, th *engine.Thread, s Snapshot, also []file) (taken, error) {
	var cmd phase.Command
	s.Run = phase.RunLifecycle.Get(th.Snapshot()).Run
	got, err := p.take(ctx, th.Snapshot(), th.ID(), s, 0, also, &cmd)
	if err == nil && !cmd.IsZero() {
		_, err = th.Submit(ctx, Name, cmd)
	}
	return got, err
}

// taken is a snapshot and the files that it holds.
type taken struct {
	Snapshot
	files []file
}

// take takes a snapshot of what is covered, and of the paths of also, and adds to the
// command what the thread's state has to say about it; nothing if the last one is the
// same. With keep the thread keeps that many.
func (p *Plugin) take(ctx context.Context, snap *state.Snapshot, thread string, s Snapshot, keep int, also []file, cmd *phase.Command) (taken, error) {
	w, err := p.open(ctx, "")
	if err != nil {
		return taken{}, err
	}
	defer w.close()
	files, err := w.scan(ctx, also, true)
	if err != nil {
		return taken{}, err
	}
	tree, err := w.store.tree(ctx, files)
	if err != nil {
		return taken{}, err
	}
	n, before := last(snap)
	if n > 0 && before.Tree == tree && before.Store == w.store.name() {
		return taken{before, files}, nil
	}
	// Another tool that runs now may have taken one that the thread is yet to be told of.
	newest, err := w.store.newest(ctx, thread)
	if err != nil {
		return taken{}, err
	}
	n = max(n, newest) + 1
	s.ID, s.Store, s.Tree, s.Time, s.Files = fmt.Sprintf("s%d", n), w.store.name(), tree, p.opts.Now().UTC(), len(files)
	for _, f := range files {
		s.Bytes += f.Size
	}
	if err := w.store.keep(ctx, thread, s); err != nil {
		return taken{}, err
	}
	cmd.Update(Taken.Put(n, s))
	if over := Taken.Len(snap) + 1 - keep; keep > 0 && over > 0 {
		// Their refs go the next time: until this is committed they are needed.
		for number := range Taken.All(snap) {
			if over--; over < 0 {
				break
			}
			cmd.Update(Taken.Delete(number))
		}
		if _, err := w.store.prune(ctx, thread, append(List(snap), s)); err != nil {
			return taken{}, err
		}
	}
	return taken{s, files}, nil
}

// Prune makes the thread forget all but its newest snapshots, at least one, and drops
// what nothing leads to any more: refs of snapshots that the thread does not know, and
// copies that no thread has, unless they are new. It returns how many refs went.
func (p *Plugin) Prune(ctx context.Context, th *engine.Thread, keep int) (int, error) {
	if _, err := p.options(); err != nil {
		return 0, err
	}
	defer p.lock()()
	w, err := p.open(ctx, "")
	if err != nil {
		return 0, err
	}
	defer w.close()
	snap := th.Snapshot()
	all := List(snap)
	over := max(0, len(all)-max(1, keep))
	var cmd phase.Command
	for number := range Taken.All(snap) {
		if over == 0 {
			break
		}
		cmd.Update(Taken.Delete(number))
		over, all = over-1, all[1:]
	}
	if !cmd.IsZero() {
		if _, err := th.Submit(ctx, Name, cmd); err != nil {
			return 0, err
		}
	}
	return w.store.prune(ctx, th.ID(), all)
}

// Forget drops what is kept for a thread that nobody goes back to any more, such as that
// of a delegate, as Prune does. It returns how many refs went.
func (p *Plugin) Forget(ctx context.Context, thread string) (int, error) {
	if _, err := p.options(); err != nil {
		return 0, err
	}
	defer p.lock()()
	w, err := p.open(ctx, "")
	if err != nil {
		return 0, err
	}
	defer w.close()
	return w.store.prune(ctx, thread, nil)
}
