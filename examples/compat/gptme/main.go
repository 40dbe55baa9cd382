// Command gptme rebuilds the examples of a chapter about gptme's hooks, confirmations and
// plugins.
//
//	go run ./examples/compat/gptme
//
// Models have their answers written down in advance, so there is no network and no key. It
// needs sh and git, works in temporary directories, and its output is always the same.
//
// # What is rebuilt
//
//   - reminder.go: a reminder of the time, which the chapter has as its smallest hook, with
//     plugins/clock.
//   - commit.go: checks that, when they fail, stop the auto-commit that comes behind them,
//     with plugins/checks and plugins/autocommit on a real repository.
//   - confirm.go: an allowlist that lets shell commands run without a question, and a person
//     who is asked about the others, with contrib/plugins/allowlist, plugins/confirm and
//     plugins/shell.
//
// # What is different
//
//   - The date is told once and how long the run has taken when a mark is passed, not with
//     every call. Time in which a run waits for somebody does not count.
//   - There, priorities are numbers of which the higher comes first, and equals are sorted
//     backwards by name. Here tiers run from low to high, and hooks of one tier at the same
//     time, whatever the order of registration. StopPhase skips later tiers and never a gate.
//   - Checks that fail are told to the model first, which may mend what it did. A verdict is
//     about the very files that were checked, so nothing else is committed, and a run that
//     was cancelled commits nothing.
//   - There, a tool asks for the confirmation itself: one that does not ask is never
//     confirmed, and of the hooks that may decide only the first that does is heard. So a
//     line on the list was hidden from every guard, and a dialog of the server, which has a
//     higher priority than the list, hid the list. Here all gates judge every call: a block
//     beats an approval, and an approval beats the question.
//   - Arguments that a person edited are judged anew by all gates. There, some tools take an
//     edit for a no, and no hook sees the edited text.
//   - With nobody to ask, the answer is no. There, if no hook decides, it is yes unless the
//     tool says otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

func main() {
	isolate()
	if err := show(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func show(ctx context.Context) error {
	return errors.Join(showReminder(ctx), showCommit(ctx), showConfirm(ctx))
}

func showReminder(ctx context.Context) error {
	fmt.Println("== the model knows the time")
	requests, err := remind(ctx)
	if err != nil {
		return err
	}
	for _, m := range requests[len(requests)-1].Messages {
		if m.Role == inference.RoleAssistant {
			fmt.Printf("  %s: calls %s\n", m.Role, m.ToolCalls[0].Name)
			continue
		}
		fmt.Printf("  %s: %s\n", m.Role, m.Text)
	}
	return nil
}

func showCommit(ctx context.Context) error {
	for _, c := range []struct {
		title    string
		attempts int
	}{
		{"a check that fails keeps the commit from happening", 0},
		{"the model is told, mends it, and the commit happens", 1},
	} {
		fmt.Println("\n== " + c.title)
		done, err := write(ctx, c.attempts)
		if err != nil {
			return err
		}
		for _, m := range done.history {
			if m.Role != inference.RoleTool && m.Text != "" {
				fmt.Printf("  %s: %s\n", m.Role, strings.ReplaceAll(m.Text, "\n\n", " "))
			}
		}
		fmt.Printf("checks passed: %t, auto-commit: %q\n", done.verdict.Passed(), done.result.Status)
		fmt.Printf("commits: %s; not committed: %q\n", strings.Join(done.commits, ", "), done.changed)
	}
	return nil
}

func showConfirm(ctx context.Context) error {
	fmt.Println("\n== an allowlist, then a person, and a guard over both")
	s, err := work(ctx, person, chain()...)
	if err != nil {
		return err
	}
	list(s)
	fmt.Printf("the notes: %q\n", s.notes)

	fmt.Println("\n== the same with nobody to ask")
	s, err = work(ctx, nil, chain()...)
	if err != nil {
		return err
	}
	list(s)
	return nil
}

func list(s session) {
	for i, command := range lines {
		asked := ""
		if slices.Contains(s.asked, command) {
			asked = " (asked about)"
		}
		fmt.Printf("  %s%s\n    %s\n", command, asked, strings.TrimSpace(s.results[i].Content))
	}
}

// run has one run of an agent on a thread of its own. A run that failed is an error.
func run(ctx context.Context, c engine.Config, agent engine.AgentSpec, in engine.Input) (*engine.Thread, error) {
	c.NewID, c.CheckFreeze = enginetest.NewIDs("id"), true
	eng, err := engine.New(c)
	if err != nil {
		return nil, err
	}
	th, err := eng.NewThread("")
	if err != nil {
		return nil, err
	}
	res, err := th.Run(ctx, agent, in)
	if err != nil {
		return nil, err
	}
	return th, errors.Join(res.Err, eng.Close(ctx))
}
