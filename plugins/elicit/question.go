package elicit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// Question is what the tool is called with.
type Question struct {
	Kind    gate.TicketKind `json:"kind"`
	Message string          `json:"message"`           // what the user is asked
	Choices []string        `json:"choices,omitempty"` // for choice and multi_choice
	Schema  inference.JSON  `json:"schema,omitzero"`   // JSON Schema of the value, for text and form
	Default inference.JSON  `json:"default,omitzero"`  // the value that counts when nobody answers; not for secret
}

// schema is what the model is told of a Question.
const schema inference.JSON = `{"type":"object","properties":{` +
	`"kind":{"enum":["text","choice","multi_choice","form","confirm","secret"]},` +
	`"message":{"type":"string","description":"the question, in the user's language"},` +
	`"choices":{"type":"array","items":{"type":"string"},"description":"for choice and multi_choice"},` +
	`"schema":{"type":"object","description":"JSON Schema of the answer, for text and form"},` +
	`"default":{"description":"the answer that counts when nobody answers; not for secret"}},` +
	`"required":["kind","message"],"additionalProperties":false}`

// Parse reads the arguments of a call, strictly. Errors name the place of the fault: the
// offset in the text, or the field.
func Parse(args inference.JSON) (q Question, err error) {
	if err := args.Decode(&q); err != nil {
		return q, fmt.Errorf("elicit: the arguments of %s: %w", Tool, err)
	}
	if err := q.Validate(); err != nil {
		return q, fmt.Errorf("elicit: the arguments of %s: %w", Tool, err)
	}
	return q, nil
}

var kinds = []gate.TicketKind{gate.Text, gate.Choice, gate.MultiChoice, gate.Form, gate.Confirm, gate.Secret}

// Validate returns what is wrong with the question, or nil.
func (q Question) Validate() error {
	chooses := q.Kind == gate.Choice || q.Kind == gate.MultiChoice
	switch {
	case !slices.Contains(kinds, q.Kind):
		return fmt.Errorf("kind is %q; use one of %q", q.Kind, kinds)
	case q.Message == "":
		return errors.New("message is empty; say what the user is asked")
	case chooses && len(q.Choices) == 0:
		return fmt.Errorf("choices are empty; a %s needs some", q.Kind)
	case !chooses && len(q.Choices) > 0:
		return fmt.Errorf("choices are for choice and multi_choice, not for %s", q.Kind)
	case q.Schema != "" && q.Kind != gate.Text && q.Kind != gate.Form:
		return fmt.Errorf("schema is for text and form, not for %s", q.Kind)
	case q.Default != "" && q.Kind == gate.Secret:
		return errors.New("default: a secret has none")
	}
	for i, c := range q.Choices {
		if slices.Index(q.Choices, c) < i {
			return fmt.Errorf("choices[%d] is %q again", i, c)
		}
	}
	var fields map[string]inference.JSON
	if q.Schema != "" && q.Schema.Decode(&fields) != nil {
		return errors.New("schema is no JSON object")
	}
	return q.validDefault()
}

func (q Question) validDefault() (err error) {
	if q.Default == "" {
		return nil
	}
	var text string
	var list []string
	switch q.Kind {
	case gate.Confirm:
		err = q.Default.Decode(new(bool))
	case gate.Form:
		err = q.Default.Decode(new(map[string]inference.JSON))
	case gate.MultiChoice:
		err = q.Default.Decode(&list)
	default:
		err = q.Default.Decode(&text)
		list = []string{text}
	}
	if err != nil {
		return fmt.Errorf("default does not suit a %s: %w", q.Kind, err)
	}
	for _, c := range list {
		if len(q.Choices) > 0 && !slices.Contains(q.Choices, c) {
			return fmt.Errorf("default: %q is none of the choices %q", c, q.Choices)
		}
	}
	return nil
}

// ticket returns the question as the engine asks it.
func (q Question) ticket(s Settings) gate.Ticket {
	t := gate.Ticket{Kind: q.Kind, Message: q.Message, Schema: q.Schema, Mode: gate.PassToTool, Default: s.Unattended.standard()}
	if len(q.Choices) > 0 {
		t.Choices = gate.Choices(q.Choices...)
	}
	t.Lifetime, _ = time.ParseDuration(s.Lifetime) // Validate saw to it
	switch {
	case q.Default == "":
	case q.Kind == gate.Confirm && q.Default != "true":
		t.Default = gate.DefaultNo
	case q.Kind == gate.Confirm:
		t.Default = gate.DefaultYes
	default:
		t.Default, t.Fallback = gate.DefaultYes, q.Default
	}
	return t
}
