package terminal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// declined is the answer of an empty line.
func declined() phase.Answer { return phase.Answer{Reason: "declined at the terminal"} }

// ask reads the answer. The printer is ours.
func (q *Prompt) ask(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	if shown, ok := preview(t); ok {
		return q.approve(ctx, t, shown)
	}
	if t.Kind == gate.Confirm {
		return q.confirm(ctx, t)
	}
	for {
		value, err := q.value(ctx, t)
		switch {
		case err != nil:
			return phase.Answer{}, err
		case value == "" && t.Kind == gate.Secret:
			return phase.Answer{Cancel: t.Default == gate.DefaultCancel, Reason: "a secret can only be typed at a terminal"}, nil
		case value == "":
			return declined(), nil
		case t.Schema != "" && q.keys.Fits != nil:
			if err := q.keys.Fits(t.Schema, value); err != nil {
				if t.Kind == gate.Secret {
					q.complain("that is not of the form that is wanted") // the cause might show it
				} else {
					q.complain(err.Error())
				}
				continue
			}
		}
		return phase.Answer{Approved: true, Value: value}, nil
	}
}

// value reads the value of an answer by the kind of its ticket; "" declines.
func (q *Prompt) value(ctx context.Context, t gate.Ticket) (inference.JSON, error) {
	choices := Choices(t)
	switch {
	case t.Kind == gate.Secret:
		return q.secret()
	case t.Kind == gate.Choice && len(choices) > 0:
		q.list(choices)
		return q.choice(ctx, choices)
	case t.Kind == gate.MultiChoice && len(choices) > 0:
		q.list(choices)
		return q.several(ctx, choices)
	case t.Kind == gate.Form:
		if fields, ok := formFields(t.Schema); ok {
			return q.form(ctx, fields)
		}
		return q.json(ctx, "values, as a JSON object; an empty line declines")
	case t.Kind == gate.Text || t.Kind == gate.Choice:
		q.cue("text; an empty line declines")
		text, err := q.line(ctx)
		if err != nil || text == "" {
			return "", err
		}
		return inference.ToJSON(text)
	default:
		return q.json(ctx, "value, as JSON; an empty line declines")
	}
}

// Choices returns the texts that the answer to a ticket is taken from, if it has such.
func Choices(t gate.Ticket) []string {
	var list []string
	if t.Choices == "" || t.Choices.Decode(&list) != nil {
		return nil
	}
	return list
}

func (q *Prompt) secret() (inference.JSON, error) {
	if q.keys.Secret == nil {
		return "", nil
	}
	q.cue("value, not shown")
	if q.keys.Line != nil {
		q.p.write(q.said + "\n")
	}
	text, err := q.keys.Secret()
	if q.keys.Line == nil {
		q.p.write("\n")
	}
	if err != nil {
		return "", err
	}
	return inference.ToJSON(text)
}

// list shows choices with their numbers.
func (q *Prompt) list(choices []string) {
	for i, c := range choices {
		q.p.write(q.p.layout(q.p.s.plain, "", 2, q.p.s.bold.Render(strconv.Itoa(i+1)), clip(clean(c), 200)) + "\n")
	}
}

// pick returns the choice that a text stands for: itself or its number.
func pick(choices []string, text string) (string, bool) {
	if slices.Contains(choices, text) {
		return text, true
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1], true
	}
	return "", false
}

func (q *Prompt) choice(ctx context.Context, choices []string) (inference.JSON, error) {
	for {
		q.cue("number or text; an empty line declines")
		text, err := q.line(ctx)
		if err != nil || text == "" {
			return "", err
		}
		if c, ok := pick(choices, strings.TrimSpace(text)); ok {
			return inference.ToJSON(c)
		}
		q.complain("that is none of the choices")
	}
}

func (q *Prompt) several(ctx context.Context, choices []string) (inference.JSON, error) {
	for {
		q.cue("numbers or texts with commas between, - for none; an empty line declines")
		text, err := q.line(ctx)
		if err != nil || text == "" {
			return "", err
		}
		picked, wrong := []string{}, ""
		if strings.TrimSpace(text) != "-" {
			for part := range strings.SplitSeq(text, ",") {
				if c, ok := pick(choices, strings.TrimSpace(part)); !ok {
					wrong = strings.TrimSpace(part)
				} else if !slices.Contains(picked, c) {
					picked = append(picked, c)
				}
			}
		}
		if wrong == "" {
			return inference.ToJSON(picked)
		}
		q.complain(fmt.Sprintf("%q is none of the choices", wrong))
	}
}

func (q *Prompt) json(ctx context.Context, cue string) (inference.JSON, error) {
	for {
		q.cue(cue)
		text, err := q.line(ctx)
		if err != nil || strings.TrimSpace(text) == "" {
			return "", err
		}
		if value := inference.JSON(text); value.Valid() {
			return value, nil
		}
		q.complain("that is not JSON")
	}
}

func (q *Prompt) complain(text string) {
	label := "again"
	for _, part := range q.p.broken(clean(text), 2) {
		q.p.write(q.p.layout(q.p.s.bad, label, 2, q.p.s.bad.Render(part)) + "\n")
		label = ""
	}
}
