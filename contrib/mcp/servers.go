package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name, and that of its section.
const Name = "mcp"

// Attached holds what of the section's context a thread was given.
var Attached = state.NewSet[string]("mcp.attached", state.Options[string]{Scope: state.ScopeThread})

var (
	attach  = phase.NewAction[ContextItem]("mcp.attach", phase.RunStart)
	release = phase.NewAction[string]("mcp.release", phase.AfterToolExecute)
)

// Servers are connections to servers, and the plugin that has their tools. It is safe
// for concurrent use.
type Servers struct {
	opts   Options
	list   []*connection
	byTool map[string]*connection
	tools  []engine.Tool // fixed when Connect returned
}

// Connect starts and asks the servers, all at the same time, and returns when each has
// said which tools it has. If one that is not Optional cannot be reached, all are closed
// again. The caller closes what it is given, or gives it to an engine whose Close does.
func Connect(ctx context.Context, o Options) (*Servers, error) {
	errs := []error{o.Limits.validate()}
	names := map[string]bool{}
	for _, s := range o.Servers {
		errs = append(errs, s.Validate())
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("%w: there are two servers %q", ErrOptions, s.Name))
		}
		names[s.Name] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	o.Limits, o.Servers = o.Limits.filled(), slices.Clone(o.Servers)
	s := &Servers{opts: o, byTool: map[string]*connection{}}
	for _, server := range o.Servers {
		s.list = append(s.list, newConnection(server, &s.opts))
	}
	errs = make([]error, len(s.list))
	var wg sync.WaitGroup
	for i, c := range s.list {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := c.get(ctx); err != nil && (!c.server.Optional || ctx.Err() != nil) {
				errs[i] = err
			}
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	s.collect()
	return s, nil
}

// collect notes the tools as they are now.
func (s *Servers) collect() {
	for _, c := range s.list {
		defs := c.known()
		for _, name := range slices.Sorted(maps.Keys(defs)) {
			s.tools = append(s.tools, tool{c, defs[name]})
		}
		if defs != nil && c.server.Resources && c.hasResources() {
			s.tools = append(s.tools, c.resourceTools()...)
		}
	}
	for _, t := range s.tools {
		server, _, _ := strings.Cut(t.Spec().Name, separator)
		s.byTool[t.Spec().Name] = s.server(server)
	}
}

func (c *connection) hasResources() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return false
	}
	init := c.link.session.InitializeResult()
	return init != nil && init.Capabilities != nil && init.Capabilities.Resources != nil
}

func (s *Servers) server(name string) *connection {
	for _, c := range s.list {
		if c.server.Name == name {
			return c
		}
	}
	return nil
}

// Tools returns the tools as they were when Connect returned, which the plugin registers.
func (s *Servers) Tools() []engine.Tool { return slices.Clone(s.tools) }

// owner returns whose tool that is, or nil for a tool of somebody else.
func (s *Servers) owner(tool string) *connection {
	if c := s.byTool[tool]; c != nil {
		return c
	}
	name, _, _ := strings.Cut(tool, separator)
	if c := s.server(name); c != nil {
		if _, ok := c.current(tool); ok {
			return c
		}
	}
	return nil
}

// NewTools returns tools that servers have by now and that are not among Tools, for
// Input.Tools of a run. The same lists hold for them. An Optional server that was not
// there is tried again, so that its tools may be among those of the next call.
func (s *Servers) NewTools() (list []engine.Tool) {
	for _, c := range s.list {
		defs := c.known()
		if defs == nil {
			c.try()
		}
		for _, name := range slices.Sorted(maps.Keys(defs)) {
			if _, old := s.byTool[name]; !old {
				list = append(list, tool{c, defs[name]})
			}
		}
	}
	return list
}

// Close ends calls under way and all connections: processes are given Limits.Close to
// end, and then killed with all that is in their groups. It may be called repeatedly.
func (s *Servers) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for _, c := range s.list {
			wg.Add(1)
			go func() { defer wg.Done(); c.close() }()
		}
		wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mcp: servers were not closed in time: %w", context.Cause(ctx))
	}
}

// Shared returns a plugin with the same tools for one of several engines: closing the
// engine leaves the servers open.
func (s *Servers) Shared() engine.Plugin { return shared{s} }

type shared struct{ s *Servers }

func (p shared) Name() string                       { return Name }
func (p shared) Register(r *engine.Registrar) error { return p.s.Register(r) }
func (p shared) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	return p.s.OnActivate(spec, b)
}

// Name returns Name.
func (s *Servers) Name() string { return Name }

// Register registers the tools, the gate and the transform that hold them to the
// section, and the hooks for context and for calls that were called off.
func (s *Servers) Register(r *engine.Registrar) error {
	r.Section(Section)
	r.Key(Attached)
	r.Tool(s.tools...)
	r.Gate(gate.Func(s.check))
	r.Transform(inference.TransformFunc(s.hide))
	r.Action(attach.Handle(s.attach), release.Handle(s.release))
	r.Hook(phase.RunStart, phase.HookFunc(s.attachAll), engine.Writes())
	r.Hook(phase.AfterToolExecute, phase.HookFunc(s.letGo), engine.Writes())
	return nil
}

// OnActivate refuses a spec whose section names servers or tools that are not there, so
// that a slip of the pen does not let through what it was meant to keep out.
func (s *Servers) OnActivate(spec engine.AgentSpec, _ *engine.Batch) error {
	settings, err := Section.From(spec)
	if err != nil {
		return err
	}
	names := slices.Concat(settings.Use, slices.Sorted(maps.Keys(settings.Servers)))
	for _, item := range settings.Context {
		names = append(names, item.Server)
	}
	for _, name := range names {
		if s.server(name) == nil {
			return fmt.Errorf("mcp: agent %s wants the server %q, which is not connected; servers of specs are what FromSpecs returns", spec.ID, name)
		}
	}
	for _, name := range slices.Concat(settings.Allow, settings.Deny) {
		server, _, _ := strings.Cut(name, separator)
		if c := s.server(server); strings.ContainsAny(name, `*?[\`) || c != nil && c.known() == nil {
			continue
		}
		if s.byTool[name] == nil {
			return fmt.Errorf("mcp: agent %s allows or denies the tool %q, which no server has", spec.ID, name)
		}
	}
	return nil
}

// hide takes tools out of the request that the section does not permit.
func (s *Servers) hide(ctx context.Context, r inference.Request) (inference.Request, error) {
	pc, ok := phase.FromContext(ctx)
	if !ok {
		return r, errors.New("mcp: the transform is for requests of an engine")
	}
	settings := Section.Get(pc)
	r.Tools = slices.DeleteFunc(r.Tools, func(t inference.ToolSpec) bool {
		c := s.owner(t.Name)
		return c != nil && !settings.permits(c.server.Name, t.Name)
	})
	return r, nil
}

// check turns away calls that the section does not permit. Calls of a delegate are
// judged here too: what this agent denies holds for it, what it uses does not.
func (s *Servers) check(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	name := pc.Call().Name
	c := s.owner(name)
	if c == nil {
		return gate.Abstain(), nil
	}
	settings := Section.Get(pc)
	own, known := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
	if matches(settings.Deny, name) || known && own.Call.Name == name && !settings.permits(c.server.Name, name) {
		return gate.Block(fmt.Sprintf("this agent may not use %s", name)), nil
	}
	return gate.Abstain(), nil
}

// attachAll schedules what of the section's context the thread does not have yet.
func (s *Servers) attachAll(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	for _, item := range Section.Get(pc).Context {
		id, err := item.id()
		if err != nil {
			return cmd, err
		}
		if !Attached.Has(pc.Snapshot(), id) {
			cmd.Schedule(attach.New(item))
		}
	}
	return cmd, nil
}

func (i ContextItem) id() (string, error) {
	text, err := inference.ToJSON(i)
	return string(text), err
}

// attach reads a piece of context and adds it.
func (s *Servers) attach(ctx context.Context, _ *phase.Context, item ContextItem) (cmd phase.Command, err error) {
	c := s.server(item.Server)
	if c == nil {
		return cmd, fmt.Errorf("mcp: there is no server %q", item.Server)
	}
	m := inference.User("")
	if item.Prompt != "" {
		m.Text, err = c.prompt(ctx, item.Prompt, item.Arguments)
	} else {
		var out engine.Output
		out, err = c.read(ctx, item.Resource)
		m.Text = fmt.Sprintf("From the server %s:\n%s", item.Server, out.Content)
	}
	if err != nil {
		return cmd, err
	}
	id, err := item.id()
	cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: m}))
	cmd.Update(Attached.Add(id))
	return cmd, err
}

// letGo schedules the end of a call that still waits at its server although it is over
// here: the answer was no, nobody came, or the question could not be asked. Whether one
// waits is known outside of the state only.
func (s *Servers) letGo(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if c := s.owner(pc.Call().Name); c != nil && c.desk.has(keyOf(pc)) {
		cmd.Schedule(release.New(pc.Call().Name))
	}
	return cmd, nil
}

// release tells the server that its question was declined, and gives it Limits.Close
// to end the call by itself.
func (s *Servers) release(_ context.Context, pc *phase.Context, name string) (cmd phase.Command, err error) {
	c := s.owner(name)
	if c == nil {
		return cmd, nil
	}
	answer, _ := pc.Answer()
	c.letGo(keyOf(pc), !answer.Approved && !answer.Cancel && answer.Ticket != "")
	return cmd, nil
}

func (c *connection) letGo(k callKey, declined bool) {
	l := c.unpark(k)
	if l == nil {
		return
	}
	go func() {
		if l.open.reply <- refusal(declined); !within(l.done, c.limits.Close) {
			l.cancel(errUnasked)
		}
	}()
}
