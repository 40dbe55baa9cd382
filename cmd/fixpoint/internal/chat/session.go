package chat

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// Console is where lines come from.
type Console interface {
	// ReadLine reads a line. It returns io.EOF when no more will come,
	// lineedit.ErrInterrupt when the person pressed Ctrl-C instead, and what was typed so
	// far with the cause when ctx ends.
	ReadLine(ctx context.Context, q lineedit.Query) (string, error)
}

// Options are what a session works with.
type Options struct {
	Console Console
	// Live says that lines can be read while others write to the screen. Columns returns
	// its width then.
	Live    bool
	Release func() // of what follows a line that holds; may be nil
	Columns func() int
	Screen  terminal.Screen
	Printer *terminal.Printer
	View    *terminal.View
	Level   terminal.Level
	History *lineedit.History

	Store  *kept.Store
	Agents []engine.AgentSpec
	Record kept.Record // what is the same for all runs: Spec, Dir, Report, Trace
	Mode   string      // of runs
	Dir    fs.FS       // whose paths are completed
	Fits   func(schema, value inference.JSON) error
	// Now is the clock that two interrupts are told apart by; nil means time.Now.
	Now func() time.Time
}

// Session is a conversation. Make one with New, give its Plugin and NewID to an engine,
// and call Run once.
type Session struct {
	o      Options
	notes  *terminal.Printer // for what must not wait until a question is answered
	ask    *terminal.Prompt
	ids    ids
	offers schemas

	eng      *engine.Engine
	thread   *engine.Thread
	agent    engine.AgentSpec
	commands slash.Set
	draft    string // what the next line begins with

	mu      sync.Mutex
	last    time.Time               // of the last interrupt
	cancel  context.CancelCauseFunc // of what is under way
	job     context.Context
	leaving bool
	left    chan struct{} // closed by a second interrupt
}

// New returns a session that has not begun.
func New(o Options) *Session {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Session{o: o, notes: terminal.NewPrinter(o.Screen), left: make(chan struct{})}
	keys := terminal.Keyboard{Line: s.answerLine, Fits: o.Fits, CheckArgs: s.checkArgs}
	if o.Live {
		keys.Secret = s.secret
	}
	s.ask = terminal.NewPrompt(o.Printer, o.View, keys)
	return s
}

// Run talks until the person leaves or ctx ends. It begins with the thread of that id
// and the agent of that name; "" is the thread's own, or the first one. The error is one
// of the store or the arguments.
func (s *Session) Run(ctx context.Context, eng *engine.Engine, thread, agent string) error {
	s.eng = eng
	spec, err := s.find(agent)
	if err != nil {
		return err
	}
	if err := s.open(ctx, thread, spec, agent != ""); err != nil {
		return err
	}
	for !s.gone(ctx) {
		line, err := s.o.Console.ReadLine(ctx, lineedit.Query{
			Prompt: s.agent.ID + " › ", Text: s.draft, History: s.o.History, Complete: s.completion(),
		})
		s.draft = ""
		switch {
		case errors.Is(err, lineedit.ErrInterrupt):
			s.Interrupt()
		case errors.Is(err, io.EOF):
			s.leave()
		case ctx.Err() != nil:
		case err != nil:
			return err
		default:
			s.remember(line)
			s.enter(ctx, line)
		}
	}
	return nil
}

// Thread is what the session works on.
func (s *Session) Thread() *engine.Thread { return s.thread }

// enter does what a line asks for.
func (s *Session) enter(ctx context.Context, line string) {
	trimmed := strings.TrimSpace(line)
	switch _, _, command := slash.Split(line); {
	case trimmed == "":
	case command:
		s.command(ctx, trimmed)
	case strings.HasPrefix(trimmed, "//"):
		s.turn(ctx, trimmed[1:])
	case strings.HasPrefix(trimmed, "/"):
		s.fault(errors.New("a slash is followed by the name of a command; /help lists them; // begins a prompt with a slash"))
	default:
		s.turn(ctx, trimmed)
	}
}

// remember adds a line to the history. A history that cannot be written is told, and
// goes on in memory.
func (s *Session) remember(line string) {
	if s.o.History == nil {
		return
	}
	if err := s.o.History.Add(line); err != nil {
		s.fault(err)
	}
}

// fault tells what is wrong.
func (s *Session) fault(err error) {
	s.notes.Text("fault", strings.TrimPrefix(err.Error(), "fixpoint: "))
}

func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
}

func (s *Session) gone(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving || ctx.Err() != nil
}
