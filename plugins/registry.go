package plugins

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// Entry is a plugin that a program could use.
type Entry struct {
	// Name is the name that the plugin will have. It is unique in a Registry.
	Name string
	// Source says where the code comes from: BuiltIn, what Module returns, or any
	// text that tells somebody who reads a manifest. It is required.
	Source string
	// Description says in a sentence what the plugin does. It may be empty.
	Description string
	// New makes the plugin. See Plain and Typed.
	New Constructor
}

// Constructor makes a plugin. The settings are JSON, "" if there are none. What
// else it needs, such as a database, it has from the program that made it. If it
// returns an error it has released what it took. It may be called several times,
// and concurrently.
type Constructor func(ctx context.Context, settings inference.JSON) (engine.Plugin, error)

// Plain returns a constructor without settings. Being given some is an error.
func Plain(fn func() engine.Plugin) Constructor {
	return func(_ context.Context, settings inference.JSON) (engine.Plugin, error) {
		if settings != "" {
			return nil, errors.New("it takes no settings")
		}
		return fn(), nil
	}
}

// Typed returns a constructor whose settings are an S. They are decoded strictly:
// a member that S does not have is an error. Without settings S is zero.
func Typed[S any](fn func(ctx context.Context, settings S) (engine.Plugin, error)) Constructor {
	return func(ctx context.Context, settings inference.JSON) (engine.Plugin, error) {
		var s S
		if settings != "" {
			if err := settings.Decode(&s); err != nil {
				return nil, fmt.Errorf("its settings: %w", err)
			}
		}
		return fn(ctx, s)
	}
}

// Registry is what a program has to choose from. Make one with NewRegistry. It is
// safe for concurrent use; no lock is held while a constructor runs.
type Registry struct {
	mu      sync.Mutex
	entries map[string]Entry
}

// NewRegistry returns a registry of the entries. The error is that of Add.
func NewRegistry(entries ...Entry) (*Registry, error) {
	r := &Registry{entries: map[string]Entry{}}
	return r, r.Add(entries...)
}

// Add adds entries: all of them or, when one is incomplete or there is one of its
// name, none. The error joins an *EntryError for each fault.
func (r *Registry) Add(entries ...Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := maps.Clone(r.entries)
	var errs []error
	for _, e := range entries {
		if err := e.check(next); err != nil {
			errs = append(errs, err)
			continue
		}
		next[e.Name] = e
	}
	if len(errs) == 0 {
		r.entries = next
	}
	return errors.Join(errs...)
}

func (e Entry) check(taken map[string]Entry) error {
	fault := func(kind error) error { return &EntryError{Name: e.Name, Source: e.Source, Err: kind} }
	switch first, again := taken[e.Name]; {
	case e.Name == "":
		return fault(errors.New("it has no name"))
	case e.Source == "":
		return fault(errors.New("it does not say where it is from; set Source, to plugins.BuiltIn for one of your own"))
	case e.New == nil:
		return fault(errors.New("it has no constructor; set New"))
	case again:
		return fault(fmt.Errorf("%w: there is one of %s", ErrDuplicate, first.Source))
	}
	return nil
}

// Entries yields the entries by name, as they are when the loop begins.
func (r *Registry) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		entries := r.snapshot()
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if !yield(entries[name]) {
				return
			}
		}
	}
}

func (r *Registry) snapshot() map[string]Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries // replaced and never changed
}

// Selection says what to load.
type Selection struct {
	// Names are the plugins wanted, in the order of registration, each once.
	Names []string
	// Allow lists what may be loaded, by name or by path.Match pattern. It counts
	// before anything is made. Empty allows every entry.
	Allow []string
	// Settings go to the constructors, by name of the plugin.
	Settings map[string]inference.JSON
}

// Load makes the plugins of a selection and returns them in the order of its names,
// each with the methods of *Loaded and, if it has one, its Open.
//
// First the whole selection is checked, without a call of any constructor: the
// error joins an *EntryError for each name that is unknown, not allowed or there
// twice. Then the plugins are made one after the other. The first that fails,
// panics or has another name than its entry ends the load with an *EntryError, as
// does the end of ctx, and those made so far are closed in reverse order, for
// CloseTimeout in all. Closing the plugins of a successful load is up to the
// engine they are given to, or to CloseAll.
func (r *Registry) Load(ctx context.Context, s Selection) (loaded []engine.Plugin, err error) {
	entries, err := s.check(r.snapshot())
	if err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		// Also when a constructor ends its goroutine.
		if !returned || err != nil {
			err = errors.Join(err, CloseAll(context.WithoutCancel(ctx), loaded))
			loaded = nil
		}
	}()
	for _, e := range entries {
		p, made := e.construct(ctx, s.Settings[e.Name])
		if p != nil {
			loaded = append(loaded, p)
		}
		if made != nil {
			err = &EntryError{Name: e.Name, Source: e.Source, Err: made}
			break
		}
	}
	returned = true
	return loaded, err
}

// check returns the entries that are wanted, or everything that is wrong with the
// selection.
func (s Selection) check(have map[string]Entry) (wanted []Entry, err error) {
	known := slices.Sorted(maps.Keys(have))
	var errs []error
	for _, pattern := range s.Allow {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("plugins: allowlist: %q is no pattern as path.Match takes it: %w", pattern, err))
		}
	}
	seen := map[string]bool{}
	for _, name := range s.Names {
		e, found := have[name]
		switch {
		case seen[name]:
			errs = append(errs, &EntryError{Name: name, Source: e.Source, Err: fmt.Errorf("%w: it is wanted twice", ErrDuplicate)})
		case !found:
			errs = append(errs, &EntryError{Name: name, Err: ErrUnknown, Nearest: jsonpos.Nearest(name, known)})
		case !s.allows(name):
			errs = append(errs, &EntryError{Name: name, Source: e.Source, Err: ErrNotAllowed})
		}
		seen[name] = true
		wanted = append(wanted, e)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if !seen[name] {
			errs = append(errs, &EntryError{Name: name, Err: errors.New("it has settings but is not wanted"), Nearest: jsonpos.Nearest(name, s.Names)})
		}
	}
	return wanted, errors.Join(errs...)
}

func (s Selection) allows(name string) bool {
	return len(s.Allow) == 0 || slices.ContainsFunc(s.Allow, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// construct makes the plugin. With an error it may return one too, to be closed.
func (e Entry) construct(ctx context.Context, settings inference.JSON) (p engine.Plugin, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var name string
	err = guarded(e.Name, func() (err error) {
		if p, err = e.New(ctx, settings); p != nil && err == nil {
			name = p.Name()
		}
		return err
	})
	switch {
	case err != nil:
	case p == nil:
		err = errors.New("its constructor returned no plugin")
	case name != e.Name:
		err = fmt.Errorf("its constructor returned a plugin of the name %q", name)
	}
	return from(p, e.Source), err
}
