package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins"
	"github.com/ddd26017/fixpoint/state"
)

// shop makes plugins and writes down what happened to them.
type shop struct{ log []string }

func (s *shop) note(text string) { s.log = append(s.log, text) }

// entry is an entry whose plugin notes when it is made and closed.
func (s *shop) entry(name string) plugins.Entry {
	return plugins.Entry{Name: name, Source: "shop", New: func(context.Context, inference.JSON) (engine.Plugin, error) {
		s.note("made " + name)
		return closing{engine.NewPlugin(name, func(*engine.Registrar) error { return nil }), func() error { s.note("closed " + name); return nil }}, nil
	}}
}

// closing is a plugin that has to be closed.
type closing struct {
	engine.Plugin
	close func() error
}

func (c closing) Close(context.Context) error { return c.close() }

func (s *shop) registry(t *testing.T, more ...plugins.Entry) *plugins.Registry {
	t.Helper()
	reg, err := plugins.NewRegistry(append([]plugins.Entry{s.entry("audit"), s.entry("budget"), s.entry("files")}, more...)...)
	require.NoError(t, err)
	return reg
}

func names(list []engine.Plugin) (out []string) {
	for _, p := range list {
		out = append(out, p.Name())
	}
	return out
}

// Plugins come in the order asked for, are made once each, and tell their source.
func TestLoad(t *testing.T) {
	var s shop
	reg := s.registry(t)
	loaded, err := reg.Load(t.Context(), plugins.Selection{Names: []string{"files", "audit"}})
	require.NoError(t, err)
	require.Equal(t, []string{"files", "audit"}, names(loaded))
	require.Equal(t, []string{"made files", "made audit"}, s.log)
	for _, p := range loaded {
		require.Equal(t, "shop", p.(interface{ Source() string }).Source())
		require.IsType(t, closing{}, p.(*plugins.Loaded).Unwrap())
	}
	require.NoError(t, plugins.CloseAll(t.Context(), loaded))
	require.Equal(t, []string{"closed audit", "closed files"}, s.log[2:])

	none, err := reg.Load(t.Context(), plugins.Selection{})
	require.NoError(t, err)
	require.Empty(t, none)
}

// What is not on the allowlist is never made, nor is anything that
// was wanted beside it; an unknown name and a repeated one are told in the same go.
func TestAllowlistComesBeforeConstruction(t *testing.T) {
	var s shop
	reg := s.registry(t)
	loaded, err := reg.Load(t.Context(), plugins.Selection{
		Names: []string{"audit", "files", "budgte", "audit"}, Allow: []string{"a*", "budget"},
	})
	require.Nil(t, loaded)
	require.Empty(t, s.log, "no constructor was called")
	require.ErrorIs(t, err, plugins.ErrNotAllowed)
	require.ErrorIs(t, err, plugins.ErrUnknown)
	require.ErrorIs(t, err, plugins.ErrDuplicate)
	require.Equal(t, strings.Join([]string{
		`plugins: plugin "files" (shop): it is not on the allowlist`,
		`plugins: plugin "budgte": there is no such plugin; did you mean "budget"?`,
		`plugins: plugin "audit" (shop): the name is taken: it is wanted twice`,
	}, "\n"), err.Error())

	_, err = reg.Load(t.Context(), plugins.Selection{Names: []string{"audit"}, Allow: []string{"["}})
	require.ErrorContains(t, err, "no pattern")
	require.Empty(t, s.log)
	loaded, err = reg.Load(t.Context(), plugins.Selection{Names: []string{"budget", "audit"}, Allow: []string{"a*", "budget"}})
	require.NoError(t, err)
	require.Len(t, loaded, 2)
}

// Report 17. A plugin that is wanted twice is refused by the registry, and one that
// is given twice by the engine; once, its hook runs once per phase and its action
// once per round.
func TestNothingIsLoadedTwice(t *testing.T) {
	var (
		ran  = state.NewCounter("twice.ran", state.Options[int64]{})
		acts = state.NewCounter("twice.acts", state.Options[int64]{})
		act  = phase.NewAction[int]("twice.act", phase.StepEnd)
	)
	reg, err := plugins.NewRegistry(plugins.Entry{Name: "twice", Source: plugins.BuiltIn, New: plugins.Plain(func() engine.Plugin {
		return engine.NewPlugin("twice", func(r *engine.Registrar) error {
			r.Key(ran, acts)
			r.Hook(phase.StepEnd, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				cmd.Update(ran.With(1)).Schedule(act.New(1))
				return cmd, nil
			}), engine.Writes(ran))
			r.Action(act.Handle(func(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
				if cmd.Update(acts.With(1)); n < 3 {
					cmd.Schedule(act.New(n + 1))
				}
				return cmd, nil
			}))
			return nil
		})
	})})
	require.NoError(t, err)
	_, err = reg.Load(t.Context(), plugins.Selection{Names: []string{"twice", "twice"}})
	require.ErrorIs(t, err, plugins.ErrDuplicate)

	load := func() engine.Plugin {
		loaded, err := reg.Load(t.Context(), plugins.Selection{Names: []string{"twice"}})
		require.NoError(t, err)
		return loaded[0]
	}
	_, err = engine.New(engine.Config{Plugins: []engine.Plugin{load(), load()}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, "plugin twice is registered twice")

	out := enginetest.Driver{Plugins: []engine.Plugin{load()}}.RunPhase(t, phase.StepEnd)
	require.NoError(t, out.Err)
	require.EqualValues(t, 1, ran.Get(out.Snapshot))
	require.EqualValues(t, 3, acts.Get(out.Snapshot))
	require.Equal(t, 3, out.Report.Rounds)
}

// Capability G9. What one load gave is of no concern to another: each has plugins of
// its own. On one engine, runs that go on at the same time have the hooks that their
// specs name and no others, and state of their own.
func TestIsolation(t *testing.T) {
	who := state.NewLog("who", state.Options[string]{})
	entry := func(name string) plugins.Entry {
		return plugins.Entry{Name: name, Source: plugins.BuiltIn, New: plugins.Plain(func() engine.Plugin {
			return &marked{plugin(name, func(r *engine.Registrar) {
				if name == "keys" {
					r.Key(who)
					return
				}
				for _, p := range []phase.Phase{phase.RunStart, phase.StepEnd} {
					r.Hook(p, hook(func(pc *phase.Context, cmd *phase.Command) error {
						cmd.Update(who.Append(name + " for " + pc.Agent().ID))
						return nil
					}))
				}
			})}
		})}
	}
	reg, err := plugins.NewRegistry(entry("keys"), entry("a"), entry("b"))
	require.NoError(t, err)
	load := func() []engine.Plugin {
		loaded, err := reg.Load(t.Context(), plugins.Selection{Names: []string{"keys", "a", "b"}})
		require.NoError(t, err)
		return loaded
	}
	loaded := load()
	for i, p := range load() {
		require.NotSame(t, loaded[i].(*plugins.Loaded).Unwrap(), p.(*plugins.Loaded).Unwrap())
	}

	config, _ := enginetest.Config(t, loaded...)
	config.Model = enginetest.NewScript(enginetest.Say("done"))
	eng := enginetest.Engine(t, config)
	var wg sync.WaitGroup
	got := make([][]string, 20)
	for i := range got {
		wg.Go(func() {
			name := []string{"a", "b"}[i%2]
			th, err := eng.NewThread("")
			if err == nil {
				_, err = th.Run(t.Context(), engine.AgentSpec{ID: fmt.Sprint("agent ", i), ActiveHookFilter: []string{name}}, engine.Prompt("go"))
			}
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = who.Get(th.Snapshot()).Slice()
		})
	}
	wg.Wait()
	for i, list := range got {
		mine := fmt.Sprintf("%s for agent %d", []string{"a", "b"}[i%2], i)
		require.Equal(t, []string{mine, mine}, list)
	}
}

// marked is a plugin that can be told from others of its name.
type marked struct{ engine.Plugin }

// A load that fails, however, leaves nothing behind: what was made is closed, the
// last one first, and what comes after the fault is not made.
func TestFailedLoadLeavesNothingBehind(t *testing.T) {
	cause := errors.New("no database")
	bad := func(s *shop, fn plugins.Constructor) plugins.Entry {
		return plugins.Entry{Name: "bad", Source: "example.com/bad@v1", New: fn}
	}
	named := func(s *shop, name string) engine.Plugin {
		p, err := s.entry(name).New(t.Context(), "")
		require.NoError(t, err)
		return p
	}
	for name, c := range map[string]struct {
		fn     func(*shop) plugins.Constructor
		want   string
		closed bool // the faulty one too
	}{
		"error": {func(*shop) plugins.Constructor {
			return func(context.Context, inference.JSON) (engine.Plugin, error) { return nil, cause }
		}, "no database", false},
		"error and plugin": {func(s *shop) plugins.Constructor {
			return func(context.Context, inference.JSON) (engine.Plugin, error) { return named(s, "bad"), cause }
		}, "no database", true},
		"panic": {func(*shop) plugins.Constructor {
			return func(context.Context, inference.JSON) (engine.Plugin, error) { panic(cause) }
		}, "panicked: no database", false},
		"nothing": {func(*shop) plugins.Constructor {
			return func(context.Context, inference.JSON) (engine.Plugin, error) { return nil, nil }
		}, "returned no plugin", false},
		"another name": {func(s *shop) plugins.Constructor {
			return func(context.Context, inference.JSON) (engine.Plugin, error) { return named(s, "good"), nil }
		}, `a plugin of the name "good"`, true},
		"a nil inside": {func(*shop) plugins.Constructor {
			return func(context.Context, inference.JSON) (engine.Plugin, error) { return (*closing)(nil), nil }
		}, "panicked", false},
		"settings": {func(*shop) plugins.Constructor { return plugins.Plain(func() engine.Plugin { panic("not called") }) },
			"takes no settings", false},
	} {
		t.Run(name, func(t *testing.T) {
			var s shop
			reg := s.registry(t, bad(&s, c.fn(&s)))
			sel := plugins.Selection{Names: []string{"audit", "files", "bad", "budget"}}
			if name == "settings" {
				sel.Settings = map[string]inference.JSON{"bad": `{}`}
			}
			loaded, err := reg.Load(t.Context(), sel)
			require.Nil(t, loaded)
			require.ErrorContains(t, err, `plugins: plugin "bad" (example.com/bad@v1): `)
			require.ErrorContains(t, err, c.want)
			var of *plugins.EntryError
			require.ErrorAs(t, err, &of)
			require.Equal(t, "bad", of.Name)
			if strings.Contains(c.want, "no database") {
				require.ErrorIs(t, err, cause)
			}
			closed := slices.DeleteFunc(slices.Clone(s.log), func(l string) bool { return !strings.HasPrefix(l, "closed") })
			want := []string{"closed files", "closed audit"}
			if c.closed {
				require.Len(t, closed, 3)
				closed = closed[1:]
			}
			require.Equal(t, want, closed)
			require.NotContains(t, s.log, "made budget")
		})
	}
}

// A constructor that ends its goroutine takes the caller with it, but what was made
// before is closed.
func TestConstructorThatEndsItsGoroutine(t *testing.T) {
	var s shop
	reg := s.registry(t, plugins.Entry{Name: "bad", Source: "shop", New: func(context.Context, inference.JSON) (engine.Plugin, error) {
		runtime.Goexit()
		return nil, nil
	}})
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = reg.Load(t.Context(), plugins.Selection{Names: []string{"audit", "bad"}})
	}()
	<-over
	require.Equal(t, []string{"made audit", "closed audit"}, s.log)
}

// A load that is cancelled makes nothing more, and still closes what it made.
func TestCancelledLoad(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("never mind")
	var s shop
	first := s.entry("first")
	inner := first.New
	first.New = func(ctx context.Context, j inference.JSON) (engine.Plugin, error) {
		cancel(why)
		return inner(ctx, j)
	}
	_, err := s.registry(t, first).Load(ctx, plugins.Selection{Names: []string{"first", "audit"}})
	require.ErrorIs(t, err, why)
	require.Equal(t, []string{"made first", "closed first"}, s.log)
}

// Closing goes through all plugins whatever they do, and gives up on one that hangs.
func TestCloseAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shop
		hang := make(chan struct{})
		defer close(hang)
		of := func(name string, fn func() error) engine.Plugin {
			return closing{engine.NewPlugin(name, func(*engine.Registrar) error { return nil }), fn}
		}
		err := plugins.CloseAll(t.Context(), []engine.Plugin{
			of("hangs", func() error { <-hang; return nil }),
			of("fine", func() error { s.note("closed fine"); return nil }),
			engine.NewPlugin("open", func(*engine.Registrar) error { return nil }),
			of("fails", func() error { return errors.New("full disk") }),
			of("panics", func() error { panic("oh") }),
			of("leaves", func() error { runtime.Goexit(); return nil }),
		})
		require.Equal(t, []string{"closed fine"}, s.log)
		require.Equal(t, strings.Join([]string{
			"plugins: closing leaves: engine: user code ended its goroutine with runtime.Goexit",
			"plugins: closing panics: engine: plugin panics panicked: oh",
			"plugins: closing fails: full disk",
			"plugins: closing hangs: context deadline exceeded",
		}, "\n"), err.Error())
	})
}

// Faulty entries are refused together, none is added, and a name that is taken is
// told with both sources.
func TestFaultyEntries(t *testing.T) {
	var s shop
	reg := s.registry(t)
	again := s.entry("audit")
	again.Source = "example.com/other@v2"
	err := reg.Add(s.entry("new"), again, plugins.Entry{}, plugins.Entry{Name: "x"}, plugins.Entry{Name: "y", Source: "z"})
	require.ErrorIs(t, err, plugins.ErrDuplicate)
	require.ErrorContains(t, err, `plugin "audit" (example.com/other@v2): the name is taken: there is one of shop`)
	require.ErrorContains(t, err, `plugin "": it has no name`)
	require.ErrorContains(t, err, `plugin "x": it does not say where it is from`)
	require.ErrorContains(t, err, `plugin "y" (z): it has no constructor`)
	var have []string
	for e := range reg.Entries() {
		have = append(have, e.Name)
	}
	require.Equal(t, []string{"audit", "budget", "files"}, have)
}

// Settings reach the constructor that they are for, strictly, and no other.
func TestSettings(t *testing.T) {
	type settings struct {
		URL string `json:"url"`
	}
	var got []settings
	reg, err := plugins.NewRegistry(plugins.Entry{Name: "db", Source: plugins.BuiltIn,
		New: plugins.Typed(func(_ context.Context, s settings) (engine.Plugin, error) {
			got = append(got, s)
			return engine.NewPlugin("db", func(*engine.Registrar) error { return nil }), nil
		})})
	require.NoError(t, err)
	load := func(name, text string) error {
		_, err := reg.Load(t.Context(), plugins.Selection{Names: []string{"db"}, Settings: map[string]inference.JSON{name: inference.JSON(text)}})
		return err
	}
	require.NoError(t, load("db", `{"url": "x"}`))
	require.NoError(t, load("db", ``))
	require.ErrorContains(t, load("db", `{"uri": "x"}`), "its settings: ")
	require.ErrorContains(t, load("dbb", `{}`), `plugin "dbb": it has settings but is not wanted; did you mean "db"?`)
	require.Equal(t, []settings{{"x"}, {}}, got)
}

// everything is a plugin that is all that the engine looks for.
type everything struct{ s *shop }

func (everything) Name() string                     { return "everything" }
func (everything) Register(*engine.Registrar) error { return nil }
func (e everything) OnActivate(spec engine.AgentSpec, _ *engine.Batch) error {
	e.s.note("on for " + spec.ID)
	return nil
}
func (e everything) OnDeactivate(*engine.Batch) error { e.s.note("off"); return nil }
func (e everything) Open(context.Context) error       { e.s.note("open"); return nil }
func (e everything) Close(context.Context) error      { e.s.note("close"); return nil }

// A loaded plugin is what it was before: the engine opens, activates, deactivates and
// closes it. A plugin that is none of this stays harmless.
func TestLoadedPluginKeepsItsInterfaces(t *testing.T) {
	var s shop
	bare := engine.NewPlugin("bare", func(*engine.Registrar) error { return nil })
	reg, err := plugins.NewRegistry(
		plugins.Entry{Name: "everything", Source: plugins.BuiltIn, New: plugins.Plain(func() engine.Plugin { return everything{&s} })},
		plugins.Entry{Name: "bare", Source: plugins.BuiltIn, New: plugins.Plain(func() engine.Plugin { return bare })},
	)
	require.NoError(t, err)
	loaded, err := reg.Load(t.Context(), plugins.Selection{Names: []string{"everything", "bare"}})
	require.NoError(t, err)
	require.Implements(t, (*engine.Opener)(nil), loaded[0])
	require.NotImplements(t, (*engine.Opener)(nil), loaded[1], "an engine that has one wants to be opened")
	handing := engine.NewPlugin("handing", func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Agent().ID == "a" {
				cmd.Update(engine.HandOff("b"))
			}
			return cmd, nil
		}))
		return nil
	})
	config, _ := enginetest.Config(t, append(loaded, handing)...)
	config.Model = enginetest.NewScript(enginetest.Say("over to b"), enginetest.Say("done"))
	config.Agents = []engine.AgentSpec{{ID: "b", ActiveHookFilter: []string{"handing"}}}
	eng, err := engine.New(config)
	require.NoError(t, err)
	require.NoError(t, eng.Open(t.Context()))
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, "b", res.Agent)
	require.NoError(t, eng.Close(t.Context()))
	require.Equal(t, []string{"open", "on for a", "off", "close"}, s.log)
	require.Equal(t, plugins.BuiltIn, eng.Describe().Plugins[0].Source)
}

// The source of a module is what the build says of it.
func TestModule(t *testing.T) {
	require.Equal(t, "example.com/nobody", plugins.Module("example.com/nobody"))
	build := &debug.BuildInfo{Main: debug.Module{Path: "example.com/main", Version: "(devel)"}, Deps: []*debug.Module{
		{Path: "example.com/tickets", Version: "v1.2.3"},
		{Path: "example.com/local", Version: "v0.1.0", Replace: &debug.Module{Path: "../local"}},
		{Path: "example.com/fork", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1"}},
	}}
	for path, want := range map[string]string{
		"example.com/main":    "example.com/main@(devel)",
		"example.com/tickets": "example.com/tickets@v1.2.3",
		"example.com/local":   "example.com/local@v0.1.0 => ../local",
		"example.com/fork":    "example.com/fork@v1.0.0 => example.org/fork@v1.0.1",
		"example.com/tick":    "example.com/tick",
	} {
		require.Equal(t, want, plugins.ModuleIn(build, path))
	}
}
