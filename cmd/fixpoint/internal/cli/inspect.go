package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	inspector "github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// past is where a command finds what happened: in a trace or in a store.
type past struct{ trace, store string }

// pastHelp is what the help texts of the commands that look back have in common.
const pastHelp = "TRACE is a file that --trace made, or the lines of --json; a run may still be writing it.\n" +
	"With --store FOLDER instead, it is what the store tells, also while its run goes on: what\n" +
	"each commit changed and when, tool calls with their questions and answers, and effects\n" +
	"that were not delivered. Who wrote a value and what hooks and gates did, only a trace\n" +
	"tells; for a run that was started with --store and --trace both are put together."

// pastOf takes the trace off the arguments, of which the others are called so.
func pastOf(c *cobra.Command, args []string, store string, others ...string) (past, []string, error) {
	if store != "" {
		folder, err := folderOf(store, c.Name())
		if err != nil {
			return past{}, nil, err
		}
		return past{store: folder}, args, exactly(others...)(c, args)
	}
	if len(args) == 0 {
		return past{}, nil, usageError{fmt.Errorf("fixpoint: name a trace, or a store with --store; see %s --help", c.CommandPath())}
	}
	if err := exactly(append([]string{"TRACE"}, others...)...)(c, args); err != nil {
		return past{}, nil, err
	}
	return past{trace: args[0]}, args[1:], nil
}

// completed completes the trace by the names of files, and nothing else.
func completed(store *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if *store == "" && len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// known reports what is wrong with a trace that its first bytes tell.
func (p past) known() error {
	info, err := os.Stat(p.trace)
	switch {
	case p.store != "" || err != nil:
		return nil // what is wrong with it is told by who opens it
	case info.IsDir():
		return usageError{fmt.Errorf("fixpoint: %s is a folder; name the file of a trace, or a store with --store %s", p.trace, p.trace)}
	case !info.Mode().IsRegular():
		return nil
	}
	file, err := os.Open(p.trace)
	if err != nil {
		return nil
	}
	defer file.Close()
	var begin [2]byte
	if _, err := io.ReadFull(file, begin[:]); err == nil && begin == [2]byte{0x1f, 0x8b} {
		return usageError{fmt.Errorf("fixpoint: %s is compressed; uncompress it first, as with gunzip", p.trace)}
	}
	return nil
}

// spare reports whether a file that is to be written is one that is to be read.
func (p past) spare(file string) error {
	to, err := os.Stat(file)
	if err != nil {
		return nil
	}
	if to.IsDir() {
		return usageError{fmt.Errorf("fixpoint: --html: %s is a folder; name a file", file)}
	}
	from := []string{p.trace}
	if p.store != "" {
		from = kept.Files(p.store)
	}
	for _, name := range from {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, to) {
			return usageError{fmt.Errorf("fixpoint: --html: %s is what is to be shown; name another file", file)}
		}
	}
	return nil
}

// read reads all there is by now.
func (p past) read(ctx context.Context) (*recording.Recording, error) {
	if err := p.known(); err != nil {
		return nil, err
	}
	if p.store != "" {
		rec, err := inspector.ReadStore(ctx, p.store)
		return rec, pastFault(err)
	}
	rec, err := inspector.Read(p.trace)
	return rec, pastFault(err)
}

// follow reads into a source until ctx ends.
func (p past) follow(ctx context.Context, source *inspector.Source, caught func()) error {
	if p.store != "" {
		return inspector.FollowStore(ctx, p.store, source, caught)
	}
	return inspector.Follow(ctx, p.trace, source, caught)
}

// pastFault makes a fault of the arguments of a file or a store that is not there.
func pastFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kept.ErrNoStore), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, inspector.ErrNoTrace):
		return usageError{fmt.Errorf("fixpoint: %w", err)}
	default:
		return fmt.Errorf("fixpoint: %w", err)
	}
}

// inspectFlags are the flags of the inspect command.
type inspectFlags struct {
	store, addr, html string
	open              bool
}

func newInspect(stdio IO) *cobra.Command {
	var f inspectFlags
	c := &cobra.Command{
		Use:   "inspect [TRACE]",
		Short: "Show runs in a browser: timeline, state at each revision, decisions, effects",
		Long: "Show the runs of a trace or a store in a browser: a timeline with the hooks of each\n" +
			"phase, conflicts and retries, rounds of actions, tool calls and waits for people; the\n" +
			"state at any revision and what changed it; the decisions of gates; effects.\n\n" +
			"It serves a page on this machine only, prints its address, and follows what the run\n" +
			"goes on to do until Ctrl-C. Whoever may log in to this machine can open the page while\n" +
			"it is served. --html writes the page as one file instead, which needs nothing else.\n\n" + pastHelp + "\n\n" +
			"Exit code: 0, also after Ctrl-C; 1 when what is to be shown cannot be read; 2 for wrong\narguments.",
		Example: "  fixpoint run --yes --trace run.jsonl && fixpoint inspect run.jsonl --open\n" +
			"  fixpoint inspect --store runs\n" +
			"  fixpoint inspect run.jsonl --html run.html",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, _ string) error {
			p, _, err := pastOf(c, args, f.store)
			if err != nil {
				return err
			}
			if c.Flags().Changed("html") {
				return f.write(ctx, p, stdio)
			}
			return f.serve(ctx, p, stdio)
		})(c, nil)
	}
	c.ValidArgsFunction = completed(&f.store)
	storeFlag(c, &f.store)
	c.Flags().StringVar(&f.addr, "addr", "127.0.0.1:0", "the `address` to serve on, of this machine; port 0 is any that is free")
	c.Flags().BoolVar(&f.open, "open", false, "open the page in the browser")
	c.Flags().StringVar(&f.html, "html", "", "write the page to this `file` and end; - is standard output")
	c.MarkFlagsMutuallyExclusive("html", "addr")
	c.MarkFlagsMutuallyExclusive("html", "open")
	return c
}

// write writes the page as one file, all of it or nothing.
func (f inspectFlags) write(ctx context.Context, p past, stdio IO) error {
	if f.html == "" {
		return usageError{errors.New("fixpoint: --html needs a file, or - for standard output")}
	}
	if err := p.spare(f.html); err != nil {
		return err
	}
	rec, err := p.read(ctx)
	if err != nil {
		return err
	}
	view, err := json.Marshal(rec.View())
	if err != nil {
		return err
	}
	page, err := inspector.SingleFile(view)
	if err != nil {
		return err
	}
	if f.html == "-" {
		_, err := stdio.Out.Write(page)
		return err
	}
	if err := replaceFile(f.html, page); err != nil {
		return usageError{fmt.Errorf("fixpoint: --html: %w", err)}
	}
	_, err = fmt.Fprintf(stdio.Out, "%s\n", f.html)
	return err
}

// replaceFile writes a file as a whole: who reads it sees the old one or the new one. A
// pipe or a device is written to and stays what it is.
func replaceFile(file string, content []byte) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		to, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = to.Write(content)
		return errors.Join(err, to.Close())
	}
	draft, err := os.CreateTemp(filepath.Dir(file), ".fixpoint-*.draft")
	if err != nil {
		return err
	}
	_, err = draft.Write(content)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), file) // for its owner only, as it may tell what others should not know
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// serve shows the page until ctx ends.
func (f inspectFlags) serve(ctx context.Context, p past, stdio IO) error {
	if err := p.known(); err != nil {
		return err
	}
	l, err := inspector.Listen(ctx, f.addr)
	if err != nil {
		return usageError{fmt.Errorf("fixpoint: --addr: %w", err)}
	}
	name := p.trace + p.store
	if info, err := os.Stat(p.trace); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		if _, err := fmt.Fprintf(stdio.Err, "note: %s is empty so far; a run that writes it is shown as it goes on\n", name); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	source := inspector.NewSource(recording.New(name))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	caught, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- p.follow(ctx, source, func() { close(caught) }) }()
	select {
	case <-caught:
	case err := <-ended:
		return errors.Join(pastFault(err), l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- inspector.Serve(ctx, l, source) }()
	address := "http://" + l.Addr().String() + "/"
	_, err = fmt.Fprintf(stdio.Out, "%s\nshows %s; Ctrl-C ends it\n", address, name)
	if err == nil && f.open {
		err = browse(ctx, address)
	}
	if err == nil {
		select {
		case err = <-ended:
			ended <- nil
			if err != nil {
				// What was read is still worth looking at.
				source.Recording().Note(err.Error())
				complain(stdio.Err, err)
				err = nil
			}
			source.Recording().SetLive(false)
			<-ctx.Done()
		case err = <-served:
			served <- nil
		case <-ctx.Done():
		}
	}
	cancel()
	return errors.Join(err, <-served, <-ended)
}

// browse opens an address in the user's browser.
func browse(ctx context.Context, address string) error {
	var c *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		c = exec.CommandContext(ctx, "open", address)
	case "windows":
		c = exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", address)
	default:
		c = exec.CommandContext(ctx, "xdg-open", address)
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("fixpoint: the browser cannot be opened; open %s in it yourself, without --open: %w", address, err)
	}
	go func() { _ = c.Wait() }() // how it went is to be seen
	return nil
}
