package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// ErrBadEvent is the kind of *EventError.
var ErrBadEvent = errors.New("engine: not an event")

// EventError says why an event could not be written or a text could not be read
// as one. It matches ErrBadEvent.
type EventError struct {
	Type    string // of the event, as far as it is known
	Nearest string // the known type nearest to an unknown one, or ""
	Err     error
}

func (e *EventError) Error() string {
	msg := "engine: bad event"
	if e.Type != "" {
		msg += fmt.Sprintf(" of type %q", e.Type)
	}
	msg += ": " + e.Err.Error()
	if e.Nearest != "" {
		msg += fmt.Sprintf(" (nearest known: %q)", e.Nearest)
	}
	return msg
}

// Is reports whether target is ErrBadEvent.
func (e *EventError) Is(target error) bool { return target == ErrBadEvent }

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }

// MarshalEvent returns e as one line of a trace: a JSON object without line breaks
// whose first member is "type". An event that carries a JSON text which is not
// JSON, as a hook may put into a result, is an *EventError.
func MarshalEvent(e Event) ([]byte, error) {
	if e == nil {
		return nil, &EventError{Err: errors.New("there is none (nil)")}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // traces are for reading
	if err := enc.Encode(e); err != nil {
		return nil, &EventError{Type: e.Type(), Err: err}
	}
	// Every event has a header, so its object is not empty.
	fields := bytes.TrimSuffix(buf.Bytes()[1:], []byte("\n"))
	out := make([]byte, 0, len(fields)+32)
	out = append(out, `{"type":"`...)
	out = append(out, e.Type()...)
	out = append(out, `",`...)
	return append(out, fields...), nil
}

// UnmarshalEvent reads what MarshalEvent wrote and nothing else: the type comes
// first, an unknown type or member and anything after the object are *EventErrors.
// Members that are missing leave their fields at zero. White space inside embedded
// JSON texts may differ from that of the original event.
func UnmarshalEvent(data []byte) (Event, error) {
	typ, body, err := splitType(data)
	if err != nil {
		return nil, &EventError{Type: typ, Err: err}
	}
	for _, kind := range eventKinds() {
		if kind.Type() != typ {
			continue
		}
		into := reflect.New(reflect.TypeOf(kind))
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(into.Interface()); err != nil {
			return nil, &EventError{Type: typ, Err: err}
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return nil, &EventError{Type: typ, Err: errors.New("text after the object; give exactly one event")}
		}
		return into.Elem().Interface().(Event), nil
	}
	return nil, &EventError{Type: typ, Nearest: nearest(typ, EventTypes()), Err: errors.New("no event has this type")}
}

// splitType takes the leading "type" member off the object in data.
func splitType(data []byte) (typ string, body []byte, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	for _, want := range []json.Token{json.Delim('{'), "type"} {
		got, err := dec.Token()
		if err != nil {
			return "", nil, err
		}
		if got != want {
			return "", nil, fmt.Errorf("found %v where %v must be; an event is an object that starts with its type", got, want)
		}
	}
	got, err := dec.Token()
	if err != nil {
		return "", nil, err
	}
	typ, ok := got.(string)
	if !ok {
		return "", nil, fmt.Errorf("the type is %v; it must be a string", got)
	}
	rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")
	switch {
	case bytes.HasPrefix(rest, []byte("}")):
	case bytes.HasPrefix(rest, []byte(",")):
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		if bytes.HasPrefix(rest, []byte("}")) {
			return typ, nil, errors.New("a comma without a member behind it")
		}
	default:
		return typ, nil, errors.New("neither a comma nor the end of the object behind the type")
	}
	return typ, slices.Concat([]byte{'{'}, rest), nil
}

// EventTypes returns the types of all events, sorted. The slice is the caller's.
func EventTypes() []string {
	var types []string
	for _, e := range eventKinds() {
		types = append(types, e.Type())
	}
	slices.Sort(types)
	return types
}

// eventKinds is one of each event.
func eventKinds() []Event {
	return []Event{
		RunStarted{}, RunFinished{}, RunSuspended{}, RunResumed{}, StepStarted{}, StepFinished{},
		PhaseStarted{}, PhaseFinished{}, HookFinished{}, Conflict{}, Committed{},
		RoundFinished{}, ActionFinished{}, EffectFinished{},
		GateVoted{}, GateResolved{}, GateClashed{}, CallEdited{}, TicketOpened{}, TicketAnswered{},
		ToolStarted{}, ToolFinished{},
		InferenceStarted{}, InferenceChunk{}, InferenceFinished{}, OverrideApplied{}, RequestTransformed{},
		Continued{}, HandedOff{}, Warning{},
	}
}
