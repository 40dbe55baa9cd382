package effects

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
	"github.com/ddd26017/fixpoint/internal/pushseq"
	"github.com/ddd26017/fixpoint/state"
)

// Handler is a function bound to the spec whose effects it handles. [Spec.Handle] makes one.
type Handler struct {
	kind    *kind
	run     func(ctx context.Context, snap *state.Snapshot, e Effect) error
	timeout *time.Duration
}

// Name returns the name of the effect it handles.
func (h Handler) Name() string { return h.kind.title() }

// HandlerOption changes how a handler is called.
type HandlerOption func(*Handler)

// Timeout bounds one call of the handler, instead of the dispatcher's default. At the deadline its context ends, the
// outcome is [ErrTimeout], and the next effects go on; a handler that does not return then is left behind in its
// goroutine and its late result is dropped. Zero means no limit.
func Timeout(d time.Duration) HandlerOption { return func(h *Handler) { h.timeout = &d } }

// Registered is a handler and the plugin that brought it.
type Registered struct {
	Plugin  string
	Handler Handler
}

// Handlers is an immutable table of handlers by effect name. Build it once and share it between dispatchers; it is
// safe for concurrent use. A nil table handles nothing.
type Handlers struct{ byName map[string]Registered }

// NewHandlers returns the table. It reports every fault at once, joined: [DuplicateHandlerError] for each effect with
// two handlers, [ErrBadHandler] for a handler without name or function or with a negative timeout.
func NewHandlers(list []Registered) (*Handlers, error) {
	byName := make(map[string]Registered, len(list))
	var faults []error
	bad := func(r Registered, reason string) {
		faults = append(faults, fmt.Errorf("%w of plugin %q for effect %q: %s", ErrBadHandler, r.Plugin, r.Handler.Name(), reason))
	}
	for _, r := range list {
		name := r.Handler.Name()
		first, taken := byName[name]
		switch {
		case name == "":
			bad(r, "its spec has no name; make it with NewSpec")
		case r.Handler.run == nil:
			bad(r, "its function is nil")
		case r.Handler.timeout != nil && *r.Handler.timeout < 0:
			bad(r, "its timeout is negative")
		case taken:
			faults = append(faults, &DuplicateHandlerError{Effect: name, First: first.Plugin, Second: r.Plugin})
		default:
			byName[name] = r
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &Handlers{byName}, nil
}

// Check reports every effect that could not be delivered, joined: one without handler ([UnknownEffectError], with the
// nearest known name), one whose handler belongs to another spec of the same name, and one whose payload could not be
// frozen ([PayloadError]). Call it before the commit that carries the effects.
func (h *Handlers) Check(effects ...Effect) error {
	var faults []error
	for _, e := range effects {
		if _, err := h.find(e); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// All yields the handlers in order of their effects' names.
func (h *Handlers) All() iter.Seq[Registered] {
	names := slices.Sorted(maps.Keys(h.table()))
	return pushseq.Map(slices.Values(names), func(name string) Registered { return h.byName[name] })
}

// Restore makes an effect of what [Effect.JSON] returned, in another process perhaps, so that an outbox can deliver it
// again. The name must have a handler and the payload must fit its spec.
func (h *Handlers) Restore(name string, payload []byte) (Effect, error) {
	r, err := h.lookup(name)
	if err != nil {
		return Effect{}, err
	}
	k := r.Handler.kind
	v, err := k.decode(payload)
	if err != nil {
		return Effect{}, err
	}
	if k.freeze {
		v = frozen(payload)
	}
	return Effect{kind: k, payload: v}, nil
}

// find returns the handler of e, or why e cannot be delivered.
func (h *Handlers) find(e Effect) (Registered, error) {
	if err := e.Err(); err != nil {
		return Registered{}, err
	}
	r, err := h.lookup(e.Name())
	if err == nil && r.Handler.kind != e.kind {
		return Registered{}, &PayloadError{e.Name(), fmt.Errorf(
			"its spec (payload %s) is not the one plugin %q handles (payload %s); share one spec or rename one",
			e.kind.payload, r.Plugin, r.Handler.kind.payload)}
	}
	return r, err
}

func (h *Handlers) lookup(name string) (Registered, error) {
	r, ok := h.table()[name]
	if !ok {
		return r, &UnknownEffectError{name, jsonpos.Nearest(name, slices.Sorted(maps.Keys(h.table())))}
	}
	return r, nil
}

func (h *Handlers) table() map[string]Registered {
	if h == nil {
		return nil
	}
	return h.byName
}
