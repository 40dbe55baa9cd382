package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

// safe is a buffer that may be read while it is written.
type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func confirm() gate.Ticket {
	return gate.Ticket{
		ID: "t1", Call: "c1", Plugin: "permission", Kind: gate.Confirm, Message: "Allow save?", Choices: gate.Choices("once", "always"),
		Params: inference.JSON(`{"tool":"save","kind":"write","description":"Save it.","args":{"path":"a\u001b[2Jb","n":7,"text":"` + strings.Repeat(`line\n`, 20) + `"}}`),
	}
}

func resolve(t *testing.T, ticket gate.Ticket, in io.Reader, secret func() (string, error)) (phase.Answer, string, error) {
	t.Helper()
	var out safe
	p := terminal.NewPrinter(terminal.Screen{Out: &out})
	view := terminal.NewView(p, terminal.Quiet)
	prompt := terminal.NewPrompt(p, view, terminal.Keyboard{In: in, Secret: secret})
	view.Observe(engine.TicketOpened{Ticket: ticket})
	answer, err := prompt.Resolve(t.Context(), ticket)
	return answer, out.String(), err
}

func TestConfirm(t *testing.T) {
	for typed, want := range map[string]phase.Answer{
		"y\n":              {Approved: true, Reason: "at the terminal", Value: `"once"`},
		"YES":              {Approved: true, Reason: "at the terminal", Value: `"once"`},
		"a\n":              {Approved: true, Reason: "at the terminal, for the whole run", Value: permission.Always},
		"n\n":              {Reason: "at the terminal"},
		"\n":               {Reason: "at the terminal"},
		"no  too risky \n": {Reason: "too risky"},
		"what\nhm\nyes\n":  {Approved: true, Reason: "at the terminal", Value: `"once"`},
		"":                 {Reason: "nobody is there to answer; --yes approves"},
		"what\n":           {Reason: "nobody is there to answer; --yes approves"},
	} {
		got, _, err := resolve(t, confirm(), strings.NewReader(typed), nil)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", typed)
	}
	// Who does not offer to remember is not answered so.
	once := confirm()
	once.Choices = ""
	got, out, err := resolve(t, once, strings.NewReader("always\ny\n"), nil)
	require.NoError(t, err)
	require.True(t, got.Approved)
	require.NotContains(t, out, "[a]lways")
}

func TestQuestionShowsWhatThereIsToApprove(t *testing.T) {
	_, out, err := resolve(t, confirm(), strings.NewReader("v\nn\n"), nil)
	require.NoError(t, err)
	golden(t, "question.txt", out)
	require.NotContains(t, out, "\x1b")
}

func TestOtherQuestions(t *testing.T) {
	ask := func(kind gate.TicketKind, typed string) phase.Answer {
		got, _, err := resolve(t, gate.Ticket{ID: "t", Kind: kind, Message: "Which?", Params: `["a","b"]`}, strings.NewReader(typed), nil)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, phase.Answer{Approved: true, Value: `"7"`}, ask(gate.Text, "7\n"))
	require.Equal(t, phase.Answer{Approved: true, Value: `["a"]`}, ask(gate.MultiChoice, "[\"a\"]\n"))
	require.Equal(t, phase.Answer{Approved: true, Value: `"blue one"`}, ask(gate.Choice, "blue one\n"))
	require.False(t, ask(gate.Form, "\n").Approved)
	require.False(t, ask(gate.Secret, "hunter2\n").Approved, "a secret is never read from a pipe")

	got, out, err := resolve(t, gate.Ticket{ID: "t", Kind: gate.Secret, Message: "Password?"}, strings.NewReader(""),
		func() (string, error) { return "hunter2", nil })
	require.NoError(t, err)
	require.Equal(t, phase.Answer{Approved: true, Value: `"hunter2"`}, got)
	require.NotContains(t, out, "hunter2")
}

func TestYes(t *testing.T) {
	p := terminal.NewPrinter(terminal.Screen{Out: io.Discard})
	view := terminal.NewView(p, terminal.Quiet)
	yes := terminal.Yes{Prompt: terminal.NewPrompt(p, view, terminal.Keyboard{In: strings.NewReader("blue\n")})}
	got, err := yes.Resolve(t.Context(), confirm())
	require.NoError(t, err)
	require.Equal(t, phase.Answer{Approved: true, Reason: "by --yes"}, got)
	text := gate.Ticket{ID: "t", Kind: gate.Text}
	view.Observe(engine.TicketOpened{Ticket: text})
	got, err = yes.Resolve(t.Context(), text)
	require.NoError(t, err)
	require.Equal(t, phase.Answer{Approved: true, Value: `"blue"`}, got)
}

// A question waits until what led to it has been shown, and what happens while it
// is open is shown after the answer.
func TestNothingIsWrittenIntoAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out safe
		p := terminal.NewPrinter(terminal.Screen{Out: &out})
		view := terminal.NewView(p, terminal.Normal)
		in, typed := io.Pipe()
		prompt := terminal.NewPrompt(p, view, terminal.Keyboard{In: in, Echoes: true})
		answered := make(chan phase.Answer)
		go func() {
			a, _ := prompt.Resolve(t.Context(), confirm())
			answered <- a
		}()
		synctest.Wait()
		require.Empty(t, out.String(), "the event has not come yet")

		view.Observe(engine.TicketOpened{Header: at(1, phase.ToolGate), Ticket: confirm()})
		synctest.Wait()
		asked := out.String()
		require.Contains(t, asked, "Allow save?")
		require.True(t, strings.HasSuffix(asked, "› "))

		go view.Observe(engine.Warning{Plugin: "p", Message: "meanwhile"})
		synctest.Wait()
		require.Equal(t, asked, out.String())
		_, err := io.WriteString(typed, "y\n")
		require.NoError(t, err)
		require.True(t, (<-answered).Approved)
		synctest.Wait()
		require.Contains(t, out.String(), "meanwhile")
		require.NoError(t, typed.Close())
	})
}

// A cancelled run does not wait for an answer, and its output goes on.
func TestCancelledQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out safe
		p := terminal.NewPrinter(terminal.Screen{Out: &out})
		view := terminal.NewView(p, terminal.Normal)
		in, typed := io.Pipe()
		prompt := terminal.NewPrompt(p, view, terminal.Keyboard{In: in, Echoes: true})
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := prompt.Resolve(ctx, confirm())
			done <- err
		}()
		view.Observe(engine.TicketOpened{Ticket: confirm()})
		synctest.Wait()
		enough := errors.New("enough")
		cancel(enough)
		require.ErrorIs(t, <-done, enough)
		p.Line("and", "on")
		require.Contains(t, out.String(), "and  on\n")
		require.NoError(t, typed.Close())
	})
}
