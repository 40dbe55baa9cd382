package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/state"
)

// Spec is the handle of one kind of effect, with payloads of type P. Make it once, as a package-level variable, with
// [NewSpec]. It is a small comparable value and safe for concurrent use. Two specs with one name are different kinds
// all the same, and a handler of one refuses the effects of the other.
//
// A payload that holds no slices, maps, pointers or the like travels as it is. Any other is frozen when the effect is
// made, as JSON, and every reader gets a copy of its own; so what its JSON does not show, such as unexported fields,
// does not arrive.
type Spec[P any] struct{ kind *kind }

// kind is what a spec lowers to. Its address is the spec's identity.
type kind struct {
	name    string
	payload string // the type
	freeze  bool
	durable bool
	read    func(text []byte) (any, error)
}

// SpecOption changes what becomes of a spec's effects.
type SpecOption func(*kind)

// Durable says that the effects must not be lost: where the engine has a journal with an outbox, they are kept there
// with their commit until they were delivered, also by a later process. They arrive at least once, always with the
// same id. Their payloads must survive JSON.
//
// The commits of a delegated run are not kept, so its durable effects go into the outbox of the thread that delegated,
// right after their commit and before they are delivered.
func Durable() SpecOption { return func(k *kind) { k.durable = true } }

// NewSpec returns a new spec. The name is what people and traces see; it must not be empty.
func NewSpec[P any](name string, opts ...SpecOption) Spec[P] {
	k := &kind{
		name:    name,
		payload: reflect.TypeFor[P]().String(),
		freeze:  state.CheckAlias[P]() != nil,
		read: func(text []byte) (any, error) {
			var p P
			if err := json.Unmarshal(text, &p); err != nil {
				return nil, err
			}
			return p, nil
		},
	}
	for _, o := range opts {
		if o != nil {
			o(k)
		}
	}
	return Spec[P]{k}
}

// Name returns the spec's name.
func (s Spec[P]) Name() string { return s.kind.title() }

// New returns an effect that carries p. It never fails: if p cannot be frozen, the effect remembers that and is refused
// when its command is submitted; see [Effect.Err].
func (s Spec[P]) New(p P) Effect {
	e := Effect{kind: s.kind, payload: p}
	if s.kind != nil && s.kind.freeze {
		text, err := s.kind.encode(p)
		e.payload, e.err = frozen(text), err
	}
	return e
}

// Payload returns the payload of an effect this spec made. It is the caller's to keep or change. An effect of another
// spec, or a payload that cannot be decoded, is a [*PayloadError].
func (s Spec[P]) Payload(e Effect) (P, error) {
	var none P
	if s.kind == nil || e.kind != s.kind {
		return none, &PayloadError{e.Name(), fmt.Errorf("it was made by another spec than this one of %q; share one spec", s.Name())}
	}
	v, err := e.thaw()
	if err != nil {
		return none, err
	}
	p, ok := v.(P)
	if !ok && v != nil {
		return none, &PayloadError{e.Name(), fmt.Errorf("it has type %T; want %s", v, s.kind.payload)}
	}
	return p, nil
}

// Handle returns a handler for the effects of this spec. The function is called after the commit, with the snapshot of
// that commit and a payload of its own. It runs outside every lock, may block, and may submit commands; what it returns
// is reported and changes nothing else. Its context is not cancelled when the run is, only by its [Timeout] or when the
// dispatcher is drained in a hurry; [IDFrom] reads the effect's id from it. A panic is reported as a [*PanicError].
func (s Spec[P]) Handle(fn func(ctx context.Context, snap *state.Snapshot, p P) error, opts ...HandlerOption) Handler {
	h := Handler{kind: s.kind}
	if fn != nil {
		h.run = func(ctx context.Context, snap *state.Snapshot, e Effect) error {
			p, err := s.Payload(e)
			if err != nil {
				return err
			}
			return fn(ctx, snap, p)
		}
	}
	for _, o := range opts {
		if o != nil {
			o(&h)
		}
	}
	return h
}

func (k *kind) title() string {
	if k == nil {
		return ""
	}
	return k.name
}

func (k *kind) encode(p any) (text []byte, err error) {
	err = k.guard("writing", func() (err error) { text, err = json.Marshal(p); return err })
	return text, err
}

func (k *kind) decode(text []byte) (p any, err error) {
	err = k.guard("reading", func() (err error) { p, err = k.read(text); return err })
	return p, err
}

// guard calls fn, which may run the payload's own methods, and makes a PayloadError of its failure.
func (k *kind) guard(doing string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		if err != nil {
			err = &PayloadError{k.name, fmt.Errorf("%s it as JSON: %w", doing, err)}
		}
	}()
	return fn()
}
