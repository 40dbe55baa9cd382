package engine_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/stretchr/testify/require"
)

// declaredEventTypes reads from the source what Type methods return.
func declaredEventTypes(t *testing.T) []string {
	file, err := parser.ParseFile(token.NewFileSet(), "event_type.go", nil, 0)
	require.NoError(t, err)
	var types []string
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "Type" {
			continue
		}
		text := fn.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value
		name, err := strconv.Unquote(text)
		require.NoError(t, err)
		types = append(types, name)
	}
	slices.Sort(types)
	return types
}

// randomEvent returns an event of the type with every field set at random.
func randomEvent(t *testing.T, rng *rand.Rand, typ string) engine.Event {
	zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, typ))
	require.NoError(t, err)
	v := reflect.New(reflect.TypeOf(zero)).Elem()
	randomize(t, rng, v)
	return v.Interface().(engine.Event)
}

func randomize(t *testing.T, rng *rand.Rand, v reflect.Value) {
	texts := []string{"", "plain", "<&> \"quoted\" \\ back", "line\nbreak\u2028\t", "ünï¢ode 🎈", "\x00\x1f"}
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(rng.Int64N(4e9), rng.Int64N(1e9)).UTC()
		return
	case *phase.Phase:
		*at = phase.Phase(rng.IntN(phase.Count + 1))
		return
	case *gate.Kind:
		*at = gate.Kind(rng.IntN(int(gate.KindBlock) + 1))
		return
	case *effects.ID:
		*at = effects.ID{Run: "run/with/slashes", Revision: rng.Uint64(), Index: rng.IntN(9)}
		return
	case *json.RawMessage:
		*at = json.RawMessage(`{"a":[1,2.50,"x"]}`)
		return
	case *state.Scope:
		*at = state.Scope(rng.IntN(2))
		return
	case *inference.JSON:
		*at = []inference.JSON{"", `{"a":[1,2.50,"x"],"b":{"c":null}}`, `"text"`, "12345678901234567890", "false"}[rng.IntN(5)]
		return
	case *inference.ToolCall:
		*at = inference.ToolCall{ID: "c", Name: texts[rng.IntN(5)], Args: []inference.JSON{"", `{"n":1}`, "{not json <b>"}[rng.IntN(3)]}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[rng.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(rng.Int64())
	case reflect.Uint64:
		v.SetUint(rng.Uint64())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rng.IntN(2), 2))
		for i := range v.Len() {
			randomize(t, rng, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		randomize(t, rng, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				randomize(t, rng, v.Field(i))
			}
		}
	default:
		require.FailNow(t, "an event has a field of a new kind", "%s", v.Type())
	}
}

func TestEveryEventTypeIsReadAndWritten(t *testing.T) {
	require.Equal(t, declaredEventTypes(t), engine.EventTypes())
	require.NotEmpty(t, engine.EventTypes())
	rng := rand.New(rand.NewPCG(1, 1))
	for _, typ := range engine.EventTypes() {
		t.Run(typ, func(t *testing.T) {
			for range 100 {
				want := randomEvent(t, rng, typ)
				line, err := engine.MarshalEvent(want)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(string(line), `{"type":"`+typ+`","seq":`), "%s", line)
				require.NotContains(t, string(line), "\n")
				got, err := engine.UnmarshalEvent(line)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		})
	}
}

func TestEventLinesAreReadable(t *testing.T) {
	line, err := engine.MarshalEvent(engine.Warning{
		Header:  engine.Header{Seq: 3, Time: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC), Run: "r", Thread: "t", Agent: "a", Step: 2, Phase: phase.StepEnd, Revision: 9},
		Message: "a < b && c",
	})
	require.NoError(t, err)
	require.Equal(t, `{"type":"warning","seq":3,"time":"2030-01-02T03:04:05.000006Z","run":"r","thread":"t","agent":"a","step":2,"phase":"step_end","revision":9,"message":"a < b && c"}`, string(line))
}

func TestBadEventsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    "EOF",
		`null`:                                "starts with its type",
		`[]`:                                  "starts with its type",
		`{}`:                                  "starts with its type",
		`{"seq":1,"type":"warning"}`:          "starts with its type",
		`{"type":7}`:                          "must be a string",
		`{"type":"warnin"}`:                   `nearest known: "warning"`,
		`{"type":"zebra"}`:                    `bad event of type "zebra": no event has this type`,
		`{"type":"warning"`:                   "neither a comma",
		`{"type":"warning",}`:                 "a comma without a member",
		`{"type":"warning" "seq":1}`:          "bad event",
		`{"type":"warning","seq":1,}`:         "invalid character",
		`{"type":"warning","seq":"x"}`:        "cannot unmarshal string",
		`{"type":"warning","color":1}`:        `unknown field "color"`,
		`{"type":"warning","type":"warning"}`: `unknown field "type"`,
		`{"type":"warning"}{}`:                "text after the object",
		`{"type":"warning"}}`:                 "text after the object",
		`{"type":"warning","phase":"lunch"}`:  "lunch",
		`{"type":"gate_voted","decision":"maybe"}`:    "maybe",
		`{"type":"effect_finished","id":"x"}`:         "run/revision/index",
		`{"type":"committed","writes":[{"who":"x"}]}`: `unknown field "who"`,
	} {
		_, err := engine.UnmarshalEvent([]byte(text))
		require.ErrorIs(t, err, engine.ErrBadEvent, text)
		require.ErrorContains(t, err, want, text)
	}
	e, err := engine.UnmarshalEvent([]byte(" {\n \"type\" : \"continued\" ,\n \"count\" : 2 } \n"))
	require.NoError(t, err)
	require.Equal(t, engine.Continued{Count: 2}, e)

	_, err = engine.MarshalEvent(nil)
	require.ErrorIs(t, err, engine.ErrBadEvent)
	_, err = engine.MarshalEvent(engine.CallEdited{After: "{not json"})
	require.ErrorIs(t, err, engine.ErrBadEvent)
	require.ErrorContains(t, err, "call_edited")
	_, err = engine.MarshalEvent(engine.StepStarted{Header: engine.Header{Phase: 99}})
	require.ErrorIs(t, err, phase.ErrUnknownPhase)
}

func FuzzUnmarshalEvent(f *testing.F) {
	for _, typ := range engine.EventTypes() {
		f.Add(fmt.Appendf(nil, `{"type":%q,"seq":1,"time":"2030-01-02T03:04:05Z","phase":"run_end"}`, typ))
	}
	f.Add([]byte(`{"type":"tool_started","call":{"id":"a","name":"<b>","malformed_args":"{"}}`))
	f.Add([]byte(`{"type":"run_suspended","tickets":[{"id":"1","params":{"a": 1}}]}`))
	f.Add([]byte(`{"type":"effect_finished","id":"r/1/2"} x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := engine.UnmarshalEvent(text)
		if err != nil {
			require.ErrorIs(t, err, engine.ErrBadEvent)
			return
		}
		if sent, is := e.(engine.EffectFinished); is && sent.ID.Run == "" {
			return // no effect has such an id
		}
		first, err := engine.MarshalEvent(e)
		require.NoError(t, err)
		again, err := engine.UnmarshalEvent(first)
		require.NoError(t, err)
		second, err := engine.MarshalEvent(again)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}
