package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// turn gives the agent a prompt.
func (s *Session) turn(ctx context.Context, text string) {
	if s.settle(ctx); s.gone(ctx) {
		return
	}
	t, err := s.o.Store.Thread(ctx, s.thread.ID())
	switch {
	case err != nil:
		s.fault(err)
		return
	case t.Lifecycle.Status == phase.Waiting:
		s.fault(errors.New("the run of this thread waits; /resume goes on with it, /new begins another thread"))
		s.draft = text
		return
	}
	rec := s.o.Record
	rec.Agent, rec.Prompt, rec.Runs = s.agent.ID, text, t.Record.Runs+1
	rec.Run = kept.RunID(t.ID, rec.Runs)
	s.run(ctx, func(ctx context.Context) (*engine.Result, error) {
		var cmd phase.Command
		cmd.Update(kept.Key.With(rec))
		if _, err := s.thread.Submit(ctx, kept.Name, cmd); err != nil {
			return nil, err
		}
		return s.start(ctx, rec)
	})
	if !s.gone(ctx) {
		s.settle(ctx)
	}
}

// start begins the run of a record.
func (s *Session) start(ctx context.Context, rec kept.Record) (*engine.Result, error) {
	in := s.input()
	in.Messages, in.RunID = engine.Prompt(rec.Prompt).Messages, rec.Run
	return s.thread.Run(ctx, s.agent, in)
}

func (s *Session) input() engine.Input { return engine.Input{Mode: s.o.Mode, Adapter: "cli"} }

// patience is how long a run may take to end when the person has left.
const patience = 10 * time.Second

type ended struct {
	res *engine.Result
	err error
}

// run does what runs the agent, and tells how it went. The error of do is one of its
// arguments or the store.
func (s *Session) run(ctx context.Context, do func(context.Context) (*engine.Result, error)) error {
	if err := s.ids.renew(ctx, s.o.Store, s.thread.ID()); err != nil {
		s.fault(err)
		return err
	}
	job, done := s.begin(ctx)
	defer done()
	over := make(chan ended, 1)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer stop()
		res, err := do(job)
		over <- ended{res, err}
	}()
	if s.o.Live {
		s.meanwhile(job, reading)
	}
	var e ended
	select {
	case e = <-over:
	case <-s.left:
		select {
		case e = <-over:
		case <-time.After(patience):
			e.err = errors.New("the run did not end in time; what it did until now is kept")
		}
	}
	if e.err != nil {
		s.fault(e.err)
		return e.err
	}
	s.o.Printer.Brief(e.res, s.o.Level)
	return nil
}

// meanwhile reads lines while a run is under way.
func (s *Session) meanwhile(job, reading context.Context) {
	for {
		line, err := s.o.Console.ReadLine(reading, lineedit.Query{Prompt: "· ", Text: s.draft, History: s.o.History, Complete: s.completion()})
		s.draft = ""
		switch {
		case errors.Is(err, lineedit.ErrInterrupt):
			s.Interrupt()
			if s.gone(job) {
				return // leaving, or the run is over soon
			}
		case errors.Is(err, io.EOF):
			s.leave()
			s.notes.Text("hint", "the session ends with the run")
			return
		case reading.Err() != nil:
			s.draft = line
			return
		case err != nil:
			return
		default:
			s.during(job, line)
		}
	}
}

// during does what a line asks for that was typed during a run.
func (s *Session) during(ctx context.Context, line string) {
	name, _, command := slash.Split(line)
	if !command {
		if strings.TrimSpace(line) != "" {
			s.draft = line
			s.notes.Text("hint", "a run is under way; the line is kept for when it has ended")
		}
		return
	}
	s.remember(line)
	c, err := s.commands.Lookup(name)
	if err == nil && c.Steers() {
		err = fmt.Errorf("/%s works between runs; Ctrl-C cancels this one", name)
	}
	var reply slash.Reply
	if err == nil {
		reply, err = s.commands.Run(ctx, s.thread, nil, line)
	}
	if err != nil {
		s.fault(err)
		return
	}
	s.notes.Text("", reply.Text)
}
