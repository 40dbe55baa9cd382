package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

func newAnswer(stdio IO) *cobra.Command {
	var f decideFlags
	c := &cobra.Command{
		Use:   "answer TICKET [VALUE...]",
		Short: "Answer a question of a run and go on with the run",
		Long: "Answer an open ticket " + ticketHelp + "\n\n" +
			"How VALUE is written depends on the kind of the question, which pending shows:\n\n" +
			"  text          the text, as it is\n" +
			"  choice        one of the choices\n" +
			"  multi choice  any number of the choices, each an argument; '[]' for none\n" +
			"  form          a JSON object\n" +
			"  confirm       one of the choices, or JSON\n" +
			"                for some tool calls, as pending shows: yes, no REASON, edit ARGUMENTS,\n" +
			"                times N [call|tool|all], always [run|thread|persistent] [call|tool|all]\n" +
			"  secret        never an argument, since others can see those\n\n" +
			"Without VALUE it is asked for at the terminal, a secret without showing it, or read\n" +
			"from standard input. A value that is refused leaves the ticket open (exit code 2).",
		Example: "  fixpoint answer thread-1.run-1/2/color/1 blue --store runs\n" +
			"  fixpoint answer booking '{\"city\": \"Rome\"}' --store runs\n" +
			"  pass show site | fixpoint answer password --store runs",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s takes TICKET and perhaps a VALUE; see %s --help", c.Name(), c.CommandPath())}
			}
			return nil
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, ticket string) error {
			d := decision{verb: "answer", done: "answered", answer: phase.Answer{Approved: true}}
			d.read = func(ctx context.Context, q kept.Question) (phase.Answer, error) {
				return given(ctx, q, args[1:], stdio)
			}
			return f.decide(ctx, d, ticket, stdio)
		})(c, args)
	}
	f.flags(c)
	return c
}

// given returns the answer that the arguments hold, or the terminal or standard input
// where there are none.
func given(ctx context.Context, q kept.Question, values []string, stdio IO) (phase.Answer, error) {
	if q.Ticket.Kind == gate.Secret && len(values) > 0 {
		return phase.Answer{}, usageError{errors.New("fixpoint: a secret is never given as an argument, which other programs and your shell's history can see; leave it out to be asked for it, or write it to standard input")}
	}
	if len(values) == 0 {
		if keys, ok := keyboard(stdio); ok {
			return typed(ctx, q, keys, stdio)
		}
		text, err := piped(stdio.In)
		if err != nil {
			return phase.Answer{}, err
		}
		values = []string{text}
		if q.Ticket.Kind == gate.MultiChoice && !inference.JSON(text).Valid() {
			values = strings.Split(text, "\n")
		}
	}
	if terminal.TakesAnswers(q.Ticket) {
		answer, err := terminal.ReadAnswer(q.Ticket, strings.Join(values, " "))
		if err != nil {
			return answer, usageError{fmt.Errorf("fixpoint: %w; ticket %s is still open", err, q.Ticket.ID)}
		}
		return answer, nil
	}
	value, err := valueOf(q.Ticket, values)
	return phase.Answer{Approved: true, Value: value}, err
}

// typed asks at the terminal.
func typed(ctx context.Context, q kept.Question, keys terminal.Keyboard, stdio IO) (phase.Answer, error) {
	p := terminal.NewPrinter(screen(stdio, stdio.Err)) // standard output may be for the events
	view := terminal.NewView(p, terminal.Quiet)
	view.Remember(q.Call)
	answer, err := terminal.NewPrompt(p, view, keys).Ask(ctx, q.Ticket)
	if errors.Is(err, io.EOF) {
		return answer, usageError{fmt.Errorf("fixpoint: no answer was given; ticket %s is still open", q.Ticket.ID)}
	}
	return answer, err
}

// maxPiped bounds an answer on standard input, in bytes.
const maxPiped = 1 << 20

// piped reads an answer from standard input, less the end of its last line.
func piped(in io.Reader) (string, error) {
	if in == nil {
		in = strings.NewReader("")
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPiped+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("fixpoint: the answer could not be read: %w", err)
	case len(text) > maxPiped:
		return "", usageError{fmt.Errorf("fixpoint: an answer may have %d bytes", maxPiped)}
	case len(text) == 0:
		return "", usageError{errors.New("fixpoint: give a VALUE, or write it to standard input")}
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// valueOf returns what texts stand for by the kind of a question. Whether it is one
// that the question takes is for the run to say.
func valueOf(t gate.Ticket, values []string) (inference.JSON, error) {
	choices := terminal.Choices(t)
	if t.Kind == gate.MultiChoice {
		if list := inference.JSON(values[0]); len(values) == 1 && strings.HasPrefix(strings.TrimSpace(values[0]), "[") && list.Valid() && !slices.Contains(choices, values[0]) {
			return list, nil
		}
		return inference.ToJSON(values)
	}
	if len(values) > 1 {
		return "", usageError{fmt.Errorf("fixpoint: a question of the kind %s takes one value, got %d; quote a text that has spaces", t.Kind, len(values))}
	}
	text := values[0]
	switch {
	case t.Kind == gate.Text, t.Kind == gate.Secret, t.Kind == gate.Choice, slices.Contains(choices, text):
		return inference.ToJSON(text)
	case text == "" || !inference.JSON(text).Valid():
		return "", usageError{fmt.Errorf("fixpoint: the value %q is not JSON, which a question of the kind %s takes", text, t.Kind)}
	default:
		return inference.JSON(text), nil
	}
}
