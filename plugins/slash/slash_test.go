package slash_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
	"github.com/ddd26017/fixpoint/state"
)

var notes = state.NewLog("test.notes", state.Options[string]{Scope: state.ScopeThread})

const noteSchema inference.JSON = `{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer"}},"required":["text"]}`

type note struct {
	Text  string `json:"text"`
	Times int    `json:"times"`
}

// noting has a command of each kind.
func noting(name string) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Key(notes)
		r.Extra(
			slash.New("note", "keeps a note", noteSchema, func(_ context.Context, pc *phase.Context, in note) (reply slash.Reply, err error) {
				for range max(1, in.Times) {
					reply.Command.Update(notes.Append(in.Text))
				}
				reply.Text = "kept beside " + strings.Join(notes.Get(pc.Snapshot()).Slice(), ", ")
				return reply, nil
			}),
			slash.NewSteering("retry", "asks again", "", func(_ context.Context, s slash.Session, _ struct{}) (slash.Reply, error) {
				s.Prompt("again")
				return slash.Reply{Text: "asking " + s.Agent().ID}, nil
			}))
		return nil
	})
}

// session is what a program lends.
type session struct {
	thread *engine.Thread
	agent  engine.AgentSpec
	prompt string
}

func (s *session) Thread() *engine.Thread                      { return s.thread }
func (s *session) Agent() engine.AgentSpec                     { return s.agent }
func (s *session) Prompt(text string)                          { s.prompt = text }
func (s *session) Switch(t *engine.Thread, a engine.AgentSpec) { s.thread, s.agent = t, a }
func (s *session) Leave()                                      {}

var agent = engine.AgentSpec{ID: "a"}

func open(t *testing.T, plugins ...engine.Plugin) (*engine.Engine, *engine.Thread) {
	t.Helper()
	config, _ := enginetest.Config(t, plugins...)
	config.Model = enginetest.NewScript(enginetest.Say("done"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	return eng, th
}

func commands(t *testing.T, eng *engine.Engine, spec engine.AgentSpec) slash.Set {
	t.Helper()
	set, err := slash.For(eng, spec)
	require.NoError(t, err)
	return set
}

// Capability M6. A command is found by name, gets its arguments, and what it wants is
// committed in the name of its plugin.
func TestRun(t *testing.T) {
	eng, th := open(t, noting("pad"))
	set := commands(t, eng, agent)
	var names []string
	for c := range set.All() {
		names = append(names, c.Plugin()+" "+c.Usage()+" "+c.Description())
	}
	require.Equal(t, []string{"pad /note text=... [times=...] keeps a note", "pad /retry asks again"}, names)

	reply, err := set.Run(t.Context(), th, nil, `/note text="buy milk" times=2`)
	require.NoError(t, err)
	require.Equal(t, "kept beside ", reply.Text)
	reply, err = set.Run(t.Context(), th, nil, `/note {"text": "x"}`)
	require.NoError(t, err)
	require.Equal(t, "kept beside buy milk, buy milk", reply.Text)
	require.Equal(t, []string{"buy milk", "buy milk", "x"}, notes.Get(th.Snapshot()).Slice())

	var writer string
	cancel := th.Subscribe(func(c state.Commit) {
		for _, change := range c.Writes {
			writer = change.Owner
		}
	})
	defer cancel()
	_, err = set.Run(t.Context(), th, nil, `/note text=y`)
	require.NoError(t, err)
	require.Equal(t, "pad", writer)
}

// A command that steers works with a session and between runs only.
func TestSteering(t *testing.T) {
	var inside error
	var set slash.Set
	var th *engine.Thread
	s := &session{agent: agent}
	eng, th := open(t, noting("pad"), engine.NewPlugin("hook", func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, phase.HookFunc(func(ctx context.Context, _ *phase.Context) (phase.Command, error) {
			_, inside = set.Run(ctx, th, s, "/retry")
			_, err := set.Run(ctx, th, nil, "/note text=inside")
			return phase.Command{}, err
		}))
		return nil
	}))
	set = commands(t, eng, agent)
	_, err := set.Run(t.Context(), th, nil, "/retry")
	require.ErrorIs(t, err, slash.ErrNoSession)
	res, err := th.Run(t.Context(), agent, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.ErrorIs(t, inside, engine.ErrBusy)
	require.Equal(t, []string{"inside"}, notes.Get(th.Snapshot()).Slice())
	require.Empty(t, s.prompt)

	reply, err := set.Run(t.Context(), th, s, "/retry")
	require.NoError(t, err)
	require.Equal(t, "asking a", reply.Text)
	require.Equal(t, "again", s.prompt)
}

// Capability M6. Two commands of one name are an error that names both plugins, and
// those of plugins that are not active are not there.
func TestNames(t *testing.T) {
	other := func(name string) engine.Plugin {
		return engine.NewPlugin("other", func(r *engine.Registrar) error {
			r.Extra(slash.New(name, "", "", func(context.Context, *phase.Context, struct{}) (slash.Reply, error) { return slash.Reply{}, nil }))
			return nil
		})
	}
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{noting("pad"), other("note")}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, `plugin other: slash command "note" is already registered by plugin pad`)

	eng, th := open(t, noting("pad"), other("nod"))
	set := commands(t, eng, engine.AgentSpec{ID: "a", ActiveHookFilter: []string{"other"}})
	_, err = set.Run(t.Context(), th, nil, "/note text=x")
	require.ErrorIs(t, err, slash.ErrUnknown)
	require.EqualError(t, err, "slash: unknown command /note; there is /nod")
	_, err = set.Run(t.Context(), th, nil, "note")
	require.ErrorIs(t, err, slash.ErrUnknown)
	_, err = set.Call(t.Context(), th, nil, slash.Command{}, "{}")
	require.ErrorIs(t, err, slash.ErrUnknown)

	_, err = set.Call(t.Context(), th, nil, slash.New("nod", "", "", func(context.Context, *phase.Context, struct{}) (slash.Reply, error) { return slash.Reply{}, nil }), "{}")
	require.ErrorIs(t, err, slash.ErrUnknown, "it is of no plugin")
	note, err := commands(t, eng, agent).Lookup("note")
	require.NoError(t, err)
	_, err = set.Call(t.Context(), th, nil, note, `{"text": "x"}`)
	require.ErrorIs(t, err, slash.ErrUnknown, "its plugin is not active")

	eng, _ = open(t, other("two words"))
	_, err = slash.For(eng, agent)
	require.ErrorContains(t, err, "plugin other: /two words cannot be typed")
	_, err = slash.For(eng, engine.AgentSpec{})
	require.ErrorIs(t, err, engine.ErrSpec)
}

// A command that fails, panics, ends its goroutine, hangs or wants what cannot be does no
// harm.
func TestCommandsThatMisbehave(t *testing.T) {
	boom := errors.New("boom")
	unhandled := phase.NewAction[int]("unhandled", phase.StepEnd)
	for name, c := range map[string]struct {
		run  func(ctx context.Context) (slash.Reply, error)
		want error
	}{
		"error":  {func(context.Context) (slash.Reply, error) { return slash.Reply{Text: "x"}, boom }, boom},
		"panic":  {func(context.Context) (slash.Reply, error) { panic(boom) }, slash.ErrPanic},
		"goexit": {func(context.Context) (slash.Reply, error) { runtime.Goexit(); return slash.Reply{}, nil }, slash.ErrPanic},
		"hangs":  {func(ctx context.Context) (slash.Reply, error) { <-ctx.Done(); return slash.Reply{}, nil }, context.Canceled},
		"lies": {func(context.Context) (reply slash.Reply, err error) {
			reply.Command.Update(notes.Append("half")).Schedule(unhandled.New(1))
			return reply, nil
		}, phase.ErrUnknownAction},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eng, th := open(t, noting("pad"), engine.NewPlugin("bad", func(r *engine.Registrar) error {
					r.Extra(slash.New("bad", "", "", func(ctx context.Context, _ *phase.Context, _ struct{}) (slash.Reply, error) { return c.run(ctx) }))
					return nil
				}))
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					synctest.Wait() // until the command hangs, or is over
					cancel()
				}()
				_, err := commands(t, eng, agent).Run(ctx, th, nil, "/bad")
				if errors.Is(c.want, context.Canceled) && err == nil {
					t.Fatal("it went on")
				}
				require.ErrorIs(t, err, c.want)
				require.Empty(t, notes.Get(th.Snapshot()).Slice())
			})
		})
	}
}

// What a person types becomes arguments, or an error that tells the usage.
func TestArgs(t *testing.T) {
	fn := func(context.Context, *phase.Context, note) (slash.Reply, error) { return slash.Reply{}, nil }
	two := slash.New("note", "", noteSchema, fn)
	one := slash.New("say", "", `{"properties":{"text":{"type":"string"}}}`, fn)
	number := slash.New("undo", "", `{"properties":{"steps":{"type":"integer"}}}`, fn)
	none := slash.New("help", "", "", fn)
	for _, c := range []struct {
		command slash.Command
		rest    string
		want    inference.JSON
	}{
		{two, "", "{}"},
		{two, `{"text": 1}`, `{"text": 1}`},
		{two, `text=a  times=3`, `{"text":"a","times":3}`},
		{two, `text=2 times=2`, `{"text":"2","times":2}`},
		{two, "text=a\u00a0times=2", `{"text":"a","times":2}`},
		{two, "text=\"a\"\u00a0times=2", `{"text":"a","times":2}`},
		{two, `text="a b\"=" times=x`, `{"text":"a b\"=","times":"x"}`},
		{one, `two words`, `{"text":"two words"}`},
		{one, `12`, `{"text":"12"}`},
		{one, `a=b c`, `{"text":"a=b c"}`},
		{number, `12`, `{"steps":12}`},
		{number, `steps=12`, `{"steps":12}`},
		{number, `many`, `{"steps":"many"}`},
		{none, "", "{}"},
	} {
		got, err := c.command.Args(c.rest)
		require.NoError(t, err, c.rest)
		require.Equal(t, c.want, got, c.rest)
	}
	for _, c := range []struct {
		command    slash.Command
		rest, want string
	}{
		{two, `{"text"`, "/note text=... [times=...]: what begins with {"},
		{two, `tex=a`, "does not begin with name="},
		{two, `text=a text=b`, "text is given twice"},
		{two, `text="a`, "has no end"},
		{two, `text="a"b`, "white space is missing"},
		{none, `x`, "/help"},
	} {
		_, err := c.command.Args(c.rest)
		require.ErrorIs(t, err, slash.ErrArgs, c.rest)
		require.ErrorContains(t, err, c.want)
	}
	eng, th := open(t, noting("pad"))
	_, err := commands(t, eng, agent).Run(t.Context(), th, nil, `/note {"txt": "x"}`)
	require.ErrorIs(t, err, slash.ErrArgs)
}

// Whatever is typed, it is taken apart without loss and makes JSON or an error.
func FuzzArgs(f *testing.F) {
	for _, seed := range []string{"/note a=b", `/x {"a":1}`, "/", "//", "/a\tb", `/n text="\u0000" times=2`, "hello"} {
		f.Add(seed)
	}
	c := slash.New("note", "", noteSchema, func(context.Context, *phase.Context, note) (slash.Reply, error) { return slash.Reply{}, nil })
	f.Fuzz(func(t *testing.T, line string) {
		name, rest, ok := slash.Split(line)
		if !ok {
			return
		}
		require.NotEmpty(t, name)
		require.False(t, strings.ContainsFunc(name, unicode.IsSpace))
		require.Equal(t, strings.Join(strings.Fields(line), ""), "/"+strings.Join(strings.Fields(name+" "+rest), ""))
		args, err := c.Args(rest)
		if err != nil {
			require.ErrorIs(t, err, slash.ErrArgs)
			return
		}
		require.True(t, args.Valid())
	})
}

// Capability G8. A tool brings a slash command, which is there for the agents that may
// use the tool.
func TestCommandOfATool(t *testing.T) {
	pad := engine.NewPlugin("pad", func(r *engine.Registrar) error {
		r.Tool(engine.WithParts(enginetest.StubTool("jot", engine.Text("jotted")), func(r *engine.Registrar) error {
			r.Key(notes)
			r.Extra(slash.New("jot", "jots something down", "", func(context.Context, *phase.Context, struct{}) (reply slash.Reply, err error) {
				reply.Command.Update(notes.Append("by hand"))
				return reply, nil
			}))
			return nil
		}))
		return nil
	})
	eng, th := open(t, pad)
	set := commands(t, eng, engine.AgentSpec{ID: "a", ExcludedTools: []string{"jot"}})
	_, err := set.Run(t.Context(), th, nil, "/jot")
	require.ErrorIs(t, err, slash.ErrUnknown)

	set = commands(t, eng, engine.AgentSpec{ID: "a"})
	c, err := set.Lookup("jot")
	require.NoError(t, err)
	require.Equal(t, "pad", c.Plugin())
	_, err = set.Run(t.Context(), th, nil, "/jot")
	require.NoError(t, err)
	require.Equal(t, []string{"by hand"}, notes.Get(th.Snapshot()).Slice())
}
