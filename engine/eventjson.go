package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ddd26017/fixpoint/internal/tagged"
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
	line, err := tagged.Marshal(e.Type(), e) // every event has a header, so its object is not empty
	if err != nil {
		return nil, &EventError{Type: e.Type(), Err: err}
	}
	return line, nil
}

// UnmarshalEvent reads what MarshalEvent wrote and nothing else: the type comes
// first, an unknown type or member and anything after the object are *EventErrors.
// Members that are missing leave their fields at zero. White space inside embedded
// JSON texts may differ from that of the original event.
func UnmarshalEvent(data []byte) (Event, error) {
	typ, body, err := tagged.Split(data)
	if err != nil {
		return nil, &EventError{Type: typ, Err: err}
	}
	for _, kind := range eventKinds() {
		if kind.Type() != typ {
			continue
		}
		into := reflect.New(reflect.TypeOf(kind))
		if err := tagged.Decode(body, into.Interface()); err != nil {
			return nil, &EventError{Type: typ, Err: err}
		}
		return into.Elem().Interface().(Event), nil
	}
	return nil, &EventError{Type: typ, Nearest: nearest(typ, EventTypes()), Err: errors.New("no event has this type")}
}

// numbered is e with a number.
func numbered(e Event, seq uint64) Event {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	v.Set(reflect.ValueOf(e))
	v.FieldByName("Seq").SetUint(seq)
	return v.Interface().(Event)
}

// EventTypes returns the types of all events, sorted. The slice is the caller's.
func EventTypes() []string { return slices.Sorted(slices.Values(each(eventKinds(), Event.Type))) }

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
