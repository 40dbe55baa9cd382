package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/git"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Restored says what a restoring did.
type Restored struct {
	To      string   `json:"to"`                // id of the snapshot that was restored
	Before  string   `json:"before"`            // id of the one that undoes it
	Changes []Change `json:"changes,omitempty"` // to the workspace, by path
	// Kept lists paths that are not as in the snapshot, because something that
	// snapshots do not cover is in the way.
	Kept []string `json:"kept,omitempty"`
}

// Restore brings the workspace back to a snapshot of the thread: files that the
// snapshot has get their content and mode again, and files that came since go, with
// the folders that become empty. What is excluded stays, and so does what came since and
// is ignored by the rules of now or of the snapshot. Before that a snapshot of the
// present state is taken and told to the thread; restoring it undoes this. When an error
// comes with a Restored.Before, the workspace is somewhere in between, and that one is the way back.
func (p *Plugin) Restore(ctx context.Context, th *engine.Thread, id string) (Restored, error) {
	if _, err := p.options(); err != nil {
		return Restored{}, err
	}
	defer p.lock()()
	return p.restore(ctx, th.Snapshot(), id, func(also []file) (taken, error) {
		return p.submit(ctx, th, Snapshot{Why: BeforeBack}, also)
	})
}

// restoreIn is Restore by a tool, whose command tells the thread of the snapshot.
func (p *Plugin) restoreIn(ctx context.Context, pc *phase.Context, id string, cmd *phase.Command) (Restored, error) {
	defer p.lock()()
	return p.restore(ctx, pc.Snapshot(), id, func(also []file) (taken, error) {
		s := Snapshot{Why: BeforeBack, Run: pc.Run().ID, Step: pc.Run().Step, Tool: pc.Call().Name, Call: pc.Call().ID}
		return p.take(ctx, pc.Snapshot(), pc.Run().Thread, s, 0, also, cmd)
	})
}

func (p *Plugin) restore(ctx context.Context, snap *state.Snapshot, id string, save func(also []file) (taken, error)) (Restored, error) {
	to, err := find(snap, id)
	if err != nil {
		return Restored{}, err
	}
	w, err := p.open(ctx, to.Store)
	if err != nil {
		return Restored{}, err
	}
	defer w.close()
	want, err := w.store.list(ctx, to.Tree)
	if err != nil {
		return Restored{}, err
	}
	want = slices.DeleteFunc(want, func(f file) bool { return w.excluded(f.Path) })
	// Also what would be overwritten without being covered now, such as an ignored file.
	before, err := save(want)
	if err != nil {
		return Restored{}, fmt.Errorf("snapshots: nothing was restored: %w", err)
	}
	done := Restored{To: id, Before: before.ID}
	have := before.files
	if before.Store != to.Store { // whose ids are others
		if have, err = w.scan(ctx, want, false); err != nil {
			return done, fmt.Errorf("snapshots: nothing was restored: %w", err)
		}
		// Only what was saved may go; git leaves out what it ignores.
		saved := index(before.files)
		have = slices.DeleteFunc(have, func(f file) bool { return saved[f.Path].Path == "" })
	}
	m := mover{workspace: w, done: &done, present: index(have)}
	return done, m.bring(ctx, have, want)
}

// mover brings the workspace from one list of files to another.
type mover struct {
	*workspace
	done    *Restored
	present map[string]file
}

func index(files []file) map[string]file {
	m := make(map[string]file, len(files))
	for _, f := range files {
		m[f.Path] = f
	}
	return m
}

// bring replaces have by want. What says which files are ignored comes first: a file
// goes only if neither the rules of now nor those of then leave it alone.
func (m *mover) bring(ctx context.Context, have, want []file) error {
	rule := func(f file) bool { return path.Base(f.Path) == ".gitignore" }
	wanted := index(want)
	came := slices.DeleteFunc(slices.Clone(have), func(f file) bool { return wanted[f.Path].Path != "" })
	if m.store.name() == inGit {
		if err := m.remove(ctx, came, rule); err != nil {
			return err
		}
		if err := m.write(ctx, want, rule); err != nil {
			return err
		}
	}
	removable, err := m.store.removable(ctx)
	if err != nil {
		return err
	}
	still := map[string]bool{}
	for _, name := range removable {
		still[name] = true
	}
	err = m.remove(ctx, came, func(f file) bool { return still[f.Path] })
	if err == nil {
		err = m.write(ctx, want, func(file) bool { return true })
	}
	slices.SortFunc(m.done.Changes, func(a, b Change) int { return byPath(file{Path: a.Path}, file{Path: b.Path}) })
	slices.Sort(m.done.Kept)
	m.done.Kept = slices.Compact(m.done.Kept)
	return err
}

// remove removes the chosen files that are there, and folders that are empty then.
func (m *mover) remove(ctx context.Context, files []file, chosen func(file) bool) error {
	for _, f := range files {
		if _, there := m.present[f.Path]; !there || !chosen(f) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := m.root.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("snapshots: cannot remove %s: %w", f.Path, err)
		}
		delete(m.present, f.Path)
		m.done.Changes = append(m.done.Changes, Change{Path: f.Path, Kind: Deleted, Before: f.Size})
		for dir := path.Dir(f.Path); dir != "." && m.root.Remove(dir) == nil; dir = path.Dir(dir) {
			continue // until one is not empty
		}
	}
	return nil
}

// write writes the chosen files that are not as they should be.
func (m *mover) write(ctx context.Context, files []file, chosen func(file) bool) error {
	due := slices.DeleteFunc(slices.Clone(files), func(f file) bool {
		now := m.present[f.Path]
		return !chosen(f) || now.ID == f.ID && now.Mode == f.Mode
	})
	if len(due) == 0 {
		return nil
	}
	return m.store.contents(ctx, due, func(f file, content io.Reader) error {
		before, there := m.present[f.Path]
		err := m.put(f, content)
		switch {
		case errors.Is(err, errInTheWay):
			m.done.Kept = append(m.done.Kept, f.Path)
			return nil
		case err != nil:
			return fmt.Errorf("snapshots: cannot restore %s: %w", f.Path, err)
		}
		m.present[f.Path] = f
		m.done.Changes = append(m.done.Changes, change(before, there, f, true))
		return nil
	})
}

// errInTheWay says that something that is not covered is where a file belongs.
var errInTheWay = errors.New("snapshots: something is in the way")

// put writes a file as a whole: a reader sees the old one or the new one.
func (m *mover) put(f file, content io.Reader) error {
	dir := path.Dir(f.Path)
	// A folder on the way that is a link leads elsewhere; nothing is written there.
	for at := dir; at != "."; at = path.Dir(at) {
		if info, err := m.root.Lstat(at); err == nil && !info.IsDir() {
			return errInTheWay
		}
	}
	perm, kept := fs.FileMode(0o666), false
	switch info, err := m.root.Lstat(f.Path); {
	case err == nil && info.IsDir():
		if !m.clear(f.Path) {
			return errInTheWay
		}
	case err == nil && info.Mode().IsRegular():
		perm, kept = info.Mode().Perm()&^0o111, true
	case err == nil && info.Mode().Type() != fs.ModeSymlink:
		return errInTheWay
	}
	if f.Mode == git.ModeExecutable {
		perm |= perm & 0o444 >> 2 // who may read it may run it
	}
	if err := m.root.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	draft := path.Join(dir, fmt.Sprintf(".%x.fixpoint-draft", rand.Uint64())) // nobody else's
	err := m.draft(draft, f, perm, content)
	if err == nil && kept && f.Mode != git.ModeLink {
		err = m.root.Chmod(draft, perm) // which the process's umask has no say in
	}
	if err == nil {
		err = m.root.Rename(draft, f.Path)
	}
	if err != nil {
		return errors.Join(err, m.root.Remove(draft))
	}
	return nil
}

func (m *mover) draft(name string, f file, perm fs.FileMode, content io.Reader) error {
	if f.Mode == git.ModeLink {
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return m.root.Symlink(string(target), name)
	}
	out, err := m.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}

// clear removes a folder that has nothing but empty folders in it.
func (m *mover) clear(name string) bool {
	all, err := entries(m.root, name)
	if err != nil {
		return false
	}
	for _, e := range all {
		if !e.IsDir() || !m.clear(path.Join(name, e.Name())) {
			return false
		}
	}
	return m.root.Remove(name) == nil
}
