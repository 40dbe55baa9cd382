package jsonschema

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrValue is the kind of *ValueError.
	ErrValue = errors.New("jsonschema: the value does not fit its schema")
	// ErrSchema is the kind of *SchemaError.
	ErrSchema = errors.New("jsonschema: the schema is at fault")
	// ErrTimeout means that a check took too long, and nothing is known of the value.
	ErrTimeout = errors.New("jsonschema: the check takes too long")
)

// Fault says what is wrong in one place.
type Fault struct {
	Pointer string // JSON Pointer; "" for the whole
	Reason  string // does not repeat what is there
}

// String returns "pointer: reason".
func (f Fault) String() string {
	if f.Pointer == "" {
		return f.Reason
	}
	return clip(f.Pointer) + ": " + f.Reason
}

// shown is how many faults the text of an error has.
const shown = 3

// ValueError says where a value does not fit its schema. It has at least one fault, in
// the order of their pointers. It belongs to the caller.
type ValueError struct{ Faults []Fault }

// Error tells the first faults.
func (e *ValueError) Error() string {
	var texts []string
	for _, f := range e.Faults[:min(shown, len(e.Faults))] {
		if f.Pointer == "" {
			texts = append(texts, "it "+f.Reason)
		} else {
			texts = append(texts, f.String())
		}
	}
	text := ErrValue.Error() + ": " + strings.Join(texts, "; ")
	if more := len(e.Faults) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Is reports whether target is ErrValue.
func (e *ValueError) Is(target error) bool { return target == ErrValue }

// SchemaError says what is wrong with a schema, and where in it.
type SchemaError struct {
	Pointer string // JSON Pointer into the schema; "" for the whole or where it is not known
	Reason  string
}

// Error tells the fault.
func (e *SchemaError) Error() string {
	return ErrSchema.Error() + ": " + Fault(*e).String()
}

// Is reports whether target is ErrSchema.
func (e *SchemaError) Is(target error) bool { return target == ErrSchema }
