package terminal_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	asks "github.com/ddd26017/fixpoint/plugins/confirm"
)

func approval(t *testing.T, shown asks.Preview) gate.Ticket {
	t.Helper()
	params, err := inference.ToJSON(shown)
	require.NoError(t, err)
	return gate.Ticket{ID: "t", Kind: gate.Confirm, Plugin: asks.Name, Message: "Allow save?", Params: params}
}

func whole() asks.Preview {
	return asks.Preview{
		Tool: "save", Description: "saves\x1b[2J it", Args: `{"text":"a"}`, Text: "{\n  \"text\": \"a\\u202e\"\n}",
		Diff:    "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-b \n+a\t\n",
		Choices: []asks.Choice{asks.Yes, asks.No, asks.Edit, asks.Always, asks.Times},
		Scopes:  []asks.Scope{asks.ScopeRun, asks.ScopeThread, asks.ScopePersistent},
	}
}

// asked types at a prompt about the ticket.
func asked(t *testing.T, ticket gate.Ticket, typed string) (phase.Answer, string) {
	t.Helper()
	var out safe
	p := terminal.NewPrinter(terminal.Screen{Out: &out})
	prompt := terminal.NewPrompt(p, terminal.NewView(p, terminal.Quiet), terminal.Keyboard{In: strings.NewReader(typed), CheckArgs: func(_ string, args inference.JSON) error {
		if strings.Contains(string(args), "never") {
			return errors.New("text cannot be never")
		}
		return nil
	}})
	answer, err := prompt.Ask(context.Background(), ticket)
	require.NoError(t, err, typed)
	return answer, out.String()
}

// Capability G5. Everything that the plugin offers can be typed at the prompt, and what
// it does not offer is refused there.
func TestApprovals(t *testing.T) {
	for typed, want := range map[string]struct {
		value inference.JSON // "" for a no
		again int
	}{
		"y\n":                                   {`{"choice":"yes"}`, 0},
		"YES\n":                                 {`{"choice":"yes"}`, 0},
		"\n":                                    {"", 0},
		"n not on Fridays\n":                    {"", 0},
		"edit {\"text\":\"b\"}\n":               {`{"choice":"edit","args":{"text":"b"}}`, 0},
		"e\n{\"text\":\"b\"}\n":                 {`{"choice":"edit","args":{"text":"b"}}`, 0},
		"e\n\ny\n":                              {`{"choice":"yes"}`, 0},
		"e\n[]\n{\"text\":\"never\"}\n{}\n":     {`{"choice":"edit","args":{}}`, 2},
		"e {\"text\":\"never\"}\ny\n":           {`{"choice":"yes"}`, 1},
		"t 3\n":                                 {`{"choice":"times","n":3}`, 0},
		"times 3 all\n":                         {`{"choice":"times","n":3,"covers":"all"}`, 0},
		"t\nt x\nt 0\nt 3 thread\nt 1001\ny\n":  {`{"choice":"yes"}`, 5},
		"a\n":                                   {`{"choice":"always"}`, 0},
		"always thread call\n":                  {`{"choice":"always","scope":"thread","covers":"call"}`, 0},
		"a all persistent\n":                    {`{"choice":"always","scope":"persistent","covers":"all"}`, 0},
		"a forever\nperhaps\ny now\ny\n":        {`{"choice":"yes"}`, 3},
		"{\"choice\":\"times\",\"n\":2}\n":      {`{"choice":"times","n":2}`, 0},
		"{\"choice\":\"times\"}\n{\nv\nview\ny": {`{"choice":"yes"}`, 2},
	} {
		answer, out := asked(t, approval(t, whole()), typed)
		require.Equal(t, want.value != "", answer.Approved, typed)
		require.Equal(t, want.value, answer.Value, typed)
		require.Equal(t, want.again, strings.Count(out, "    again  "), "%q: %s", typed, out)
		if answer.Value != "" {
			_, err := asks.Parse(answer.Value)
			require.NoError(t, err)
		}
	}
	no, _ := asked(t, approval(t, whole()), "n not on Fridays\n")
	require.Equal(t, "not on Fridays", no.Reason)

	few := whole()
	few.Choices, few.Scopes = []asks.Choice{asks.Yes, asks.No, asks.Always}, []asks.Scope{asks.ScopeRun}
	answer, out := asked(t, approval(t, few), "e\nt 3\na thread\na run\n")
	require.Equal(t, inference.JSON(`{"choice":"always","scope":"run"}`), answer.Value)
	require.Equal(t, 3, strings.Count(out, "    again  "), out)
	require.Contains(t, out, "  answers      yes, no REASON, always [run] [call|tool|all], view all\n")
}

// A question shows what would change, with what cannot be seen, and all of it on demand.
func TestApprovalShows(t *testing.T) {
	_, out := asked(t, approval(t, whole()), "y\n")
	require.Contains(t, out, "│ -b·\n")
	require.Contains(t, out, "│ +a→\n")
	require.NotContains(t, out, "202e", "the diff says more than the arguments")
	require.NotContains(t, out, "\x1b")
	_, out = asked(t, approval(t, whole()), "v\ny\n")
	require.Contains(t, out, `│   "text": "a\u202e"`)

	long := whole()
	long.Diff, long.DiffError, long.Text = "", "no\x07such file", strings.Repeat("line\n", 30)
	_, out = asked(t, approval(t, long), "y\n")
	require.Contains(t, out, "no diff: no\uFFFDsuch file\n")
	require.Equal(t, 20, strings.Count(out, "│ line\n"))
	require.Contains(t, out, "│ … 10 more\n")
	_, out = asked(t, approval(t, long), "v\ny\n")
	require.Equal(t, 50, strings.Count(out, "│ line\n"))
}

// What happens while a question is asked waits for its answer, and does not keep the
// arguments from being edited.
func TestEditWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := whole()
		long.Args = ""
		in, typed := io.Pipe()
		var out safe
		p := terminal.NewPrinter(terminal.Screen{Out: &out})
		view := terminal.NewView(p, terminal.Normal)
		view.Remember(inference.ToolCall{ID: "c", Name: "save", Args: `{"text":"a"}`})
		ticket := approval(t, long)
		ticket.Call = "c"
		prompt := terminal.NewPrompt(p, view, terminal.Keyboard{In: in})
		answers := make(chan phase.Answer, 1)
		go func() {
			answer, _ := prompt.Ask(t.Context(), ticket)
			answers <- answer
		}()
		synctest.Wait()
		go view.Observe(engine.StepStarted{})
		synctest.Wait()
		for _, line := range []string{"e\n", "{\"text\":\"b\"}\n"} {
			_, err := io.WriteString(typed, line)
			require.NoError(t, err)
		}
		require.Equal(t, inference.JSON(`{"choice":"edit","args":{"text":"b"}}`), (<-answers).Value)
		require.NoError(t, typed.Close())
	})
}

// Lines of effect handlers stand behind the line of their effect, others at the end of
// the step.
func TestNotes(t *testing.T) {
	var out safe
	view := terminal.NewView(terminal.NewPrinter(terminal.Screen{Out: &out}), terminal.Normal)
	view.Note("b", "two", "b\x1b\nc")
	view.Note("a", "one", "a")
	view.Note("c", "three", "c")
	view.Observe(engine.EffectFinished{Effect: "a", Handler: "x"})
	view.Observe(engine.EffectFinished{Effect: "b", Handler: "x"})
	view.Observe(engine.EffectFinished{Effect: "b", Handler: "x"})
	view.Observe(engine.StepFinished{})
	require.Equal(t, "   effect    a delivered to x\n      one    a\n   effect    b delivered to x\n      two    b\uFFFD c\n"+
		"   effect    b delivered to x\n    three    c\n", out.String())
}

// However narrow the screen is, all answers are shown.
func TestApprovalOnANarrowScreen(t *testing.T) {
	var out safe
	p := terminal.NewPrinter(terminal.Screen{Out: &out, Width: 40})
	_, err := terminal.NewPrompt(p, terminal.NewView(p, terminal.Quiet), terminal.Keyboard{In: strings.NewReader("y\n")}).Ask(t.Context(), approval(t, whole()))
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(out.String()), " "), "answers yes, no REASON, edit ARGUMENTS, always [run|thread|persistent] [call|tool|all], times N [call|tool|all], view all your turn")
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 40+4, line)
	}
}

// Whatever is typed is a valid answer or an error.
func FuzzReadAnswer(f *testing.F) {
	for _, text := range []string{"", "y", "n why", "edit {}", "t 3 all", "always run tool", "{}", `{"choice":"yes"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answer, err := terminal.ReadAnswer(approval(t, whole()), text)
		if err != nil {
			require.Zero(t, answer)
			return
		}
		if !answer.Approved {
			require.Empty(t, answer.Value)
			require.NotEmpty(t, answer.Reason)
			return
		}
		_, err = asks.Parse(answer.Value)
		require.NoError(t, err)
	})
}
