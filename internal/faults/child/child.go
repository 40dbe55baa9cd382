// Package child runs parts of a check in processes of their own, so that they can
// be stopped and killed. The program is its own child: the command and each TestMain
// give Main all parts first.
//
//	var Writer = child.Part{Name: "powercut writer", Run: write}
//
//	func TestMain(m *testing.M) { child.Main(Writer); os.Exit(m.Run()) }
//
//	cmd, err := Writer.Command(ctx, path) // an *exec.Cmd of this same binary
package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// variable names the part that a process is to run.
const variable = "FIXPOINT_FAULTS_CHILD"

// Part is what a child process does with its arguments. An error ends the process
// with code 1 and its text on standard error.
type Part struct {
	Name string
	Run  func(ctx context.Context, args []string) error
}

// Command returns the command that runs the part in a process of its own. The
// caller sets its pipes and starts it; it is killed when ctx ends.
func (p Part) Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("child: find the own program: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), variable+"="+p.Name)
	return cmd, nil
}

// Main runs the part that this process was started for and ends the process. In
// any other process it returns at once.
func Main(parts ...Part) {
	name, is := os.LookupEnv(variable)
	if !is {
		return
	}
	for _, part := range parts {
		if part.Name != name {
			continue
		}
		if err := part.Run(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "child: Main was not given the part %q\n", name)
	os.Exit(2)
}
