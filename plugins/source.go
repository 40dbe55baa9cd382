package plugins

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// BuiltIn is the source of a plugin that is part of the program.
const BuiltIn = "built in"

// CloseTimeout is how long plugins may take to close when a load has failed.
const CloseTimeout = 10 * time.Second

// Module returns the source of a plugin from the module of that path: path and
// version, "path@v1.2.3", as the program was built with it. A module that the
// build does not know of, as in a test, has its path alone.
func Module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return path
	}
	return moduleIn(info, path)
}

func moduleIn(info *debug.BuildInfo, path string) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != path {
			continue
		}
		text := versioned(m)
		if m.Replace != nil {
			text += " => " + versioned(m.Replace)
		}
		return text
	}
	return path
}

func versioned(m *debug.Module) string {
	if m.Version == "" {
		return m.Path
	}
	return m.Path + "@" + m.Version
}

// Loaded is a plugin with its source, as Load returns them. A wrapper hides what
// else a value can do, so this one passes on every interface that the engine looks
// for; where the plugin is not one, it does what its absence would: nothing.
type Loaded struct {
	engine.Plugin
	source string
}

// opening is a Loaded that is to be opened. Of a plugin with an Open the engine wants
// to know before anything runs, so others must not seem to have one.
type opening struct {
	*Loaded
	engine.Opener
}

// from returns p with its source, or nil for nil.
func from(p engine.Plugin, source string) engine.Plugin {
	if p == nil {
		return nil
	}
	l := &Loaded{p, source}
	if o, ok := p.(engine.Opener); ok {
		return opening{l, o}
	}
	return l
}

// Source returns the source of the plugin's entry.
func (l *Loaded) Source() string { return l.source }

// Unwrap returns the plugin as its constructor made it.
func (l *Loaded) Unwrap() engine.Plugin { return l.Plugin }

// OnActivate passes the call on to an engine.Activator.
func (l *Loaded) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	if a, ok := l.Plugin.(engine.Activator); ok {
		return a.OnActivate(spec, b)
	}
	return nil
}

// OnDeactivate passes the call on to an engine.Deactivator.
func (l *Loaded) OnDeactivate(b *engine.Batch) error {
	if d, ok := l.Plugin.(engine.Deactivator); ok {
		return d.OnDeactivate(b)
	}
	return nil
}

// Close passes the call on to an engine.Closer.
func (l *Loaded) Close(ctx context.Context) error {
	if c, ok := l.Plugin.(engine.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

// CloseAll closes plugins that no engine got, the last one first, each whatever
// became of the others, and returns their errors joined. It gives up on one that
// has not returned when ctx ends or CloseTimeout is over, and then on the rest.
func CloseAll(ctx context.Context, list []engine.Plugin) error {
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	var errs []error
	for _, p := range slices.Backward(list) {
		c, ok := p.(engine.Closer)
		if !ok {
			continue
		}
		name := named(p)
		if err := closeOne(ctx, name, c); err != nil {
			errs = append(errs, fmt.Errorf("plugins: closing %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// closeOne closes a plugin away from the caller's goroutine, since it may hang or
// end its goroutine.
func closeOne(ctx context.Context, name string, c engine.Closer) error {
	over := make(chan error, 1)
	go func() {
		err := engine.ErrGoexit
		defer func() { over <- err }()
		err = guarded(name, func() error { return c.Close(ctx) })
	}()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// named is the name of a plugin that may not even be able to tell it.
func named(p engine.Plugin) (name string) {
	if guarded("", func() error { name = p.Name(); return nil }) != nil {
		return fmt.Sprintf("a plugin (%T)", p)
	}
	return name
}
