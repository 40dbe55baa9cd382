// Command faults runs the long versions of the reliability checks, one a
// subcommand, and prints one line per figure:
//
//	go run ./internal/faults/cmd/faults mutate -random 5000
//
// It exits with 1 when a figure is not reached. Each line names its seed; the same
// seed repeats what the program decides. What the scheduler decides may differ.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/crash"
	"github.com/ddd26017/fixpoint/internal/faults/decide"
	"github.com/ddd26017/fixpoint/internal/faults/outbox"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/internal/faults/zombie"
)

// parts are what child processes of the checks run; a check with children adds its own.
var parts = []child.Part{
	writer.Part, outbox.Dispatcher,
	crash.Worker, zombie.Worker, decide.Racer, decide.Clerk,
}

// checks are the subcommands, one file each. Each parses its own flags, prints its
// figures to stdout, and returns an error when one is not reached.
var checks = map[string]func(ctx context.Context, args []string, stdout io.Writer) error{
	"contest":    checkContest,
	"crashpoint": checkCrashpoint,
	"diskfull":   checkDiskfull,
	"fuzz":       checkFuzz,
	"linear":     checkLinear,
	"mutate":     checkMutate,
	"outbox":     checkOutbox,
	"powercut":   checkPowercut,
	"syncfail":   checkSyncfail,

	"crash":  checkCrash,
	"zombie": checkZombie,
	"resume": checkResume,
}

func main() {
	child.Main(parts...) // does not return in a child process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "faults:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	names := strings.Join(slices.Sorted(maps.Keys(checks)), ", ")
	if len(args) == 0 {
		return fmt.Errorf("which check? One of: %s", names)
	}
	check, known := checks[args[0]]
	if !known {
		return fmt.Errorf("there is no check %q; want one of: %s", args[0], names)
	}
	return check(ctx, args[1:], stdout)
}
