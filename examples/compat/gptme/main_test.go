//go:build unix

package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/allowlist"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/autocommit"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

func TestMain(m *testing.M) {
	isolate()
	os.Exit(m.Run())
}

// Capability G7. The model is told the date in its first call, and how long the run has
// taken once that is long.
func TestReminder(t *testing.T) {
	requests, err := remind(t.Context())
	require.NoError(t, err)
	require.Len(t, requests, 3)
	const date, taken = "It is Monday, 30 November 2026, 23:00 UTC.", "This run has taken 40 min so far. It is 23:40 UTC."
	for i, want := range [][]string{{date}, {date}, {date, taken}} {
		var told []string
		for _, m := range requests[i].Messages {
			if m.Role == inference.RoleSystem {
				told = append(told, m.Text)
			}
		}
		require.Equal(t, want, told)
	}
}

// Capability G2. Checks that fail stop the phase, so that the hook of auto-commit, which is
// in a later tier, does not run; what was written stays.
func TestFailedChecksStopTheCommit(t *testing.T) {
	c, err := write(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, c.verdict.Failures, 1)
	require.Empty(t, c.result.Status)
	require.Equal(t, []string{"Person: Begin"}, c.commits)
	require.Equal(t, "?? plan.txt", c.changed)
	require.Equal(t, []string{checks.Name}, plugins(c.hooks))
}

// Capabilities G2 and G7. When the model mends what the checks found, the later tier runs
// and there is a commit.
func TestCommitOncePassed(t *testing.T) {
	c, err := write(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, c.verdict.Passed())
	require.Equal(t, autocommit.Committed, c.result.Status)
	require.Equal(t, []string{"plan.txt"}, c.result.Paths)
	require.Equal(t, []string{"Agent: Write the plan", "Person: Begin"}, c.commits)
	require.Empty(t, c.changed)
	require.Equal(t, []string{checks.Name, autocommit.Name}, plugins(c.hooks))
}

func plugins(hooks []engine.HookFinished) (names []string) {
	for _, h := range hooks {
		names = append(names, h.Plugin)
	}
	return names
}

// Capability G5. A line on the list runs without a question, the answer decides about
// another one, and the guard's block beats the list. The order of registration does not
// matter.
//
// Report 11. A line on the allowlist is not hidden from the guard.
func TestAllowlistThenPerson(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var decide []engine.Plugin
		for _, i := range order {
			decide = append(decide, chain()[i])
		}
		s, err := work(t.Context(), person, decide...)
		require.NoError(t, err)
		// Not the line on the list, nor the one that "times" covers, nor the blocked one.
		require.Equal(t, []string{"echo milk >> notes.txt", "rm notes.txt", "echo rum >> notes.txt", "touch a"}, s.asked)
		require.Equal(t, []inference.Outcome{
			inference.OutcomeOK, inference.OutcomeOK, inference.OutcomeDenied, inference.OutcomeOK,
			inference.OutcomeOK, inference.OutcomeOK, inference.OutcomeBlocked,
		}, outcomes(s))
		require.Contains(t, s.results[2].Content, "I need them")
		require.Contains(t, s.results[6].Content, "nobody reads the secret")
		require.NotContains(t, s.results[6].Content, "rosebud")
		require.Equal(t, "bread\nmilk\ntea\n", s.notes)
		require.Equal(t, []string{"a", "b", "notes.txt", "secret.txt"}, s.files)
	}
}

func outcomes(s session) (list []inference.Outcome) {
	for _, r := range s.results {
		list = append(list, r.Outcome)
	}
	return list
}

// Capability G5. With nobody to ask, the stated default counts, and the list still approves.
func TestNobodyToAsk(t *testing.T) {
	s, err := work(t.Context(), nil, chain()...)
	require.NoError(t, err)
	require.Equal(t, []inference.Outcome{
		inference.OutcomeOK, inference.OutcomeDenied, inference.OutcomeDenied, inference.OutcomeDenied,
		inference.OutcomeDenied, inference.OutcomeDenied, inference.OutcomeBlocked,
	}, outcomes(s))
	require.Equal(t, "bread\n", s.notes)
	require.Equal(t, []string{"notes.txt", "secret.txt"}, s.files)
}

// Capability G5. What a person made of a line is judged by the guard too, and without the
// guard the secret is read: it is the guard that keeps it.
func TestEditIsJudged(t *testing.T) {
	edit := func(command string) confirm.Answer {
		if command == "rm notes.txt" {
			return confirm.Answer{Choice: confirm.Edit, Args: `{"command": "cat secret.txt"}`}
		}
		return confirm.Answer{Choice: confirm.Yes}
	}
	s, err := work(t.Context(), edit, chain()...)
	require.NoError(t, err)
	require.Equal(t, inference.OutcomeBlocked, s.results[2].Outcome)

	s, err = work(t.Context(), edit, allowlist.New(), confirm.New(confirm.Options{}))
	require.NoError(t, err)
	require.Contains(t, s.results[2].Content, "rosebud")
	require.Contains(t, s.results[6].Content, "rosebud")
}

func Example() {
	if err := show(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// == the model knows the time
	//   user: Build it.
	//   system: It is Monday, 30 November 2026, 23:00 UTC.
	//   assistant: calls look
	//   tool: done
	//   assistant: calls build
	//   tool: done
	//   system: This run has taken 40 min so far. It is 23:40 UTC.
	//
	// == a check that fails keeps the commit from happening
	//   user: Write the plan
	//   assistant: Done.
	// checks passed: false, auto-commit: ""
	// commits: Person: Begin; not committed: "?? plan.txt"
	//
	// == the model is told, mends it, and the commit happens
	//   user: Write the plan
	//   assistant: Done.
	//   system: Checks failed. Fix what they found. the plan is finished: exit status 1
	//   assistant: Done, really.
	// checks passed: true, auto-commit: "committed"
	// commits: Agent: Write the plan, Person: Begin; not committed: ""
	//
	// == an allowlist, then a person, and a guard over both
	//   cat notes.txt
	//     bread
	//   echo milk >> notes.txt (asked about)
	//     [no output]
	//   rm notes.txt (asked about)
	//     denied: I need them
	//   echo rum >> notes.txt (asked about)
	//     [no output]
	//   touch a (asked about)
	//     [no output]
	//   touch b
	//     [no output]
	//   cat secret.txt
	//     blocked: nobody reads the secret
	// the notes: "bread\nmilk\ntea\n"
	//
	// == the same with nobody to ask
	//   cat notes.txt
	//     bread
	//   echo milk >> notes.txt
	//     denied: nobody is there to ask, and the default is no
	//   rm notes.txt
	//     denied: nobody is there to ask, and the default is no
	//   echo rum >> notes.txt
	//     denied: nobody is there to ask, and the default is no
	//   touch a
	//     denied: nobody is there to ask, and the default is no
	//   touch b
	//     denied: nobody is there to ask, and the default is no
	//   cat secret.txt
	//     blocked: nobody reads the secret
}
