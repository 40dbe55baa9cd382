package effects_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/state"
)

type note struct {
	Text string `json:"text"`
}

type tags struct {
	List []string       `json:"list"`
	More map[string]int `json:"more,omitempty"`
}

type stubborn struct{ P *int }

func (stubborn) MarshalJSON() ([]byte, error) { panic("no JSON today") }

type oneWay struct{ P *int }

func (*oneWay) UnmarshalJSON([]byte) error { panic("no reading today") }

var (
	notes = effects.NewSpec[note]("note")
	lists = effects.NewSpec[tags]("tags")
)

func TestPlainPayloadTravelsAsItIs(t *testing.T) {
	type secret struct{ text string }
	spec := effects.NewSpec[secret]("secret")
	e := spec.New(secret{"kept"})
	require.NoError(t, e.Err())
	require.Equal(t, "secret", e.Name())
	require.Equal(t, "secret", e.String())
	got, err := spec.Payload(e)
	require.NoError(t, err)
	require.Equal(t, secret{"kept"}, got)
	require.Equal(t, secret{"kept"}, e.Payload())
}

// Capability A8. What the emitter does to its payload afterwards, and what one reader does to its copy, reaches nobody.
func TestAliasingPayloadIsFrozen(t *testing.T) {
	p := tags{List: []string{"a", "b"}, More: map[string]int{"x": 1}}
	e := lists.New(p)
	require.NoError(t, e.Err())
	p.List[0], p.More["x"] = "changed", 2

	want := tags{List: []string{"a", "b"}, More: map[string]int{"x": 1}}
	first, err := lists.Payload(e)
	require.NoError(t, err)
	require.Equal(t, want, first)
	first.List[1], first.More["y"] = "changed", 3
	require.Equal(t, want, e.Payload())

	raw, err := e.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"list":["a","b"],"more":{"x":1}}`, string(raw))
	raw[2] = 'X'
	require.Equal(t, want, e.Payload())
}

func TestPayloadThatCannotBeCarried(t *testing.T) {
	type withChan struct{ C chan int }
	for name, e := range map[string]effects.Effect{
		"unsupported": effects.NewSpec[withChan]("c").New(withChan{make(chan int)}),
		"panics":      effects.NewSpec[stubborn]("s").New(stubborn{}),
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, e.Err(), effects.ErrPayload)
			var pe *effects.PayloadError
			require.ErrorAs(t, e.Err(), &pe)
			require.Equal(t, e.Name(), pe.Effect)
			require.ErrorContains(t, e.Err(), "effects: payload of effect")
			require.Nil(t, e.Payload())
			_, err := e.JSON()
			require.ErrorIs(t, err, effects.ErrPayload)
		})
	}

	odd := effects.NewSpec[oneWay]("odd")
	_, err := odd.Payload(odd.New(oneWay{}))
	require.ErrorIs(t, err, effects.ErrPayload, "a decoder that panics is an error too")

	bad := effects.NewSpec[float64]("f")
	_, err = bad.New(nan()).JSON()
	require.ErrorIs(t, err, effects.ErrPayload)
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestPayloadOfAnotherSpec(t *testing.T) {
	twin := effects.NewSpec[note]("note")
	_, err := twin.Payload(notes.New(note{"x"}))
	require.ErrorIs(t, err, effects.ErrPayload, "the name alone does not make two specs one")

	forged := effects.Spec[int](notes)
	_, err = forged.Payload(notes.New(note{"x"}))
	require.ErrorContains(t, err, "it has type effects_test.note", "a converted spec does not panic")
	d, err := effects.NewDispatcher(table(t, effects.Registered{Plugin: "forger", Handler: handler(forged)}), effects.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, d.Deliver(t.Context(), []effects.Delivery{{Effect: notes.New(note{"x"})}})[0].Err, effects.ErrPayload)

	var zero effects.Spec[note]
	require.Empty(t, zero.Name())
	_, err = zero.Payload(effects.Effect{})
	require.ErrorIs(t, err, effects.ErrPayload)
	require.ErrorIs(t, zero.New(note{}).Err(), effects.ErrUnknownEffect)

	var nothing effects.Effect
	require.Empty(t, nothing.Name())
	require.Nil(t, nothing.Payload())
	require.ErrorContains(t, nothing.Err(), "NewSpec")
}

func TestInterfacePayloadMayBeNil(t *testing.T) {
	spec := effects.NewSpec[any]("any")
	got, err := spec.Payload(spec.New(nil))
	require.NoError(t, err)
	require.Nil(t, got)
}

func handler[P any](s effects.Spec[P], opts ...effects.HandlerOption) effects.Handler {
	return s.Handle(func(context.Context, *state.Snapshot, P) error { return nil }, opts...)
}

func table(t testing.TB, list ...effects.Registered) *effects.Handlers {
	t.Helper()
	h, err := effects.NewHandlers(list)
	require.NoError(t, err)
	return h
}

func TestNewHandlersReportsEveryFault(t *testing.T) {
	_, err := effects.NewHandlers([]effects.Registered{
		{Plugin: "one", Handler: handler(notes)},
		{Plugin: "two", Handler: handler(notes)},
		{Plugin: "three", Handler: effects.Handler{}},
		{Plugin: "four", Handler: lists.Handle(nil)},
		{Plugin: "five", Handler: handler(effects.NewSpec[int]("n"), effects.Timeout(-1), nil)},
		{Plugin: "six", Handler: handler(effects.NewSpec[int](""))},
	})
	require.ErrorIs(t, err, effects.ErrDuplicateHandler)
	require.ErrorIs(t, err, effects.ErrBadHandler)
	var de *effects.DuplicateHandlerError
	require.ErrorAs(t, err, &de)
	require.Equal(t, effects.DuplicateHandlerError{Effect: "note", First: "one", Second: "two"}, *de)
	for _, plugin := range []string{"one", "two", "three", "four", "five", "six"} {
		require.ErrorContains(t, err, `"`+plugin+`"`)
	}

	h := table(t, effects.Registered{Plugin: "b", Handler: handler(lists)}, effects.Registered{Plugin: "a", Handler: handler(notes)})
	var order []string
	for r := range h.All() {
		order = append(order, r.Handler.Name()+" by "+r.Plugin)
	}
	require.Equal(t, []string{"note by a", "tags by b"}, order)
	for range h.All() {
		break
	}
}

// Capability A8. An effect that cannot be delivered is refused before its commit, and the error says what to do.
func TestCheck(t *testing.T) {
	h := table(t, effects.Registered{Plugin: "a", Handler: handler(notes)})
	require.NoError(t, h.Check())
	require.NoError(t, h.Check(notes.New(note{"x"})))

	err := h.Check(notes.New(note{}), effects.NewSpec[int]("notes").New(1), effects.NewSpec[string]("note").New("x"), effects.Effect{})
	require.ErrorIs(t, err, effects.ErrUnknownEffect)
	require.ErrorIs(t, err, effects.ErrPayload)
	var ue *effects.UnknownEffectError
	require.ErrorAs(t, err, &ue)
	require.Equal(t, effects.UnknownEffectError{Name: "notes", Nearest: "note"}, *ue)
	require.ErrorContains(t, err, `did you mean "note"?`)
	require.ErrorContains(t, err, "payload string", "both types are named")

	var far *effects.UnknownEffectError
	require.ErrorAs(t, h.Check(effects.NewSpec[int]("metrics").New(1)), &far)
	require.Empty(t, far.Nearest, "a name that is nothing like it is not suggested")

	var none *effects.Handlers
	require.ErrorIs(t, none.Check(notes.New(note{})), effects.ErrUnknownEffect)
	for range none.All() {
		t.Fatal("a nil table has no handlers")
	}
}

// Capability B7. An effect can be stored with its commit and be made again from the store.
func TestRestore(t *testing.T) {
	h := table(t, effects.Registered{Plugin: "a", Handler: handler(notes)}, effects.Registered{Plugin: "a", Handler: handler(lists)})
	for _, e := range []effects.Effect{notes.New(note{"x"}), lists.New(tags{List: []string{"a"}})} {
		raw, err := e.JSON()
		require.NoError(t, err)
		back, err := h.Restore(e.Name(), raw)
		require.NoError(t, err)
		require.NoError(t, h.Check(back))
		require.Equal(t, e, back)
	}
	_, err := h.Restore("nope", nil)
	require.ErrorIs(t, err, effects.ErrUnknownEffect)
	_, err = h.Restore("note", []byte(`{"text":1}`))
	require.ErrorIs(t, err, effects.ErrPayload)
	var typeErr *json.UnmarshalTypeError
	require.True(t, errors.As(err, &typeErr), "the cause is kept")
	_, err = h.Restore("note", []byte(`{} {}`))
	require.ErrorIs(t, err, effects.ErrPayload)
}
