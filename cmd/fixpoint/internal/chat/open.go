package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// ErrThread is returned for a thread that a session cannot go on with.
var ErrThread = errors.New("the thread is not one of this chat")

// ErrAgent is returned for an agent that the spec does not have.
var ErrAgent = errors.New("there is no such agent")

// find returns the agent of that name; "" is the first one.
func (s *Session) find(id string) (engine.AgentSpec, error) {
	var ids []string
	for _, a := range s.o.Agents {
		if id == "" || a.ID == id {
			return a, nil
		}
		ids = append(ids, a.ID)
	}
	return engine.AgentSpec{}, fmt.Errorf("%w: %q; there is %s", ErrAgent, id, strings.Join(ids, ", "))
}

// open goes on with the thread of that id, which is a new one if it is not there. Unless
// the agent was chosen, a thread has the one that it had.
func (s *Session) open(ctx context.Context, id string, agent engine.AgentSpec, chosen bool) error {
	if err := kept.CheckThreadID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrThread, err)
	}
	t, err := s.o.Store.Thread(ctx, id)
	if err != nil {
		return err
	}
	rec := t.Record
	switch {
	case t.Served():
		return fmt.Errorf("%w: %s is for workers to go on with; \"fixpoint submit\" gives it more to do", ErrThread, id)
	case t.Kept() && rec.Dir != s.o.Record.Dir:
		return fmt.Errorf("%w: %s works in %s", ErrThread, id, rec.Dir)
	case t.Kept() && rec.Spec != s.o.Record.Spec:
		return fmt.Errorf("%w: %s has its agents from %s", ErrThread, id, specName(rec.Spec))
	case !t.Kept() && t.Lifecycle.Run != "":
		return fmt.Errorf("%w: %s is of another program", ErrThread, id)
	}
	if t.Kept() && !chosen || len(t.Open) > 0 || t.Interrupted() {
		if agent, err = s.find(rec.Agent); err != nil {
			return err
		}
	}
	th, err := s.eng.OpenThread(ctx, id)
	if err != nil {
		return err
	}
	if err := s.use(ctx, th, agent); err != nil {
		return err
	}
	for _, c := range engine.ToolCalls.All(th.Snapshot()) {
		s.o.View.Remember(c.Call)
	}
	s.standing(t)
	if t.Begun() {
		s.settle(ctx)
	}
	return nil
}

func specName(file string) string {
	if file == "" {
		return "the built-in spec"
	}
	return file
}

// use goes on with a thread and an agent.
func (s *Session) use(ctx context.Context, th *engine.Thread, agent engine.AgentSpec) error {
	set, err := slash.For(s.eng, agent)
	if err != nil {
		return err
	}
	if err := s.ids.renew(ctx, s.o.Store, th.ID()); err != nil {
		return err
	}
	s.thread, s.agent, s.commands = th, agent, set
	return nil
}

// standing tells where a thread stands.
func (s *Session) standing(t kept.Thread) {
	text := t.ID
	switch n := len(t.Open); {
	case !t.Kept():
		text += ", a new one"
	case n > 0:
		text += fmt.Sprintf(", whose run %s waits for %d answers", t.Lifecycle.Run, n)
		if n == 1 {
			text = strings.TrimSuffix(text, "1 answers") + "an answer"
		}
	case t.Interrupted():
		text += ", whose last run has not ended; /resume goes on with it"
		if t.Lifecycle.Status != phase.Waiting {
			text += ", and a prompt begins another one"
		}
	default:
		text += fmt.Sprintf(", with %d prompts so far", t.Record.Runs)
	}
	if s.o.Level > terminal.Quiet || len(t.Open) > 0 {
		s.o.Printer.Text("thread", text)
	}
}
