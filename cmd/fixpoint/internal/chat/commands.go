package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// Name is the name of the plugin with the session's own commands.
const Name = "chat"

// Plugin returns the plugin with the session's own commands, which are of use in this
// session only.
func (s *Session) Plugin() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		for _, c := range s.narrow() {
			r.Extra(c)
		}
		for _, c := range s.steering() {
			r.Extra(c)
		}
		return nil
	})
}

// With adds the plugin to the agents that list theirs.
func With(agents []engine.AgentSpec) []engine.AgentSpec {
	all := make([]engine.AgentSpec, len(agents))
	for i, a := range agents {
		a = a.Clone()
		if len(a.PluginIDs) > 0 {
			a.PluginIDs = append(a.PluginIDs, Name)
		}
		if len(a.ActiveHookFilter) > 0 {
			a.ActiveHookFilter = append(a.ActiveHookFilter, Name)
		}
		all[i] = a
	}
	return all
}

// text makes a schema of one text, which is typed without its name.
func text(name string, required bool) inference.JSON {
	more := ""
	if required {
		more = `,"required":["` + name + `"]`
	}
	return inference.JSON(`{"type":"object","properties":{"` + name + `":{"type":"string"}}` + more + `}`)
}

type none struct{}

// narrow returns the commands that work during a run, too.
func (s *Session) narrow() []engine.Extra {
	show := func(name, about string, fn func(context.Context, *strings.Builder) error) engine.Extra {
		return slash.New(name, about, "", func(ctx context.Context, _ *phase.Context, _ none) (slash.Reply, error) {
			var b strings.Builder
			err := fn(ctx, &b)
			return slash.Reply{Text: b.String()}, err
		})
	}
	return []engine.Extra{
		show("help", "lists the commands", func(_ context.Context, b *strings.Builder) error { return s.help(b) }),
		show("tools", "lists the agent's tools", func(_ context.Context, b *strings.Builder) error { return s.tools(b) }),
		show("plugins", "lists the plugins and what they bring", func(_ context.Context, b *strings.Builder) error { return s.plugins(b) }),
		show("threads", "lists the threads of the store", func(ctx context.Context, b *strings.Builder) error {
			all, err := s.o.Store.Threads(ctx)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				b.WriteString("none yet; the first prompt makes one")
			}
			return listing.Threads(b, all, nil)
		}),
		slash.New("history", "lists the thread's commits, newest first: /history 50 lists 50 of them",
			`{"type":"object","properties":{"newest":{"type":"integer","minimum":1}}}`, s.history),
		slash.New("diff", "shows what differs between two revisions, or one and now: /diff 12 31", text("revisions", true), s.diff),
	}
}

// listed is how many commits are listed where it is not said.
const listed = 20

func (s *Session) history(ctx context.Context, _ *phase.Context, in struct{ Newest int }) (slash.Reply, error) {
	all, err := listing.Revisions(ctx, s.thread)
	if err != nil {
		return slash.Reply{}, err
	}
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("nothing yet")
	}
	n := min(len(all), cmp.Or(max(0, in.Newest), listed))
	if err := listing.History(&b, all[:n]); err != nil {
		return slash.Reply{}, err
	}
	if more := len(all) - n; more > 0 {
		fmt.Fprintf(&b, "… and %d before; /history %d lists all", more, len(all))
	}
	return slash.Reply{Text: b.String()}, nil
}

func (s *Session) diff(ctx context.Context, _ *phase.Context, in struct{ Revisions string }) (slash.Reply, error) {
	words := strings.Fields(in.Revisions)
	at := []uint64{0, s.thread.Snapshot().Revision()}
	if len(words) < 1 || len(words) > 2 {
		return slash.Reply{}, errors.New("/diff takes one revision or two; /history lists them")
	}
	for i, w := range words {
		n, err := revision(w)
		if err != nil {
			return slash.Reply{}, err
		}
		at[i] = n
	}
	all, err := s.thread.Diff(ctx, at[0], at[1])
	if err != nil {
		return slash.Reply{}, err
	}
	var b strings.Builder
	err = listing.Diff(&b, all, "fixpoint diff --json has the whole values")
	return slash.Reply{Text: b.String()}, err
}

func revision(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no revision; /history lists them", text)
	}
	return n, nil
}

// steering returns the commands that work between runs.
func (s *Session) steering() []engine.Extra {
	return []engine.Extra{
		slash.NewSteering("quit", "leaves, as Ctrl-D does", "", func(_ context.Context, l slash.Session, _ none) (slash.Reply, error) {
			l.Leave()
			return slash.Reply{}, nil
		}),
		slash.NewSteering("new", "begins a new thread", "", func(ctx context.Context, l slash.Session, _ none) (slash.Reply, error) {
			id, err := s.o.Store.NewThreadID(ctx)
			if err != nil {
				return slash.Reply{}, err
			}
			return s.goTo(ctx, l, id)
		}),
		slash.NewSteering("switch", "goes on with another thread of the store: /switch thread-2", text("thread", true),
			func(ctx context.Context, l slash.Session, in struct{ Thread string }) (slash.Reply, error) {
				t, err := s.o.Store.Thread(ctx, in.Thread)
				if err == nil && !t.Kept() && t.Lifecycle.Run == "" {
					err = fmt.Errorf("there is no thread %q; /threads lists them", in.Thread)
				}
				if err != nil {
					return slash.Reply{}, err
				}
				return s.goTo(ctx, l, in.Thread)
			}),
		slash.NewSteering("agent", "goes on with another agent of the spec: /agent reviewer", text("id", true),
			func(_ context.Context, l slash.Session, in struct{ ID string }) (slash.Reply, error) {
				a, err := s.find(in.ID)
				if err != nil {
					return slash.Reply{}, err
				}
				l.Switch(l.Thread(), a)
				return slash.Reply{Text: cmp.Or(a.ID+": "+a.Description, a.ID)}, nil
			}),
		slash.NewSteering("fork", "makes a new thread of a revision and goes on with it: /fork 12",
			`{"type":"object","properties":{"revision":{"type":"integer","minimum":1}},"required":["revision"]}`, s.fork),
		slash.NewSteering("retry", "gives the thread's last prompt again", "", func(_ context.Context, l slash.Session, _ none) (slash.Reply, error) {
			last := kept.Key.Get(l.Thread().Snapshot()).Prompt
			if last == "" {
				return slash.Reply{}, errors.New("there was no prompt yet")
			}
			l.Prompt(last)
			return slash.Reply{Text: last}, nil
		}),
		slash.NewSteering("resume", "goes on with a run that was interrupted or waits", "", func(_ context.Context, l slash.Session, _ none) (slash.Reply, error) {
			own, ok := l.(*lent)
			if !ok {
				return slash.Reply{}, slash.ErrNoSession
			}
			own.resume()
			return slash.Reply{}, nil
		}),
	}
}

func (s *Session) fork(ctx context.Context, l slash.Session, in struct{ Revision uint64 }) (slash.Reply, error) {
	if in.Revision == 0 {
		return slash.Reply{}, errors.New("at revision 0 there is nothing yet; /history lists the others")
	}
	id, err := s.o.Store.NewThreadID(ctx)
	if err != nil {
		return slash.Reply{}, err
	}
	if _, err := s.o.Store.Fork(ctx, l.Thread().ID(), in.Revision, id); err != nil {
		return slash.Reply{}, err
	}
	reply, err := s.goTo(ctx, l, id)
	reply.Text = fmt.Sprintf("%s begins as %s was at revision %d", id, l.Thread().ID(), in.Revision)
	return reply, err
}

// goTo has the session go on with the thread of that id.
func (s *Session) goTo(ctx context.Context, l slash.Session, id string) (slash.Reply, error) {
	th, err := s.eng.OpenThread(ctx, id)
	if err == nil {
		l.Switch(th, l.Agent())
	}
	return slash.Reply{}, err
}

// lent is what commands steer with. What they ask for is done when they have returned.
type lent struct {
	mu     sync.Mutex // a command that was given up on may still be at work
	thread *engine.Thread
	agent  engine.AgentSpec
	wants
}

type wants struct {
	prompt               string
	to                   *engine.Thread
	as                   engine.AgentSpec
	leave, again, handed bool
}

func (l *lent) Thread() *engine.Thread  { return l.thread }
func (l *lent) Agent() engine.AgentSpec { return l.agent.Clone() }

func (l *lent) want(set func(w *wants)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set(&l.wants)
}

func (l *lent) Prompt(text string) { l.want(func(w *wants) { w.prompt = text }) }
func (l *lent) Leave()             { l.want(func(w *wants) { w.leave = true }) }
func (l *lent) resume()            { l.want(func(w *wants) { w.again = true }) }

func (l *lent) Switch(th *engine.Thread, agent engine.AgentSpec) {
	l.want(func(w *wants) { w.to, w.as, w.handed = th, agent, true })
}

// command runs a slash command between runs, and does what it asks for.
func (s *Session) command(ctx context.Context, line string) {
	l := &lent{thread: s.thread, agent: s.agent}
	job, done := s.begin(ctx)
	reply, err := s.commands.Run(job, s.thread, l, line)
	done()
	if err != nil {
		s.fault(err)
		return
	}
	s.o.Printer.Text("", reply.Text)
	l.mu.Lock()
	w := l.wants
	l.mu.Unlock()
	if w.handed && w.to != nil {
		if err := s.hand(ctx, w); err != nil {
			s.fault(err)
			return
		}
	}
	switch {
	case w.leave:
		s.leave()
	case w.again:
		s.resume(ctx)
	case w.prompt != "":
		s.turn(ctx, w.prompt)
	}
}

// hand goes on with the thread or the agent that a command wants.
func (s *Session) hand(ctx context.Context, w wants) error {
	if w.to.ID() == s.thread.ID() {
		return s.use(ctx, w.to, w.as)
	}
	return s.open(ctx, w.to.ID(), w.as, w.as.ID != s.agent.ID)
}
