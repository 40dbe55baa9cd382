package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ddd26017/fixpoint/engine"
)

// Exit codes.
const (
	ExitOK        = 0   // the run came to its end
	ExitError     = 1   // the run failed
	ExitUsage     = 2   // wrong arguments or a faulty spec; nothing ran
	ExitWaiting   = 3   // the run waits for an answer
	ExitCancelled = 130 // the run was cancelled
)

// IO is what a command reads and writes.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks a variable up; nil means that there are none.
	Env func(name string) string
	// Plugins, if set, makes plugins that runs have besides those of the command.
	Plugins func() []engine.Plugin
	// Now is the clock; nil means the usual one.
	Now func() time.Time
}

// exitError carries the exit code of a command that has said all there is to say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// joined is errors.Join, but an exit code does not hide what went wrong besides.
func joined(err error, others ...error) error {
	more := errors.Join(others...)
	var code exitError
	if more != nil && errors.As(err, &code) {
		return more
	}
	return errors.Join(err, more)
}

// usageError is a fault of the arguments or the spec.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Run runs the command with the arguments, less the program's name, and returns
// its exit code. Cancelling ctx cancels the run; what it did until then is still
// reported.
func Run(ctx context.Context, args []string, stdio IO) int {
	root := newRoot(stdio)
	root.SetArgs(args)
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	err := root.ExecuteContext(ctx)
	var code exitError
	var failed failure
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &failed):
		complain(stdio.Err, err)
		return ExitError
	default:
		complain(stdio.Err, err)
		return ExitUsage
	}
}

// failure is an error that is not the user's. What the libraries say of the
// arguments is not wrapped, so it is a usage error.
type failure struct{ err error }

func (e failure) Error() string { return e.err.Error() }
func (e failure) Unwrap() error { return e.err }

// verb makes the function of a command of one that does its work.
func verb(do func(ctx context.Context, spec string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		spec := ""
		if len(args) > 0 {
			spec = args[0]
		}
		err := do(c.Context(), spec)
		var code exitError
		var usage usageError
		if err == nil || errors.As(err, &code) || errors.As(err, &usage) {
			return err
		}
		return failure{err}
	}
}

// complain writes an error, one line for each fault.
func complain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(line, "\n"); line == "" {
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			line = "fixpoint: " + strings.TrimPrefix(strings.TrimPrefix(line, "fixpoint: "), "engine: ")
		}
		_, _ = fmt.Fprintln(w, line) // there is nowhere to complain about this
	}
}

func newRoot(stdio IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "fixpoint",
		Short: "Run, check and describe agents on the Fixpoint engine",
		Long: "Fixpoint runs agents on a phase-convergence engine: the hooks of a phase run in\n" +
			"parallel on one snapshot and commit once, conflicts are retried, actions run round\n" +
			"after round until none is left, and effects follow their commit.\n\n" +
			"Without a spec the commands use the built-in agent \"steward\", which surveys a\n" +
			"directory with a scripted model: it needs no key and no server.\n\n" +
			"run gives an agent one prompt, and chat is a conversation at the terminal.\n\n" +
			"A run that is kept in a store outlives its process. About such runs are: pending,\n" +
			"approve, deny and answer; resume; threads, history, diff and fork; prune, delete and\n" +
			"verify.\n\n" +
			"worker serves the threads of a store that is shared, and submit gives them work.\n\n" +
			"What happened and why, in a trace or a store: inspect, explain and why.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newRun(stdio), newChat(stdio), newCheck(stdio), newDescribe(stdio), newPlugins(stdio),
		newPending(stdio), newApprove(stdio), newDeny(stdio), newAnswer(stdio), newResume(stdio), newThreads(stdio),
		newHistory(stdio), newDiff(stdio), newFork(stdio), newPrune(stdio), newDelete(stdio), newVerify(stdio),
		newInspect(stdio), newExplain(stdio), newWhy(stdio), newWorker(stdio), newSubmit(stdio))
	return root
}

// oneSpec accepts a single optional argument.
func oneSpec(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError{fmt.Errorf("%s takes one spec, got %d arguments; see %s --help", c.Name(), len(args), c.CommandPath())}
	}
	return nil
}

// isTerminal reports whether a stream is a terminal, and its file.
func isTerminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

func (s IO) env(name string) string {
	if s.Env == nil {
		return ""
	}
	return s.Env(name)
}

// specFault turns what is wrong with a spec into a fault of the arguments.
func specFault(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, engine.ErrSpec) || errors.Is(err, engine.ErrConfig) {
		return usageError{err}
	}
	return err
}
