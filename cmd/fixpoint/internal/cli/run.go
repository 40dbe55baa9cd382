package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/report"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/headline"
)

// runFlags are the flags of the run command.
type runFlags struct {
	showFlags
	dir, out, prompt, store, thread string
}

func newRun(stdio IO) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [SPEC]",
		Short: "Run an agent on a directory and show what happens",
		Long: "Run the first agent of a spec file on a directory, and show what happens: phases,\n" +
			"conflicts, rounds, gate decisions, effects and tool calls, and a summary at the end.\n\n" +
			"What the run writes goes to " + outputDir + "/ below the directory, which its tools do not see.\n\n" +
			"With --store the run is kept in a folder or on a server, and outlives the process:\n" +
			"without a terminal, or with --pause, it stops at the first question, and \"fixpoint\n" +
			"approve\" goes on with it; after a crash, \"fixpoint resume\" does.\n\n" +
			modelHelp + hookHelp + exitCodes,
		Example: "  fixpoint run --dir .                  # the built-in agent; asks before it writes\n" +
			"  fixpoint run agent.yaml --yes -v      # approve what is asked, show every hook\n" +
			"  fixpoint run --model openai:NAME      # with a model of OpenAI\n" +
			"  fixpoint run --yes --json > run.jsonl # the events as JSON lines\n" +
			"  fixpoint run --store runs --pause     # stop at the first question",
		Args: oneSpec,
		RunE: verb(func(ctx context.Context, name string) error { return f.run(ctx, name, stdio) }),
	}
	c.Flags().StringVar(&f.dir, "dir", ".", "the `directory` to work in")
	c.Flags().StringVar(&f.out, "out", "", "the `file` for the report (default DIR/"+outputDir+"/report.md)")
	c.Flags().StringVar(&f.prompt, "prompt", "", "the `text` to give the agent (default: to survey the directory)")
	c.Flags().StringVar(&f.store, "store", "", "keep the run in this `store`: "+stores.Forms+"; a folder is made if it is not there")
	c.Flags().StringVar(&f.thread, "thread", "", "the `id` of the thread in the store (default: the next of thread-1, thread-2, ...)")
	f.add(c)
	return c
}

func (f runFlags) run(ctx context.Context, name string, stdio IO) error {
	switch {
	case f.store == "" && f.thread != "":
		return usageError{errors.New("fixpoint: --thread needs --store")}
	case f.store == "" && f.pause:
		return usageError{errors.New("fixpoint: --pause needs --store, or nobody could go on with the run")}
	}
	choice, err := f.chosen("", stdio)
	if err != nil {
		return err
	}
	a, err := loadAgent(name, choice)
	if err != nil {
		return err
	}
	hooks, err := f.hookFiles()
	if err != nil {
		return err
	}
	a = hooks.agent(a)
	w, err := newWorkspace(f.dir, f.out, f.hidden(f.store, hooks...)...)
	if err != nil {
		return err
	}
	prompt := cmp.Or(f.prompt, "Survey this directory and hand in a report: "+filepath.Base(w.dir))
	s := session{agent: a, workspace: w, hooks: hooks, thread: "thread-1"}
	if f.store == "" {
		s.do = func(ctx context.Context, th *engine.Thread, in engine.Input, show screenful) (*engine.Result, error) {
			f.introduce(a, w, show)
			in.Messages, in.RunID = engine.Prompt(prompt).Messages, "run-1"
			return th.Run(ctx, a.Specs[0], in)
		}
		return f.perform(ctx, s, stdio)
	}
	return withStore(ctx, f.store, kept.Create, func(store *kept.Store) error {
		rec := kept.Record{Agent: a.Specs[0].ID, Dir: w.dir, Report: w.report, Prompt: prompt, Hooks: hooks.text(), Model: choice.model}
		var err error
		if rec.Trace, err = absolute(f.trace); err != nil {
			return err
		}
		if rec.Spec, err = absolute(name); err != nil {
			return err
		}
		if s.thread, rec, err = f.claim(ctx, store, rec); err != nil {
			return err
		}
		s.store = store
		s.do = func(ctx context.Context, th *engine.Thread, in engine.Input, show screenful) (*engine.Result, error) {
			if f.level() > terminal.Quiet {
				show.printer.Line("thread", th.ID())
			}
			f.introduce(a, w, show)
			var cmd phase.Command
			cmd.Update(kept.Key.With(rec))
			if _, err := th.Submit(ctx, kept.Name, cmd); err != nil {
				return nil, err
			}
			return begin(ctx, th, a, rec, in)
		}
		return f.perform(ctx, s, stdio)
	})
}

// claim finds the thread for a new run, and says so in the record.
func (f runFlags) claim(ctx context.Context, store *kept.Store, rec kept.Record) (string, kept.Record, error) {
	id := f.thread
	if id == "" {
		var err error
		if id, err = store.NewThreadID(ctx); err != nil {
			return "", rec, err
		}
	} else if err := kept.CheckThreadID(id); err != nil {
		return "", rec, usageError{fmt.Errorf("fixpoint: --thread: %w", err)}
	}
	t, err := store.Thread(ctx, id)
	switch {
	case err != nil:
		return "", rec, err
	case t.Served():
		return "", rec, served(store.Name, t)
	case len(t.Open) > 0:
		return "", rec, usageError{fmt.Errorf("fixpoint: thread %s waits for an answer to %s; answer it first, or use another thread", id, t.Open[0].Ticket.ID)}
	case t.Interrupted():
		return "", rec, usageError{fmt.Errorf("fixpoint: thread %s has a run whose process ended; \"fixpoint resume %s\" goes on with it, or use another thread", id, id)}
	}
	rec.Runs = t.Record.Runs + 1
	rec.Run = kept.RunID(id, rec.Runs)
	return id, rec, nil
}

// begin starts the run of a record, which is in the store.
func begin(ctx context.Context, th *engine.Thread, a agentFile, rec kept.Record, in engine.Input) (*engine.Result, error) {
	in.Messages, in.RunID = engine.Prompt(rec.Prompt).Messages, rec.Run
	return th.Run(ctx, a.Specs[0], in)
}

// introduce writes what is about to run.
func (f runFlags) introduce(a agentFile, w workspace, show screenful) {
	if f.level() == terminal.Quiet {
		return
	}
	spec, p := a.Specs[0], show.printer
	p.Line("agent", cmp.Or(spec.ID+": "+spec.Description, spec.ID))
	p.Line("directory", w.dir)
	p.Line("model", spec.ModelID)
	for _, text := range serverTexts(spec) {
		p.Line("server", text)
	}
	p.Line("plugins", activePlugins(show.engine.Describe().For(spec)))
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
func facts(th *engine.Thread, s session) []terminal.Fact {
	var out []terminal.Fact
	add := func(label, text string) { out = append(out, terminal.Fact{Label: label, Text: text}) }
	if line := headline.Key.Get(th.Snapshot()).String(); line != "" {
		add("headline", line)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Result.Name == report.Tool && !m.Result.IsError {
			add("report", s.workspace.report)
		}
	}
	return append(out, told(th.Snapshot(), s.workspace, s.agent.Specs[0], s.agent.named())...)
}
