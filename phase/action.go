package phase

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// ActionSpec names a kind of action, the phase it runs in and the type of its
// payload. It is a package-level value; New makes actions of the kind and Handle
// binds the code that runs them.
type ActionSpec[P any] struct{ def *actionDef }

type actionDef struct {
	name       string
	at         Phase
	replaySafe bool
	aliases    bool // the payload holds references, so it travels as JSON
	read       bool // it stands for the kind of an action that was read back, and no spec has it
}

// none is the kind of the zero action and the zero handler. It never changes.
var none actionDef

func (d *actionDef) orNone() *actionDef { return cmp.Or(d, &none) }

// NewAction declares a kind of action that runs in phase at. The name is unique
// per engine. A payload type that holds references (maps, slices, pointers) is
// frozen by encoding it as JSON in New, and each handler call gets its own copy.
func NewAction[P any](name string, at Phase) ActionSpec[P] {
	return ActionSpec[P]{&actionDef{name: name, at: at, aliases: state.CheckAlias[P]() != nil}}
}

// ReplaySafe returns the same kind with the promise that its handler, like a
// hook, may run twice. The engine then runs a round's actions of this kind in
// parallel under the hooks' conflict rule. Use the returned value everywhere.
func (s ActionSpec[P]) ReplaySafe() ActionSpec[P] {
	def := *s.def
	def.replaySafe = true
	return ActionSpec[P]{&def}
}

// Name returns the kind's name.
func (s ActionSpec[P]) Name() string { return s.def.name }

// Phase returns the phase that actions of this kind run in.
func (s ActionSpec[P]) Phase() Phase { return s.def.at }

// New makes an action. The payload is frozen: changing what args refers to later
// changes nothing. A payload that cannot be frozen makes an action whose Err is
// set, and scheduling it refuses the command.
func (s ActionSpec[P]) New(args P) Action {
	if !s.def.aliases {
		return Action{s.def, args}
	}
	return Action{s.def, kept(s.def.encode(args))}
}

// Args returns the payload of an action of this kind, a copy of the caller's own. The
// error is an ErrPayload.
func (s ActionSpec[P]) Args(a Action) (P, error) {
	if args, ok := a.payload.(P); ok && !s.def.aliases { // an interface type would take anything
		return args, nil
	}
	var args P // only now: it escapes
	raw, err := a.JSON()
	if err == nil {
		if err = json.Unmarshal([]byte(raw), &args); err != nil {
			err = fmt.Errorf("%w: action %s: %w", ErrPayload, a.Name(), err)
		}
	}
	return args, err
}

// Handle binds fn to the kind. The handler runs on a fresh snapshot, may do I/O
// unless the kind is ReplaySafe, and returns a command that is committed
// together with the removal of the action.
func (s ActionSpec[P]) Handle(fn func(ctx context.Context, pc *Context, args P) (Command, error)) ActionHandler {
	return ActionHandler{def: s.def, run: func(ctx context.Context, pc *Context, a Action) (Command, error) {
		args, err := s.Args(a)
		if err != nil {
			return Command{}, err
		}
		return fn(ctx, pc, args)
	}}
}

// Action is one piece of scheduled work. It is an immutable value, safe to keep
// and to share. The zero Action is refused like an unknown one.
type Action struct {
	def     *actionDef
	payload any // its value, or a frozen or lost one
}

// frozen is a payload as JSON, and lost is why there is none.
type (
	frozen inference.JSON
	lost   struct{ error }
)

func kept(raw inference.JSON, err error) any {
	if err != nil {
		return lost{err}
	}
	return frozen(raw)
}

// Name returns the action's kind.
func (a Action) Name() string { return a.def.orNone().name }

// Phase returns the phase that the action runs in.
func (a Action) Phase() Phase { return a.def.orNone().at }

// Err returns why the payload could not be frozen, or nil.
func (a Action) Err() error {
	if no, ok := a.payload.(lost); ok {
		return no.error
	}
	return nil
}

// JSON returns the payload as JSON.
func (a Action) JSON() (inference.JSON, error) {
	switch p := a.payload.(type) {
	case nil: // of the zero action
		return "", nil
	case lost:
		return "", p.error
	case frozen:
		return inference.JSON(p), nil
	}
	return a.def.encode(a.payload)
}

// encode writes a payload. Its type may have methods that panic.
func (d *actionDef) encode(payload any) (raw inference.JSON, err error) {
	defer func() {
		if v := recover(); v != nil {
			raw, err = "", fmt.Errorf("%w: action %s: encoding it panicked: %v", ErrPayload, d.name, v)
		}
	}()
	if raw, err = inference.ToJSON(payload); err != nil {
		return "", fmt.Errorf("%w: action %s: %w", ErrPayload, d.name, err)
	}
	return raw, nil
}

type wireAction struct {
	Name    string         `json:"name"`
	Phase   Phase          `json:"phase"`
	Payload inference.JSON `json:"payload"`
	Error   string         `json:"error,omitzero"`
}

// MarshalJSON writes name, phase and payload. A payload that cannot be written is
// replaced by the reason, so that it does not keep everything else from being
// saved; the action read back has that reason as its Err.
func (a Action) MarshalJSON() ([]byte, error) {
	payload, err := a.JSON() // empty with an error
	w := wireAction{Name: a.Name(), Phase: a.Phase(), Payload: payload}
	if err != nil {
		w.Error = err.Error()
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. The payload stays JSON until the
// handler runs, since only the handler knows its type.
func (a *Action) UnmarshalJSON(data []byte) error {
	var w wireAction
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	var err error
	if w.Error != "" {
		err = fmt.Errorf("%w: %s", ErrPayload, w.Error)
	}
	*a = Action{&actionDef{name: w.Name, at: w.Phase, read: true}, kept(w.Payload, err)}
	return nil
}

// ActionHandler is a handler bound to its kind, ready to be registered.
type ActionHandler struct {
	def     *actionDef
	run     func(ctx context.Context, pc *Context, a Action) (Command, error)
	timeout time.Duration
}

// Timeout returns the handler with a deadline for each call. Zero means none.
// A call that misses it is dead-lettered; what it returns later is thrown away.
func (h ActionHandler) Timeout(d time.Duration) ActionHandler {
	h.timeout = d
	return h
}

// Deadline returns the time that one call may take; zero means no limit.
func (h ActionHandler) Deadline() time.Duration { return h.timeout }

// Name returns the handled kind's name; "" for the zero handler.
func (h ActionHandler) Name() string { return h.def.orNone().name }

// Phase returns the phase that the handled kind runs in.
func (h ActionHandler) Phase() Phase { return h.def.orNone().at }

// ReplaySafe reports whether calls may run in parallel and be repeated.
func (h ActionHandler) ReplaySafe() bool { return h.def.orNone().replaySafe }

// Accepts returns nil when a is of the handled kind. An action of the same name
// made from another ActionSpec is refused: its payload has another type.
func (h ActionHandler) Accepts(a Action) error {
	err := a.Err()
	switch {
	case err != nil:
		return err
	case h.def == nil || a.def == nil || a.Name() != h.def.name || a.Phase() != h.def.at:
		return fmt.Errorf("%w %q", ErrUnknownAction, a.Name())
	case a.def != h.def && !a.def.read:
		return fmt.Errorf("%w %q: scheduled from another ActionSpec of the same name; share one package-level value", ErrUnknownAction, a.Name())
	}
	return nil
}

// Handle runs the handler on a.
func (h ActionHandler) Handle(ctx context.Context, pc *Context, a Action) (Command, error) {
	return h.run(ctx, pc, a)
}
