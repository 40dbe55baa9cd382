package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
)

// showFlags say how a run is shown and who answers; every command that goes on with
// one has them.
type showFlags struct {
	trace, model                      string
	hooks                             []string
	yes, pause, quiet, verbose, jsonl bool
}

func (f *showFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.trace, "trace", "", "write a trace of the run to this `file` too, as JSON lines")
	f.addHooks(c)
	f.addModel(c)
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "approve what is asked")
	c.Flags().BoolVar(&f.pause, "pause", false, "stop at questions instead of asking at the terminal; for runs in a store")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show questions and the summary only")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show every hook, commit and duration")
	c.Flags().BoolVar(&f.jsonl, "json", false, "print the events as JSON lines, and nothing else")
	c.MarkFlagsMutuallyExclusive("quiet", "verbose", "json")
}

// exitCodes is the part of a help text about them.
const exitCodes = "Exit code: 0 when the run came to its end, 1 when it failed, 2 for wrong arguments\n" +
	"or a faulty spec, 3 when it waits for an answer, 130 when it was cancelled."

func (f showFlags) level() terminal.Level {
	switch {
	case f.quiet || f.jsonl:
		return terminal.Quiet
	case f.verbose:
		return terminal.Verbose
	default:
		return terminal.Normal
	}
}

// hidden lists the files and folders besides the report that the command writes to. The
// store is the value of its flag, or a folder.
func (f showFlags) hidden(store string, others ...string) []string {
	hidden := append(others, f.trace)
	if place, err := stores.Parse(store); err == nil && !place.Shared() {
		hidden = append(append(hidden, place.Folder()), kept.Files(place.Folder())...)
	} else if err == nil {
		hidden = append(hidden, place.Secrets())
	}
	return hidden
}

// session is one run, or the rest of one, in this process.
type session struct {
	agent     agentFile
	workspace workspace
	hooks     hookFiles
	store     *kept.Store // nil for a run that is not kept
	thread    string
	// do runs the agent on the thread. The input has everything but the messages. A nil
	// result means that there was nothing to do, and that it has said so.
	do func(ctx context.Context, th *engine.Thread, in engine.Input, show screenful) (*engine.Result, error)
}

// screenful is what a session shows itself with.
type screenful struct {
	printer *terminal.Printer
	view    *terminal.View
	engine  *engine.Engine
}

// perform builds the engine of a session, has it run and tells how that went.
func (f showFlags) perform(ctx context.Context, s session, stdio IO) error {
	shown := screen(stdio, stdio.Out)
	if f.jsonl {
		shown = screen(stdio, stdio.Err) // standard output is for the events
	}
	printer := terminal.NewPrinter(shown)
	view := terminal.NewView(printer, f.level())
	made := setup{
		workspace: s.workspace, agent: s.agent, keep: s.store != nil, runs: true, view: view,
		state: stdio.stateFolder(s.workspace), now: stdio.Now,
	}
	if err := s.hooks.load(&made); err != nil {
		return err
	}
	config := engine.Config{
		// Ids from a counter, so that the same run gives the same events.
		NewID:     enginetest.NewIDs("id"),
		Resolver:  f.resolver(printer, view, stdio, s.store != nil),
		Observers: []engine.Observer{view},
		Schemas:   jsonschema.New(jsonschema.Options{}),
	}
	if made.hooks != nil {
		config.Resolver = made.hooks.Resolver(config.Resolver)
	}
	if stdio.Plugins != nil {
		config.Plugins = stdio.Plugins()
	}
	if s.store != nil {
		var err error
		config.Journal, config.Vault, config.Owner = s.store.Journal, s.store.Vault, s.store.Owner
		if config.NewID, err = s.store.NewIDs(ctx, s.thread); err != nil {
			return err
		}
	}
	traces, err := f.traces(stdio)
	if err != nil {
		return err
	}
	for _, t := range traces {
		config.Observers = append(config.Observers, t)
	}
	eng, closeEngine, err := made.engine(ctx, config)
	if err != nil {
		return errors.Join(err, closeLines(traces))
	}
	res, err := f.start(ctx, eng, s, screenful{printer, view, eng})
	if err != nil {
		return joined(err, closeEngine(), closeLines(traces))
	}
	err = errors.Join(closeEngine(), closeLines(traces), printer.Err())
	if !f.jsonl {
		printer.Summary(res.Result, res.facts...)
	}
	printer.Waiting(res.questions)
	if err != nil {
		return err
	}
	return outcome(res.Result)
}

// traces opens what the events are written to.
func (f showFlags) traces(stdio IO) (all []written, err error) {
	if f.jsonl {
		all = append(all, &lines{to: stdio.Out})
	}
	if f.trace != "" {
		file, err := newTraceFile(f.trace)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

// finished is a run's result and what the summary adds to it.
type finished struct {
	*engine.Result
	facts     []terminal.Fact
	questions []terminal.Question
}

// start runs the agent.
func (f showFlags) start(ctx context.Context, eng *engine.Engine, s session, show screenful) (finished, error) {
	if err := s.workspace.prepare(); err != nil {
		return finished{}, err
	}
	if err := eng.Open(ctx); err != nil {
		return finished{}, err
	}
	open := func() (*engine.Thread, error) { return eng.NewThread(s.thread) }
	if s.store != nil {
		open = func() (*engine.Thread, error) { return eng.OpenThread(ctx, s.thread) }
		if err := f.deliver(ctx, show); err != nil {
			return finished{}, err
		}
	}
	th, err := open()
	if err != nil {
		return finished{}, err
	}
	in := engine.Input{Mode: "interactive", Adapter: "cli"}
	if f.yes {
		in.Mode = "batch"
	}
	res, err := s.do(ctx, th, in, show)
	if err != nil {
		return finished{}, specFault(err)
	}
	done := finished{Result: res, facts: facts(th, s)}
	if s.store != nil {
		done.questions = questions(s.store.Name, th, res.Tickets)
	}
	return done, nil
}

// deliver delivers the effects in the store that former processes did not get to, of
// whichever thread they are.
func (f showFlags) deliver(ctx context.Context, show screenful) error {
	done, err := show.engine.DeliverOutbox(ctx)
	if done.Delivered > 0 && f.level() > terminal.Quiet {
		show.printer.Line("outbox", fmt.Sprintf("%d delivered that an earlier process left behind", done.Delivered))
	}
	if done.Failed > 0 {
		show.printer.Line("outbox", fmt.Sprintf("%d could not be delivered; a later start tries again", done.Failed))
	}
	if done.Dead > 0 {
		show.printer.Line("outbox", fmt.Sprintf("%d could not be delivered for the last time and were given up", done.Dead))
	}
	if ctx.Err() != nil {
		return nil // the run says that it was cancelled
	}
	return err
}

// resolver returns who answers questions. A run that is kept can wait, so that
// without a terminal nobody has to.
func (f showFlags) resolver(p *terminal.Printer, v *terminal.View, stdio IO, waits bool) gate.Resolver {
	keys, ok := keyboard(stdio)
	prompt := terminal.NewPrompt(p, v, keys)
	if waits && (f.pause || !ok) {
		return terminal.Pause{All: f.yes, Prompt: prompt}
	}
	if f.yes {
		return terminal.Yes{Prompt: prompt}
	}
	return prompt
}

// keyboard describes standard input, and reports whether it is a terminal.
func keyboard(stdio IO) (terminal.Keyboard, bool) {
	keys := terminal.Keyboard{In: stdio.In, Fits: jsonschema.New(jsonschema.Options{}).CheckSchema}
	tty, ok := isTerminal(stdio.In)
	if ok {
		keys.Echoes = true
		keys.Secret = func() (string, error) {
			text, err := term.ReadPassword(int(tty.Fd()))
			return string(text), err
		}
	}
	return keys, ok
}

// screen describes a stream: colour and width for a terminal, plain lines for
// all else.
func screen(stdio IO, w io.Writer) terminal.Screen {
	s := terminal.Screen{Out: w}
	if f, ok := isTerminal(w); ok {
		s.Color = stdio.env("NO_COLOR") == "" && stdio.env("TERM") != "dumb"
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Width = width
		}
	}
	return s
}

// outcome maps how a run ended to an exit code.
func outcome(res *engine.Result) error {
	switch {
	case res.Reason == phase.ReasonCancelled:
		return exitError(ExitCancelled)
	case res.Status == phase.Waiting:
		return exitError(ExitWaiting)
	case res.Reason == phase.ReasonError || res.Err != nil:
		return exitError(ExitError)
	}
	return nil
}
