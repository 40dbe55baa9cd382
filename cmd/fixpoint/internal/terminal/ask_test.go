package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const form = `{"type":"object","required":["city"],"properties":{
	"nights":{"type":"integer"},"city":{"type":"string","description":"where to"},"breakfast":{"type":"boolean"},
	"room":{"type":"string","enum":["single","double"]},"extra":{}}}`

// short turns down values that are longer than 40 bytes.
func short(_, value inference.JSON) error {
	if len(value) > 40 {
		return errors.New("that is too long")
	}
	return nil
}

// Each kind of question has its own way of being answered, and is asked again until
// the answer fits.
func TestKinds(t *testing.T) {
	red := gate.Choices("red", "blue", "2")
	for _, c := range []struct {
		ticket gate.Ticket
		typed  string
		want   inference.JSON // "" for a no
		again  int
	}{
		{gate.Ticket{Kind: gate.Text}, "7 \n", `"7 "`, 0},
		{gate.Ticket{Kind: gate.Text}, "\n", "", 0},
		{gate.Ticket{Kind: gate.Text, Schema: `{}`}, strings.Repeat("x", 50) + "\nx\n", `"x"`, 1},
		{gate.Ticket{Kind: gate.Choice, Choices: red}, "green\n0\n4\n1\n", `"red"`, 3},
		{gate.Ticket{Kind: gate.Choice, Choices: red}, "blue\n", `"blue"`, 0},
		{gate.Ticket{Kind: gate.Choice, Choices: red}, "2\n", `"2"`, 0},
		{gate.Ticket{Kind: gate.Choice, Choices: red}, "\n", "", 0},
		{gate.Ticket{Kind: gate.Choice}, "free\n", `"free"`, 0},
		{gate.Ticket{Kind: gate.MultiChoice, Choices: red}, "1, green\n1, blue,red\n", `["red","blue"]`, 1},
		{gate.Ticket{Kind: gate.MultiChoice, Choices: red}, "-\n", `[]`, 0},
		{gate.Ticket{Kind: gate.MultiChoice, Choices: red}, "\n", "", 0},
		{gate.Ticket{Kind: gate.MultiChoice}, "[\"x\"]\n", `["x"]`, 0},
		{gate.Ticket{Kind: gate.Form}, "{\n{\"a\":1}\n", `{"a":1}`, 1},
		{gate.Ticket{Kind: gate.Form, Schema: form}, "Rome\nmaybe\nno\n{}\nmany\n1\n2\n", `{"breakfast":false,"city":"Rome","extra":{},"nights":1,"room":"double"}`, 3},
		{gate.Ticket{Kind: gate.Form, Schema: form}, "Rome\n\n\n\n\n", `{"city":"Rome"}`, 0},
		{gate.Ticket{Kind: gate.Form, Schema: form}, "\n", "", 0},
		{gate.Ticket{Kind: gate.Form, Schema: `{"type":"object"}`}, "{}\n", `{}`, 0},
	} {
		var out safe
		p := terminal.NewPrinter(terminal.Screen{Out: &out})
		prompt := terminal.NewPrompt(p, terminal.NewView(p, terminal.Quiet), terminal.Keyboard{In: strings.NewReader(c.typed), Fits: short})
		got, err := prompt.Ask(t.Context(), c.ticket)
		if strings.Contains(c.typed, "many") {
			// 61 bytes are too long, and nothing is left to be typed.
			require.ErrorIs(t, err, io.EOF)
			require.Contains(t, out.String(), "again      that is too long")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want != "", got.Approved, c.typed)
		require.Equal(t, c.want, got.Value, c.typed)
		require.Equal(t, c.again, strings.Count(out.String(), "again  "), out.String())
	}
}

// A form that is asked field by field.
func TestForm(t *testing.T) {
	var out safe
	p := terminal.NewPrinter(terminal.Screen{Out: &out})
	prompt := terminal.NewPrompt(p, terminal.NewView(p, terminal.Quiet), terminal.Keyboard{In: strings.NewReader("Rome\nmaybe\nno\n{}\nmany\n1\n2\n")})
	got, err := prompt.Ask(t.Context(), gate.Ticket{Kind: gate.Form, Schema: form, Message: "Where to?", Plugin: "tool book"})
	require.NoError(t, err)
	require.Equal(t, phase.Answer{Approved: true, Value: `{"breakfast":false,"city":"Rome","extra":{},"nights":1,"room":"double"}`}, got)
	golden(t, "form.txt", out.String())
}

// A secret that does not fit is not shown with the reason.
func TestSecretThatDoesNotFit(t *testing.T) {
	var out safe
	p := terminal.NewPrinter(terminal.Screen{Out: &out})
	typed := []string{strings.Repeat("hunter2", 9), "hunter2"}
	prompt := terminal.NewPrompt(p, terminal.NewView(p, terminal.Quiet), terminal.Keyboard{
		In:     strings.NewReader(""),
		Secret: func() (string, error) { next := typed[0]; typed = typed[1:]; return next, nil },
		Fits: func(schema, value inference.JSON) error {
			if short(schema, value) != nil {
				return errors.New("not " + string(value))
			}
			return nil
		},
	})
	got, err := prompt.Ask(t.Context(), gate.Ticket{Kind: gate.Secret, Schema: `{}`})
	require.NoError(t, err)
	require.Equal(t, inference.JSON(`"hunter2"`), got.Value)
	require.NotContains(t, out.String(), "hunter2")
	require.Contains(t, out.String(), "not of the form that is wanted")
}

// What an open question says of the answers that it takes.
func TestQuestionTellsItsTerms(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var out bytes.Buffer
	p := terminal.NewPrinter(terminal.Screen{Out: &out})
	for _, ticket := range []gate.Ticket{
		{ID: "t1", Kind: gate.MultiChoice, Message: "Which?", Choices: gate.Choices("red", "bl\x1bue"), Default: gate.DefaultYes, Fallback: `["red"]`, Until: now.Add(90 * time.Second)},
		{ID: "t2", Kind: gate.Text, Message: "Name?", Schema: `{"minLength":3}`, Default: gate.DefaultNo, Until: now.Add(90 * time.Second)},
		{ID: "t3", Kind: gate.Secret, Message: "Password?", Until: now.Add(-time.Second)},
		{ID: "t4", Kind: gate.Confirm, Message: "Sure?", Default: gate.DefaultCancel},
		{ID: "t5", Kind: gate.Confirm, Message: "Sure?", Default: gate.DefaultYes},
	} {
		ticket.Until = ticket.Until.UTC()
		p.Question(terminal.Question{Ticket: ticket, Call: inference.ToolCall{Name: "save", Args: `{"a":1}`}, Command: "go on", Now: now})
	}
	text := out.String()
	for _, u := range []time.Time{now.Add(90 * time.Second), now.Add(-time.Second)} {
		text = strings.ReplaceAll(text, u.Local().Format("2006-01-02 15:04:05 MST"), "WHEN")
	}
	golden(t, "terms.txt", text)
}

// Where lines can be changed, what can be typed is said in full, however narrow it is.
func TestNarrowCue(t *testing.T) {
	var out safe
	var cues []string
	p := terminal.NewPrinter(terminal.Screen{Out: &out, Width: 40})
	view := terminal.NewView(p, terminal.Quiet)
	view.Remember(inference.ToolCall{ID: "c1", Name: "save", Args: "{ \"n\":1}"})
	prompt := terminal.NewPrompt(p, view, terminal.Keyboard{Line: func(_ context.Context, cue, text string) (string, error) {
		cues = append(cues, cue+"|"+text)
		return []string{"e", `{"n":2}`}[len(cues)-1], nil
	}})
	got, err := prompt.Ask(t.Context(), confirm())
	require.NoError(t, err)
	require.Equal(t, phase.Answer{Approved: true, Value: `"once"`, Args: `{"n":2}`, Reason: "at the terminal, with other arguments"}, got)
	require.Equal(t, []string{
		"your turn      [y]es, [n]o, [a]lways in\n               this run, [v]iew all,\n               [e]dit|",
		"your turn      arguments, as JSON; an\n               empty line goes back|{\"n\":1}",
	}, cues)
}
