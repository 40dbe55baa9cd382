package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/chat"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/models"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/engine"
)

// chatFlags are the flags of the chat command.
type chatFlags struct {
	showFlags
	dir, out, store, thread, agent string
}

// chatStore is the folder for threads and lines, in outputDir.
const chatStore = "chat"

func newChat(stdio IO) *cobra.Command {
	var f chatFlags
	c := &cobra.Command{
		Use:   "chat [SPEC]",
		Short: "Talk with an agent at the terminal",
		Long: "Talk with the agents of a spec file about a directory: type prompts, see what happens,\n" +
			"answer what is asked, and use slash commands, which /help lists. What is said and done\n" +
			"is kept, so that a later session goes on with it: --thread names the thread.\n\n" +
			"Keys: Tab completes commands, their arguments and paths. Up and Ctrl-P bring back\n" +
			"earlier lines, also those of earlier sessions; a line that begins with a space is not\n" +
			"kept, and answers never are. Alt-Enter breaks the line, and a paste of several lines\n" +
			"is one prompt. Ctrl-C cancels the run or abandons the line, and leaves when it comes\n" +
			"twice within two seconds. Ctrl-D leaves; at a question it leaves that open, and the\n" +
			"next session on the thread asks it again.\n\n" +
			"A question about a tool call takes yes, no (with a reason behind it), always for the\n" +
			"rest of the run, view, and edit, which lets you change the arguments before the call runs.\n\n" +
			modelHelp +
			"A script answers from its file, whatever you say. One that is at its end, or that cannot\n" +
			"go on, begins anew with your newest prompt.\n\n" +
			"Lines that begin with a slash are commands; // begins a prompt with a slash. During a\n" +
			"run, commands that only look or note something work as well.\n\n" +
			"Without a terminal, lines are read from standard input until it ends: prompts, commands\n" +
			"and, while a run asks, answers. No prompts are shown.\n\n" +
			hookHelp +
			"Exit code: 0 when you left, 1 when the session failed, 2 for wrong arguments or a faulty\n" +
			"spec, 3 when the thread waits for an answer, 130 when it was cancelled from outside.",
		Example: "  fixpoint chat                           # with the built-in agent, about this directory\n" +
			"  fixpoint chat agent.yaml --dir notes    # with the first agent of a file\n" +
			"  fixpoint chat --thread thread-1         # go on with an earlier conversation\n" +
			"  echo 'Survey this.' | fixpoint chat -y  # without a terminal",
		Args: oneSpec,
		RunE: verb(func(ctx context.Context, name string) error { return f.run(ctx, name, stdio) }),
	}
	fl := c.Flags()
	fl.StringVar(&f.dir, "dir", ".", "the `directory` to work in")
	fl.StringVar(&f.out, "out", "", "the `file` for the report (default DIR/"+outputDir+"/report.md)")
	fl.StringVar(&f.store, "store", "", "the `store` for threads: "+stores.Forms+"; a folder has the history of lines too (default DIR/"+outputDir+"/"+chatStore+")")
	fl.StringVar(&f.thread, "thread", "", "the `id` of the thread (default: the next of thread-1, thread-2, ...)")
	fl.StringVar(&f.agent, "agent", "", "the `id` of the agent to begin with (default: the thread's, or the first of the spec)")
	fl.StringVar(&f.trace, "trace", "", "write a trace of the run to this `file` too, as JSON lines")
	f.addHooks(c)
	f.addModel(c)
	fl.BoolVarP(&f.yes, "yes", "y", false, "approve what is asked")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show questions and answers only")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show every hook, commit and duration")
	c.MarkFlagsMutuallyExclusive("quiet", "verbose")
	return c
}

func (f chatFlags) run(ctx context.Context, name string, stdio IO) error {
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
	if f.store == "" {
		f.store = filepath.Join(f.dir, outputDir, chatStore)
	}
	w, err := newWorkspace(f.dir, f.out, f.hidden(f.store, hooks...)...)
	if err != nil {
		return err
	}
	rec := kept.Record{Dir: w.dir, Report: w.report, Hooks: hooks.text(), Model: choice.model}
	if rec.Spec, err = absolute(name); err != nil {
		return err
	}
	if rec.Trace, err = absolute(f.trace); err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return err
	}
	return withStore(ctx, f.store, kept.Create, func(store *kept.Store) error {
		if f.thread != "" && len(hooks) == 0 { // a thread keeps the guards that it had
			t, err := store.Thread(ctx, f.thread)
			if err == nil {
				hooks, err = recordedHooks(t.Record.Hooks)
			}
			if err != nil {
				return storeFault(err)
			}
			rec.Hooks = hooks.text()
		}
		if f.thread != "" && f.model == "" { // and its model
			t, err := store.Thread(ctx, f.thread)
			if err != nil {
				return storeFault(err)
			}
			if rec.Model = t.Record.Model; rec.Model != "" {
				choice.model = rec.Model
				if a, err = loadAgent(name, choice); err != nil {
					return err
				}
			}
		}
		lines, err := lineedit.OpenHistory(kept.LinesFile(cmp.Or(store.Folder, filepath.Join(w.dir, outputDir))))
		if err != nil {
			return err
		}
		desk, err := openDesk(stdio)
		if err != nil {
			return err
		}
		defer func() { _ = desk.close() }() // also if the program fails; a second time it does nothing
		open, err := f.talk(ctx, hooks, hooks.agent(a), w, stdio, desk, chat.Options{Store: store, Record: rec, History: lines})
		if ctx.Err() != nil { // what else it says follows from that
			err = exitError(ExitCancelled)
		}
		err = joined(err, desk.close())
		if err == nil && len(open) > 0 {
			terminal.NewPrinter(screen(stdio, stdio.Out)).Waiting(open)
			err = exitError(ExitWaiting)
		}
		return err
	})
}

// talk holds the session and returns the questions that it leaves open.
func (f chatFlags) talk(ctx context.Context, hooks hookFiles, a agentFile, w workspace, stdio IO, d *desk, o chat.Options) (open []terminal.Question, err error) {
	o.Console, o.Live, o.Release, o.Columns, o.Screen, o.Level = d.console, d.live, d.release, d.columns, d.screen, f.level()
	o.Printer = terminal.NewPrinter(o.Screen)
	o.View = terminal.NewView(o.Printer, f.level())
	o.Agents, o.Mode, o.Dir = chat.With(a.Specs), "interactive", os.DirFS(w.dir)
	if f.yes {
		o.Mode = "batch"
	}
	schemas := jsonschema.New(jsonschema.Options{})
	o.Fits = schemas.CheckSchema
	s := chat.New(o)
	d.interrupt = s.Interrupt
	traces, err := f.traces(stdio)
	if err != nil {
		return nil, err
	}
	defer func() { err = joined(err, closeLines(traces), o.Printer.Err()) }()
	made := setup{workspace: w, agent: a, keep: true, runs: true, view: o.View, state: stdio.stateFolder(w), now: stdio.Now}
	if err := hooks.load(&made); err != nil {
		return nil, err
	}
	config := engine.Config{
		NewID: s.NewID, Resolver: s.Resolver(f.yes), Observers: []engine.Observer{o.View}, Schemas: schemas,
		Journal: o.Store.Journal, Vault: o.Store.Vault, Owner: o.Store.Owner,
	}
	if made.hooks != nil {
		config.Resolver = made.hooks.Resolver(config.Resolver)
	}
	if stdio.Plugins != nil {
		config.Plugins = stdio.Plugins()
	}
	config.Plugins = append(config.Plugins, s.Plugin())
	for _, t := range traces {
		config.Observers = append(config.Observers, t)
	}
	a.Specs, a.models = o.Agents, maps.Clone(a.models)
	for id, m := range a.models {
		a.models[id] = s.Watch(m)
	}
	made.agent = a
	eng, closeEngine, err := made.engine(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = joined(err, closeEngine()) }()
	if err := eng.Open(ctx); err != nil {
		return nil, err
	}
	if err := f.deliver(ctx, screenful{o.Printer, o.View, eng}); err != nil {
		return nil, err
	}
	id := f.thread
	if id == "" {
		if id, err = o.Store.NewThreadID(ctx); err != nil {
			return nil, storeFault(err)
		}
	}
	if err := f.welcome(ctx, a, w, o, eng); err != nil {
		return nil, err
	}
	err = s.Run(ctx, eng, id, f.agent)
	if errors.Is(err, chat.ErrThread) || errors.Is(err, chat.ErrAgent) {
		return nil, usageError{fmt.Errorf("fixpoint: %w", err)}
	}
	if err != nil {
		return nil, specFault(err)
	}
	return questions(o.Store.Name, s.Thread(), s.Thread().Tickets()), nil
}

// welcome says what there is to talk with.
func (f chatFlags) welcome(ctx context.Context, a agentFile, w workspace, o chat.Options, eng *engine.Engine) error {
	if f.level() == terminal.Quiet {
		return nil
	}
	spec := a.Specs[0]
	for _, other := range a.Specs {
		if other.ID == f.agent {
			spec = other
		}
	}
	p := o.Printer
	p.Text("agent", cmp.Or(spec.ID+": "+spec.Description, spec.ID))
	p.Text("directory", w.dir)
	if strings.HasPrefix(spec.ModelID, models.Script+":") {
		p.Text("model", spec.ModelID+": it plays its script, whatever you say, and anew when that is over")
	} else {
		p.Text("model", spec.ModelID)
	}
	p.Text("plugins", activePlugins(eng.Describe().For(spec)))
	p.Text("help", "/help lists the commands; Ctrl-D leaves")
	all, err := o.Store.Threads(ctx)
	if err != nil {
		return storeFault(err)
	}
	var waiting []string
	for _, t := range all {
		if len(t.Open) > 0 && t.ID != f.thread {
			waiting = append(waiting, t.ID)
		}
	}
	if len(waiting) > 0 {
		p.Text("waiting", strings.Join(waiting, ", ")+"; /switch goes on with a thread")
	}
	return nil
}

// desk is where a person types and reads, or a pipe.
type desk struct {
	console   chat.Console
	live      bool
	release   func()
	screen    terminal.Screen
	columns   func() int
	interrupt func() // what Ctrl-C does
	close     func() error
}

// openDesk takes the terminal, if there is one on both sides.
func openDesk(stdio IO) (*desk, error) {
	d := &desk{screen: screen(stdio, stdio.Out), columns: func() int { return 80 }, close: func() error { return nil }}
	in, keys := isTerminal(stdio.In)
	out, shown := isTerminal(stdio.Out)
	if !keys || !shown || stdio.env("TERM") == "dumb" {
		if stdio.In == nil {
			stdio.In = strings.NewReader("")
		}
		d.console = chat.NewPlain(stdio.In)
		return d, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("fixpoint: the terminal cannot be set up: %w", err)
	}
	size := func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return 80, 24
		}
		return columns, rows
	}
	editor := lineedit.New(lineedit.Config{In: in, Out: out, Size: size, Interrupt: func() {
		if d.interrupt != nil {
			d.interrupt()
		}
	}})
	d.console, d.live, d.release, d.screen.Out = editor, true, editor.Release, editor
	d.columns = func() int { columns, _ := size(); return columns }
	d.close = sync.OnceValue(func() error {
		editor.Close()
		return term.Restore(int(in.Fd()), before)
	})
	return d, nil
}
