package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// SchemaChecker checks a value against a JSON Schema. It must be safe for concurrent
// use; contrib/jsonschema has one. The error tells whoever answered what is wrong.
type SchemaChecker interface {
	CheckSchema(schema, value inference.JSON) error
}

// SchemaCheckerFunc lets a function be a SchemaChecker.
type SchemaCheckerFunc func(schema, value inference.JSON) error

// CheckSchema calls f.
func (f SchemaCheckerFunc) CheckSchema(schema, value inference.JSON) error { return f(schema, value) }

var ticketKinds = []gate.TicketKind{gate.Confirm, gate.Text, gate.Choice, gate.MultiChoice, gate.Form, gate.Secret}

// unanswerable says why a question must not be asked, or "".
func (e *Engine) unanswerable(ctx context.Context, t gate.Ticket) string {
	var choices []string
	switch {
	case t.Kind == brokenTicket || !t.Valid():
		return " asks with params, choices, a schema or a fallback that are not JSON"
	case !slices.Contains(ticketKinds, t.Kind):
		return fmt.Sprintf(" asks a question of the kind %q, which there is not", t.Kind)
	case t.Choices.Decode(&choices) != nil || t.Choices != "" && len(choices) == 0:
		return " asks with choices that are no list of texts or an empty one; use gate.Choices"
	case t.Kind == gate.Secret && t.Mode == gate.UseAsResult:
		return " asks for a secret as the result, which the model would see; use gate.PassToTool"
	case t.Kind == gate.Secret && (t.Fallback != "" || t.Default == gate.DefaultYes):
		return " asks for a secret with a default of yes, which has none, or a fallback, which would be in state"
	case t.Lifetime < 0:
		return " asks a question with a negative lifetime"
	case t.Schema != "" && e.config.Schemas == nil:
		return " asks with a schema" + noSchemas
	}
	if t.Fallback != "" {
		if err := e.suits(ctx, t, t.Fallback); err != nil {
			return fmt.Sprintf(" asks with a fallback that its own question does not allow: %v", err)
		}
	}
	return ""
}

const noSchemas = ", and Config.Schemas has nobody to check answers by it"

// fits checks an answer against its ticket's kind, choices and schema.
func (e *Engine) fits(ctx context.Context, c CallState, a phase.Answer) error {
	t := c.Ticket
	switch {
	case !a.Value.Valid() || !a.Args.Valid():
		return fmt.Errorf("%w: the value or the arguments are not JSON", ErrBadAnswer)
	case a.Approved && a.Cancel:
		return fmt.Errorf("%w: it approves the call and calls it off", ErrBadAnswer)
	case !a.Approved:
		return nil
	case a.Args != "" && c.Ended:
		return fmt.Errorf("%w: the tool has run, its arguments cannot be edited any more", ErrBadAnswer)
	case a.Value == "" && (t.Kind == gate.Confirm ||
		t.Mode == gate.Replay && t.Kind != gate.Secret && t.Schema == "" && t.Choices == ""):
		return nil
	}
	err := e.suits(ctx, t, a.Value)
	switch {
	case err == nil:
		return nil
	case t.Kind == gate.Secret: // the cause might quote it
		return fmt.Errorf("%w: a %s ticket wants a text by its schema", ErrBadAnswer, t.Kind)
	default:
		return fmt.Errorf("%w: a %s ticket wants another value: %w", ErrBadAnswer, t.Kind, err)
	}
}

// suits checks a value against what a ticket says of it, its schema included.
func (e *Engine) suits(ctx context.Context, t gate.Ticket, value inference.JSON) error {
	switch err := formed(t, value); {
	case err != nil || t.Schema == "":
		return err
	case e.config.Schemas == nil: // asked by another engine
		return errors.New("the ticket has a schema" + noSchemas)
	}
	_, err := within(ctx, nil, e.config.Limits.JournalTimeout, "Config.Schemas", phase.ToolGate,
		func(context.Context) (struct{}, error) {
			return struct{}{}, e.config.Schemas.CheckSchema(t.Schema, value)
		})
	return err
}

// formed checks a value against what a ticket's kind and choices say of it.
func formed(t gate.Ticket, value inference.JSON) (err error) {
	var picked, choices []string
	switch {
	case t.Kind == gate.Confirm && t.Choices == "":
	case slices.Contains([]gate.TicketKind{gate.Text, gate.Secret, gate.Choice, gate.Confirm}, t.Kind):
		picked = make([]string, 1)
		picked[0], err = given[string](value)
	case t.Kind == gate.MultiChoice:
		picked, err = given[[]string](value)
	case t.Kind == gate.Form:
		_, err = given[map[string]inference.JSON](value)
	}
	if t.Choices == "" || err != nil {
		return err
	}
	if err = t.Choices.Decode(&choices); err != nil {
		return err
	}
	for _, p := range picked {
		if !slices.Contains(choices, p) {
			return fmt.Errorf("%q is not among the choices %q", p, choices)
		}
	}
	return nil
}

// given decodes a value that must be there.
func given[T any](value inference.JSON) (v T, err error) {
	var some *T
	if err = value.Decode(&some); some == nil {
		return v, cmp.Or(err, errNoValue)
	}
	return *some, err
}

var errNoValue = errors.New("there is none")

// expired reports whether a question does not stand any more.
func expired(t gate.Ticket, now time.Time) bool { return !t.Until.IsZero() && !now.Before(t.Until) }

// byDefault is the answer that a ticket has for when nobody gives one.
func byDefault(t gate.Ticket, why string) phase.Answer {
	a := phase.Answer{Ticket: t.ID}
	switch t.Default {
	case gate.DefaultYes:
		a.Approved, a.Value = true, t.Fallback
	case gate.DefaultNo:
		a.Reason = why + ", and the default is no"
	default:
		a.Cancel, a.Reason = true, why
	}
	return a
}
