package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/report"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/audit"
	"github.com/ddd26017/fixpoint/plugins/headline"
)

// runFlags are the flags of the run command.
type runFlags struct {
	dir, out, prompt, trace    string
	yes, quiet, verbose, jsonl bool
}

func newRun(stdio IO) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [SPEC]",
		Short: "Run an agent on a directory and show what happens",
		Long: "Run the first agent of a spec file on a directory, and show what happens: phases,\n" +
			"conflicts, rounds, gate decisions, effects and tool calls, and a summary at the end.\n\n" +
			"What the run writes goes to " + outputDir + "/ below the directory, which its tools do not see.\n" +
			"Exit code: 0 when the run came to its end, 1 when it failed, 2 for wrong arguments\n" +
			"or a faulty spec, 3 when it waits for an answer, 130 when it was cancelled.",
		Example: "  fixpoint run --dir .                  # the built-in agent; asks before it writes\n" +
			"  fixpoint run agent.yaml --yes -v      # approve what is asked, show every hook\n" +
			"  fixpoint run --yes --json > run.jsonl # the events as JSON lines",
		Args: oneSpec,
		RunE: verb(func(ctx context.Context, name string) error { return f.run(ctx, name, stdio) }),
	}
	c.Flags().StringVar(&f.dir, "dir", ".", "the `directory` to work in")
	c.Flags().StringVar(&f.out, "out", "", "the `file` for the report (default DIR/"+outputDir+"/report.md)")
	c.Flags().StringVar(&f.prompt, "prompt", "", "the `text` to give the agent (default: to survey the directory)")
	c.Flags().StringVar(&f.trace, "trace", "", "write the events as JSON lines to this `file` too")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "approve what is asked")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show questions and the summary only")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show every hook, commit and duration")
	c.Flags().BoolVar(&f.jsonl, "json", false, "print the events as JSON lines, and nothing else")
	c.MarkFlagsMutuallyExclusive("quiet", "verbose", "json")
	return c
}

func (f runFlags) level() terminal.Level {
	switch {
	case f.quiet || f.jsonl:
		return terminal.Quiet
	case f.verbose:
		return terminal.Verbose
	default:
		return terminal.Normal
	}
}

func (f runFlags) run(ctx context.Context, name string, stdio IO) error {
	a, err := loadAgent(name)
	if err != nil {
		return err
	}
	spec := a.Specs[0]
	w, err := newWorkspace(f.dir, f.out, f.trace)
	if err != nil {
		return err
	}
	shown := screen(stdio, stdio.Out)
	if f.jsonl {
		shown = screen(stdio, stdio.Err) // standard output is for the events
	}
	printer := terminal.NewPrinter(shown)
	view := terminal.NewView(printer, f.level())
	config := engine.Config{
		// Ids from a counter, so that the same run gives the same events.
		NewID:     enginetest.NewIDs("id"),
		Resolver:  f.resolver(printer, view, stdio),
		Observers: []engine.Observer{view},
	}
	var traces []*lines
	if f.jsonl {
		traces = append(traces, &lines{to: stdio.Out})
	}
	if f.trace != "" {
		file, err := os.Create(f.trace)
		if err != nil {
			return usageError{fmt.Errorf("fixpoint: --trace: %w", err)}
		}
		traces = append(traces, &lines{to: file, file: file})
	}
	for _, t := range traces {
		config.Observers = append(config.Observers, t)
	}
	eng, closeEngine, err := w.engine(config, a)
	if err != nil {
		return errors.Join(err, closeLines(traces))
	}
	res, err := f.start(ctx, eng, w, spec, printer)
	if err != nil {
		return errors.Join(err, closeEngine(), closeLines(traces))
	}
	err = errors.Join(closeEngine(), closeLines(traces), printer.Err())
	if !f.jsonl {
		printer.Summary(res.Result, res.facts...)
	}
	if err != nil {
		return err
	}
	return outcome(res.Result)
}

// finished is a run's result and what the summary adds to it.
type finished struct {
	*engine.Result
	facts []terminal.Fact
}

// start runs the agent.
func (f runFlags) start(ctx context.Context, eng *engine.Engine, w workspace, spec engine.AgentSpec, p *terminal.Printer) (finished, error) {
	if err := w.prepare(); err != nil {
		return finished{}, err
	}
	th, err := eng.NewThread("thread-1")
	if err != nil {
		return finished{}, err
	}
	if f.level() > terminal.Quiet {
		p.Line("agent", cmp.Or(spec.ID+": "+spec.Description, spec.ID))
		p.Line("directory", w.dir)
		p.Line("model", spec.ModelID)
		p.Line("plugins", activePlugins(eng.Describe().For(spec)))
	}
	in := engine.Prompt(cmp.Or(f.prompt, "Survey this directory and hand in a report: "+filepath.Base(w.dir)))
	in.RunID, in.Mode, in.Adapter = "run-1", "interactive", "cli"
	if f.yes {
		in.Mode = "batch"
	}
	res, err := th.Run(ctx, spec, in)
	if err != nil {
		return finished{}, specFault(err)
	}
	return finished{res, facts(th, w, spec)}, nil
}

// activePlugins lists what is active for the agent.
func activePlugins(m engine.Manifest) string {
	var names []string
	for _, p := range m.Plugins {
		if p.Active {
			names = append(names, p.Name)
		}
	}
	return fmt.Sprintf("%d of %d active: %s", len(names), len(m.Plugins), strings.Join(names, ", "))
}

// facts tells what a run left behind.
func facts(th *engine.Thread, w workspace, spec engine.AgentSpec) []terminal.Fact {
	var out []terminal.Fact
	add := func(label, text string) { out = append(out, terminal.Fact{Label: label, Text: text}) }
	if line := headline.Key.Get(th.Snapshot()).String(); line != "" {
		add("headline", line)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Result.Name == report.Tool && !m.Result.IsError {
			add("report", w.report)
		}
	}
	if settings, err := audit.Section.From(spec); err == nil && spec.Active(audit.Name) {
		add("audit", filepath.Join(w.dir, filepath.FromSlash(cmp.Or(settings.Path, audit.DefaultPath))))
	}
	return out
}

func (f runFlags) resolver(p *terminal.Printer, v *terminal.View, stdio IO) gate.Resolver {
	keys := terminal.Keyboard{In: stdio.In}
	if tty, ok := isTerminal(stdio.In); ok {
		keys.Echoes = true
		keys.Secret = func() (string, error) {
			text, err := term.ReadPassword(int(tty.Fd()))
			return string(text), err
		}
	}
	prompt := terminal.NewPrompt(p, v, keys)
	if f.yes {
		return terminal.Yes{Prompt: prompt}
	}
	return prompt
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
