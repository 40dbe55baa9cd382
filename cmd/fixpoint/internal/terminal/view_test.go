package terminal_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update")
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

func at(step int, p phase.Phase) engine.Header {
	return engine.Header{Run: "run-1", Agent: "a", Step: step, Phase: p, Revision: 7}
}

// story has every type of event at least once, with texts that try to steer the
// terminal.
func story() []engine.Event {
	list := inference.ToolCall{ID: "c1", Name: "list", Args: `{"path":"."}`}
	save := inference.ToolCall{ID: "c2", Name: "save", Args: inference.JSON(`{"text":"` + strings.Repeat("x", 200) + `"}`)}
	ticket := gate.Ticket{ID: "t1", Call: "c2", Plugin: "permission", Kind: gate.Confirm, Message: "Allow save?"}
	gateOf, before, after := at(1, phase.ToolGate), at(1, phase.BeforeToolExecute), at(1, phase.AfterToolExecute)
	return []engine.Event{
		engine.RunStarted{Header: at(0, 0), Input: "look\x1b[2J around"},
		engine.Committed{Header: at(0, 0), Writes: []engine.Write{{Plugin: "engine", Key: "fixpoint.lifecycle", Op: "apply"}}},
		engine.PhaseStarted{Header: at(0, phase.RunStart), Hooks: 1},
		engine.HookFinished{Header: at(0, phase.RunStart), Plugin: "census", Status: engine.HookCommitted, Calls: 1, Duration: time.Millisecond},
		engine.Committed{Header: at(0, phase.RunStart), Round: 1, Writes: []engine.Write{
			{Plugin: "census", Key: "census.levels", Entry: "1", Op: "put"}, {Plugin: "census", Key: "fixpoint.queue", Entry: "5", Op: "delete"}}},
		engine.ActionFinished{Header: at(0, phase.RunStart), Action: "census.count", Plugin: "census", Round: 1, Status: engine.ActionDone},
		engine.ActionFinished{Header: at(0, phase.RunStart), Action: "census.count", Plugin: "census", Round: 1, Status: engine.ActionDone},
		engine.ActionFinished{Header: at(0, phase.RunStart), Action: "broken", Plugin: "p", Round: 1, Status: engine.ActionDead, Error: "no luck"},
		engine.RoundFinished{Header: at(0, phase.RunStart), Round: 1, Actions: 3},
		engine.PhaseFinished{Header: at(0, phase.RunStart), Rounds: 1, Duration: 2 * time.Millisecond},
		engine.StepStarted{Header: at(1, 0)},
		engine.PhaseStarted{Header: at(1, phase.StepStart)},
		engine.PhaseFinished{Header: at(1, phase.StepStart)},
		engine.PhaseStarted{Header: at(1, phase.BeforeInference), Hooks: 2},
		engine.HookFinished{Header: at(1, phase.BeforeInference), Plugin: "slow", Status: engine.HookCommitted, Slow: true, Duration: 7 * time.Second},
		engine.HookFinished{Header: at(1, phase.BeforeInference), Plugin: "bad", Status: engine.HookSkipped, Error: "it broke"},
		engine.Warning{Header: at(1, phase.BeforeInference), Plugin: "bad", Message: "its command was dropped"},
		engine.PhaseFinished{Header: at(1, phase.BeforeInference)},
		engine.OverrideApplied{Header: at(1, phase.BeforeInference), Fields: []engine.FieldOrigin{{Field: "temperature", Plugin: "cool", Value: "0"}}},
		engine.RequestTransformed{Header: at(1, phase.BeforeInference), Plugin: "shortener", Messages: true},
		engine.InferenceStarted{Header: at(1, phase.AfterInference), Model: "m", Messages: 3, Tools: 2},
		engine.InferenceChunk{Header: at(1, phase.AfterInference), Text: "I look"},
		engine.InferenceFinished{Header: at(1, phase.AfterInference), Text: "I look.", ToolCalls: []inference.ToolCall{list, save},
			Usage: inference.Usage{InputTokens: 1200, OutputTokens: 34}, Duration: 150 * time.Millisecond},
		engine.PhaseStarted{Header: gateOf, Hooks: 2, Call: "c1"},
		engine.GateVoted{Header: gateOf, Call: "c1", Tool: "list", Plugin: "permission", Decision: gate.KindApprove, Reason: "allowed"},
		engine.GateVoted{Header: gateOf, Call: "c1", Tool: "list", Plugin: "loopguard", Decision: gate.KindAbstain},
		engine.GateResolved{Header: gateOf, Call: "c1", Tool: "list", Pass: 1, Decision: gate.KindApprove, Plugin: "permission", Cause: gate.Decided},
		engine.PhaseFinished{Header: gateOf, Call: "c1"},
		engine.ToolStarted{Header: before, Call: list},
		engine.PhaseStarted{Header: after, Hooks: 1, Call: "c1"},
		engine.EffectFinished{Header: at(1, 0), Effect: "audit.entry", Plugin: "audit", Handler: "audit"},
		engine.EffectFinished{Header: at(1, 0), Effect: "mail", Plugin: "p", Handler: "q", Error: "no route"},
		engine.PhaseFinished{Header: after, Call: "c1"},
		engine.ToolFinished{Header: after, Call: list, Result: inference.ToolResult{CallID: "c1", Name: "list", Content: "a.go\nb.go\n", Outcome: inference.OutcomeOK}},
		engine.PhaseStarted{Header: gateOf, Hooks: 2, Call: "c2"},
		engine.GateVoted{Header: gateOf, Call: "c2", Tool: "save", Plugin: "permission", Decision: gate.KindAsk, Reason: "needs a yes"},
		engine.GateVoted{Header: gateOf, Call: "c2", Tool: "save", Plugin: "editor", Decision: gate.KindAbstain, Edits: true},
		engine.GateVoted{Header: gateOf, Call: "c2", Tool: "save", Plugin: "sick", Error: "panicked"},
		engine.GateClashed{Header: gateOf, Call: "c2", Clash: gate.Clash{Kind: gate.KindAsk, Winner: "permission", Loser: "other"}},
		engine.GateResolved{Header: gateOf, Call: "c2", Tool: "save", Pass: 1, Decision: gate.KindAsk, Plugin: "permission", Cause: gate.Decided},
		engine.CallEdited{Header: gateOf, Call: "c2", Plugin: "editor", After: `{"text":"y"}`},
		engine.TicketOpened{Header: gateOf, Ticket: ticket},
		engine.TicketAnswered{Header: gateOf, Ticket: "t1", Call: "c2", Approved: true, By: "resolver"},
		engine.GateVoted{Header: gateOf, Call: "c2", Tool: "save", Plugin: "permission", Decision: gate.KindAsk, Reason: "needs a yes"},
		engine.GateResolved{Header: gateOf, Call: "c2", Tool: "save", Pass: 2, Decision: gate.KindApprove, Plugin: "permission", Cause: gate.Decided},
		engine.PhaseFinished{Header: gateOf, Call: "c2"},
		engine.ToolFinished{Header: after, Call: save, Result: inference.ToolResult{CallID: "c2", Name: "save", Content: "timed out after 3s",
			IsError: true, Outcome: inference.OutcomeTimedOut}, Duration: 3 * time.Second},
		engine.PhaseStarted{Header: at(1, phase.StepEnd), Hooks: 2},
		engine.Conflict{Header: at(1, phase.StepEnd), Key: "headline", Winner: "focus", Loser: "outline", Fate: "retried"},
		engine.Conflict{Header: at(1, phase.StepEnd), Key: "table", Entry: "x", Winner: "call c1", Loser: "call c2", Fate: "refused"},
		engine.HookFinished{Header: at(1, phase.StepEnd), Plugin: "outline", Status: engine.HookRetried, Calls: 2},
		engine.PhaseFinished{Header: at(1, phase.StepEnd), Retries: 1, Error: "it did not converge"},
		engine.StepFinished{Header: at(1, 0), Duration: 3 * time.Second},
		engine.Continued{Header: at(1, 0), Reason: "not done", Count: 1},
		engine.HandedOff{Header: at(1, 0), From: "a", To: "b"},
		engine.StepStarted{Header: at(2, 0)},
		engine.InferenceFinished{Header: at(2, phase.AfterInference), Error: "the model is away"},
		engine.RunSuspended{Header: at(2, 0), Tickets: []gate.Ticket{ticket}},
		engine.RunFinished{Header: at(2, 0), Status: phase.Done, Reason: phase.ReasonNatural},
	}
}

func show(level terminal.Level, s terminal.Screen) string {
	var out bytes.Buffer
	s.Out = &out
	view := terminal.NewView(terminal.NewPrinter(s), level)
	for _, e := range story() {
		view.Observe(e)
	}
	return out.String()
}

func TestLevels(t *testing.T) {
	require.Empty(t, show(terminal.Quiet, terminal.Screen{}))
	golden(t, "normal.txt", show(terminal.Normal, terminal.Screen{}))
	golden(t, "verbose.txt", show(terminal.Verbose, terminal.Screen{}))
}

// A terminal gets colours and lines that fit; what events carry cannot steer it.
func TestTerminal(t *testing.T) {
	plain := show(terminal.Normal, terminal.Screen{})
	require.NotContains(t, plain, "\x1b")
	colored := show(terminal.Normal, terminal.Screen{Color: true})
	require.Contains(t, colored, "\x1b[")
	require.NotContains(t, colored, "\x1b[2J")
	narrow := show(terminal.Normal, terminal.Screen{Width: 40})
	for line := range strings.Lines(narrow) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 40, line)
	}
}

func TestSummary(t *testing.T) {
	var out bytes.Buffer
	p := terminal.NewPrinter(terminal.Screen{Out: &out})
	p.Summary(&engine.Result{
		Reason: phase.ReasonTokenBudget, Detail: "50 of 50 tokens used", Text: "First line.\nSecond \x07line.\n", Steps: 3,
		Usage: inference.Usage{InputTokens: 1_234_567, OutputTokens: 89}, Elapsed: 1234 * time.Millisecond,
		Stats: engine.Stats{Hooks: 20, Conflicts: 2, Retries: 3, Actions: 7, Rounds: 4, MaxRounds: 3, DeadLetters: 1, EffectsDelivered: 5, EffectsFailed: 1, ToolCalls: 6},
	}, terminal.Fact{Label: "report", Text: "/tmp/report.md"})
	golden(t, "summary.txt", out.String())

	out.Reset()
	p.Summary(&engine.Result{Reason: phase.ReasonError, Detail: "the model failed", Err: os.ErrClosed})
	require.Contains(t, out.String(), "ended  error: an error\n")
	require.Contains(t, out.String(), "error  file already closed\n")
}

// failing is a screen that went away.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPrinterKeepsItsFirstFailure(t *testing.T) {
	p := terminal.NewPrinter(terminal.Screen{Out: failing{}})
	require.NoError(t, p.Err())
	p.Line("x", "y")
	require.ErrorIs(t, p.Err(), os.ErrClosed)
}
