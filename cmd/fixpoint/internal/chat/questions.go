package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Resolver answers the questions of runs: it asks, and approves what is to be confirmed
// without asking if yes says so.
func (s *Session) Resolver(yes bool) gate.Resolver {
	var who gate.Resolver = s.ask
	if yes {
		who = terminal.Yes{Prompt: s.ask}
	}
	return gate.ResolverFunc(func(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
		defer s.release()
		return who.Resolve(ctx, t)
	})
}

// release ends a question, whose lines hold: what is typed behind one of them is for the
// next one, and not for the line below.
func (s *Session) release() {
	if s.o.Release != nil {
		s.o.Release()
	}
}

// roomy is how many columns an answer has at least behind its cue.
const roomy = 24

// answerLine reads a line of an answer. One that does not come leaves the question open.
func (s *Session) answerLine(ctx context.Context, cue, text string) (string, error) {
	q := lineedit.Query{Prompt: cue + " › ", Text: text, Holds: true}
	if s.o.Live && (strings.Contains(cue, "\n") || ansi.StringWidth(cue)+roomy > s.o.Columns()) {
		if _, err := io.WriteString(s.o.Screen.Out, cue+"\n"); err != nil {
			return "", err
		}
		q.Prompt = "› "
	}
	return s.answered(s.o.Console.ReadLine(ctx, q))
}

// secret reads an answer that is not shown.
func (s *Session) secret() (string, error) {
	return s.answered(s.o.Console.ReadLine(s.underWay(), lineedit.Query{Prompt: "› ", Hidden: true, Holds: true}))
}

func (s *Session) answered(line string, err error) (string, error) {
	switch {
	case errors.Is(err, lineedit.ErrInterrupt):
		s.Interrupt()
		return "", errInterrupted
	case errors.Is(err, io.EOF):
		s.leave()
		return "", gate.ErrLeftOpen
	}
	return line, err
}

// settle asks what the thread waits for, until it waits for nothing or the person has
// had enough.
func (s *Session) settle(ctx context.Context) {
	for !s.gone(ctx) {
		open := s.thread.Tickets()
		if len(open) == 0 {
			return
		}
		var decisions []engine.Decision
		if t := open[0]; t.Until.IsZero() || s.o.Now().Before(t.Until) {
			if s.o.Level > terminal.Quiet { // or else the prompt says it
				s.o.Printer.Text("question", t.Message)
			}
			answer, err := s.ask.Ask(ctx, t)
			s.release()
			if err != nil {
				if !errors.Is(err, gate.ErrLeftOpen) {
					s.notes.Text("hint", "the question is left open; /resume asks again")
				}
				return
			}
			answer.Ticket = t.ID
			decisions = append(decisions, engine.Decision{Answer: answer})
		}
		err := s.run(ctx, func(ctx context.Context) (*engine.Result, error) {
			return s.thread.Resume(ctx, s.agent, s.input(), decisions...)
		})
		// An answer that does not fit is asked for again, and one that came too late is not.
		if err != nil && !errors.Is(err, engine.ErrBadAnswer) && !errors.Is(err, engine.ErrLate) {
			return
		}
	}
}

// resume goes on with what the thread's last run left undone.
func (s *Session) resume(ctx context.Context) {
	t, err := s.o.Store.Thread(ctx, s.thread.ID())
	switch {
	case err != nil:
		s.fault(err)
	case len(t.Open) > 0:
		s.settle(ctx)
	case !t.Interrupted():
		s.fault(errors.New("no run of this thread is interrupted or waits; there is nothing to go on with"))
	default:
		_ = s.run(ctx, func(ctx context.Context) (*engine.Result, error) { // it has told the error
			if !t.Begun() {
				return s.start(ctx, t.Record)
			}
			return s.thread.Resume(ctx, s.agent, s.input())
		})
		s.settle(ctx)
	}
}

// schemas are those of the tools that models were offered.
type schemas struct {
	mu     sync.Mutex
	byTool map[string]inference.JSON
}

func (o *schemas) learn(tools []inference.ToolSpec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byTool == nil {
		o.byTool = map[string]inference.JSON{}
	}
	for _, t := range tools {
		o.byTool[t.Name] = t.Schema
	}
}

func (o *schemas) of(tool string) inference.JSON {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byTool[tool]
}

// checkArgs says what is wrong with edited arguments, as far as it is known here.
func (s *Session) checkArgs(tool string, args inference.JSON) error {
	schema := s.offers.of(tool)
	if s.o.Fits == nil || schema == "" {
		return nil
	}
	return s.o.Fits(schema, args)
}
