package main

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// goal is the argument of the command.
type goal struct {
	Next string `json:"next"`
}

const goalSchema inference.JSON = `{"type":"object","properties":{"next":{"type":"string"}},"required":["next"]}`

// handoff is a plugin with the slash command of that name: it goes on in a new thread, which
// knows of the old one what the model said last and whatever plugins keep for the thread.
func handoff(name string) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Extra(slash.NewSteering("handoff", "goes on in a new thread", goalSchema, handOff))
		return nil
	})
}

func handOff(ctx context.Context, s slash.Session, in goal) (slash.Reply, error) {
	if in.Next == "" {
		return slash.Reply{}, fmt.Errorf("%w: say what is next", slash.ErrArgs)
	}
	now := s.Thread().Snapshot()
	summary := ""
	for _, m := range engine.Transcript.Get(now).All() {
		if m.Role == inference.RoleAssistant && m.Text != "" {
			summary = m.Text
		}
	}
	// A fork remembers its origin, so the old thread can be found again.
	next, err := s.Thread().Fork(ctx, now.Revision(), "", engine.Transcript.Replace(inference.User("Go on from what was said last: "+summary)))
	if err != nil {
		return slash.Reply{}, err
	}
	s.Switch(next, s.Agent())
	s.Prompt(in.Next)
	return slash.Reply{Text: "handed off to a new thread"}, nil
}

// session is what a program with a conversation lends to commands.
type session struct {
	thread *engine.Thread
	agent  engine.AgentSpec
	prompt string
}

func (s *session) Thread() *engine.Thread                       { return s.thread }
func (s *session) Agent() engine.AgentSpec                      { return s.agent }
func (s *session) Prompt(text string)                           { s.prompt = text }
func (s *session) Switch(th *engine.Thread, a engine.AgentSpec) { s.thread, s.agent = th, a }
func (s *session) Leave()                                       {}

// say takes a line that a person typed, runs it as a command or as a prompt, and returns
// what the person is answered.
func (s *session) say(ctx context.Context, commands slash.Set, text string) (string, error) {
	s.prompt = text
	if _, _, ok := slash.Split(text); ok {
		s.prompt = ""
		reply, err := commands.Run(ctx, s.thread, s, text)
		if err != nil || s.prompt == "" {
			return reply.Text, err
		}
	}
	res, err := s.thread.Run(ctx, s.agent, engine.Prompt(s.prompt))
	if err != nil {
		return "", err
	}
	return res.Text, res.Err
}
