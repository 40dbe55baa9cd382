package phase_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

type plain struct {
	N int    `json:"n"`
	S string `json:"s"`
}

type nested struct {
	List []int          `json:"list"`
	Map  map[string]int `json:"map"`
}

// handled runs the handler of s on a and returns the payload that it got.
func handled[P any](t *testing.T, s phase.ActionSpec[P], a phase.Action) (got P, err error) {
	t.Helper()
	h := s.Handle(func(_ context.Context, _ *phase.Context, p P) (phase.Command, error) {
		got = p
		return phase.Command{}, nil
	})
	_, err = h.Handle(t.Context(), phase.NewContext(phase.Frame{}), a)
	return got, err
}

// Capability A6. An action carries its payload to its handler, also through JSON,
// for payloads with and without references.
func TestActionPayloadArrives(t *testing.T) {
	p := phase.NewAction[plain]("plain", phase.StepEnd)
	n := phase.NewAction[nested]("nested", phase.RunEnd)
	wantPlain, wantNested := plain{3, "x"}, nested{[]int{1, 2}, map[string]int{"a": 1}}
	gotPlain, err := handled(t, p, p.New(wantPlain))
	require.NoError(t, err)
	require.Equal(t, wantPlain, gotPlain)
	gotNested, err := handled(t, n, n.New(wantNested))
	require.NoError(t, err)
	require.Equal(t, wantNested, gotNested)

	text, err := json.Marshal([]phase.Action{p.New(wantPlain), n.New(wantNested)})
	require.NoError(t, err)
	var back []phase.Action
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, "plain", back[0].Name())
	require.Equal(t, phase.StepEnd, back[0].Phase())
	gotPlain, err = handled(t, p, back[0])
	require.NoError(t, err)
	require.Equal(t, wantPlain, gotPlain)
	gotNested, err = handled(t, n, back[1])
	require.NoError(t, err)
	require.Equal(t, wantNested, gotNested)
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
}

// Capability A6. A payload with references is frozen when the action is made, and
// each call of the handler gets its own copy.
func TestActionPayloadIsFrozen(t *testing.T) {
	s := phase.NewAction[nested]("nested", phase.StepEnd)
	args := nested{List: []int{1}, Map: map[string]int{"a": 1}}
	a := s.New(args)
	args.List[0], args.Map["a"] = 9, 9
	for range 2 {
		got, err := handled(t, s, a)
		require.NoError(t, err)
		require.Equal(t, nested{[]int{1}, map[string]int{"a": 1}}, got)
		got.List[0], got.Map["a"] = 7, 7
	}
}

// Capability A6. A payload of an interface type arrives as what JSON makes of it, and
// never as what an action keeps it in.
func TestActionPayloadOfAnyType(t *testing.T) {
	s := phase.NewAction[any]("any", phase.StepEnd)
	got, err := handled(t, s, s.New(map[string]int{"a": 1}))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": 1.0}, got)
	_, err = handled(t, phase.NewAction[error]("error", phase.StepEnd), phase.NewAction[chan int]("chan", phase.StepEnd).New(nil))
	require.ErrorIs(t, err, phase.ErrPayload)
}

// Capability A6. A payload that cannot be kept makes an action that says so and is
// refused; it never panics.
func TestActionPayloadThatCannotBeKept(t *testing.T) {
	s := phase.NewAction[chan int]("chan", phase.StepEnd)
	a := s.New(make(chan int))
	require.ErrorIs(t, a.Err(), phase.ErrPayload)
	require.ErrorContains(t, a.Err(), "chan")
	h := s.Handle(func(context.Context, *phase.Context, chan int) (phase.Command, error) { return phase.Command{}, nil })
	require.ErrorIs(t, h.Accepts(a), phase.ErrPayload)
	// It can be saved all the same, with the reason in place of the payload.
	text, err := json.Marshal(a)
	require.NoError(t, err)
	var back phase.Action
	require.NoError(t, json.Unmarshal(text, &back))
	require.ErrorIs(t, back.Err(), phase.ErrPayload)
	require.ErrorContains(t, back.Err(), "chan")
	require.ErrorIs(t, h.Accepts(back), phase.ErrPayload)

	f := phase.NewAction[float64]("float", phase.StepEnd)
	_, err = f.New(math.NaN()).JSON()
	require.ErrorIs(t, err, phase.ErrPayload)
}

type panicky struct{ P *int }

func (panicky) MarshalJSON() ([]byte, error) { panic("marshal") }

// Capability A6. A payload whose encoding panics is a bad payload, not a panic of
// whoever made the action.
func TestActionPayloadThatPanics(t *testing.T) {
	var a phase.Action
	require.NotPanics(t, func() { a = phase.NewAction[panicky]("p", phase.StepEnd).New(panicky{}) })
	require.ErrorIs(t, a.Err(), phase.ErrPayload)
	require.ErrorContains(t, a.Err(), "marshal")
}

// Capability A6. A handler accepts actions of its own spec, fresh or read back, and
// no other.
func TestActionAccepts(t *testing.T) {
	s := phase.NewAction[int]("same", phase.StepEnd)
	h := s.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) { return phase.Command{}, nil })
	require.NoError(t, h.Accepts(s.New(1)))
	var back phase.Action
	require.NoError(t, json.Unmarshal([]byte(`{"name":"same","phase":"step_end","payload":1}`), &back))
	require.NoError(t, h.Accepts(back))
	for name, a := range map[string]phase.Action{
		"zero":          {},
		"other name":    phase.NewAction[int]("other", phase.StepEnd).New(1),
		"other phase":   phase.NewAction[int]("same", phase.RunEnd).New(1),
		"other payload": phase.NewAction[string]("same", phase.StepEnd).New("x"),
		"twin":          phase.NewAction[int]("same", phase.StepEnd).New(1),
	} {
		require.ErrorIs(t, h.Accepts(a), phase.ErrUnknownAction, name)
	}
	require.ErrorIs(t, phase.ActionHandler{}.Accepts(s.New(1)), phase.ErrUnknownAction)
}

// Capability A6. Text that is no action, or whose payload is of another type, is an
// error of its own kind and not a silent zero.
func TestActionThatCannotBeRead(t *testing.T) {
	var a phase.Action
	for _, text := range []string{`1`, `{"name":1}`, `{"name":"x","phase":"lunch"}`} {
		require.ErrorIs(t, a.UnmarshalJSON([]byte(text)), phase.ErrPayload, text)
	}
	s := phase.NewAction[int]("n", phase.StepEnd)
	require.NoError(t, json.Unmarshal([]byte(`{"name":"n","phase":"step_end","payload":"text"}`), &a))
	_, err := handled(t, s, a)
	require.ErrorIs(t, err, phase.ErrPayload)
}

// Capability A5. A handler carries its kind, its limit and its promise.
func TestActionHandlerProperties(t *testing.T) {
	s := phase.NewAction[int]("n", phase.StepEnd)
	nothing := func(context.Context, *phase.Context, int) (phase.Command, error) {
		return phase.Command{}, errors.New("x")
	}
	h := s.Handle(nothing)
	require.Equal(t, "n", h.Name())
	require.Equal(t, phase.StepEnd, h.Phase())
	require.False(t, h.ReplaySafe())
	require.Zero(t, h.Deadline())
	require.Equal(t, time.Second, h.Timeout(time.Second).Deadline())
	require.Zero(t, h.Deadline(), "Timeout changes a copy")
	safe := s.ReplaySafe()
	require.True(t, safe.Handle(nothing).ReplaySafe())
	require.False(t, s.Handle(nothing).ReplaySafe(), "ReplaySafe changes a copy")
	require.Equal(t, s.Name(), safe.Name())
	require.Equal(t, s.Phase(), safe.Phase())
	var zero phase.ActionHandler
	require.Empty(t, zero.Name())
	require.Zero(t, zero.Phase())
	require.False(t, zero.ReplaySafe())
}

// FuzzActionJSON: an action that can be read writes what reads back the same, and
// reading never panics.
func FuzzActionJSON(f *testing.F) {
	f.Add([]byte(`{"name":"n","phase":"step_end","payload":{"n":1,"s":"x"}}`))
	f.Add([]byte(`{"name":"","phase":"","payload":null}`))
	f.Add([]byte(`{"payload":[[[]]]}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a phase.Action
		if json.Unmarshal(text, &a) != nil {
			return
		}
		out, err := json.Marshal(a)
		require.NoError(t, err)
		var b phase.Action
		require.NoError(t, json.Unmarshal(out, &b))
		again, err := json.Marshal(b)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
		require.Equal(t, a.Name(), b.Name())
		require.Equal(t, a.Phase(), b.Phase())
	})
}

// Capability A15. An action is made to be kept in state: its type is comparable by
// what it says and can be carried by a table.
func TestActionInATable(t *testing.T) {
	s := phase.NewAction[nested]("nested", phase.StepEnd)
	table := state.NewTable[int]("t", state.Options[phase.Action]{Shared: true})
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{table}})
	require.NoError(t, err)
	_, err = store.Commit(state.Batch{Owner: "x", Updates: []state.Update{table.Put(1, s.New(nested{List: []int{4}}))}})
	require.NoError(t, err)
	dump, err := store.Snapshot().Export()
	require.NoError(t, err)
	other, err := state.NewStore(state.Config{Keys: []state.AnyKey{table}})
	require.NoError(t, err)
	res, err := other.Import(dump, state.RefuseUnknown)
	require.NoError(t, err)
	a, ok := table.Get(res.Snapshot, 1)
	require.True(t, ok)
	got, err := handled(t, s, a)
	require.NoError(t, err)
	require.Equal(t, []int{4}, got.List)
}
