package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// lineChecker checks lines against docs/trace.schema.json.
func lineChecker(t *testing.T) func(line string) error {
	t.Helper()
	schema, err := os.ReadFile("../../../../docs/trace.schema.json")
	require.NoError(t, err)
	c := jsonschema.New(jsonschema.Options{MaxSchema: 1 << 20, Timeout: time.Minute})
	return func(line string) error { return c.CheckSchema(inference.JSON(schema), inference.JSON(line)) }
}

// fitsSchema checks a whole trace.
func fitsSchema(t *testing.T, text string) {
	t.Helper()
	require.True(t, strings.HasPrefix(text, `{"type":"trace","version":1`))
	check, n := lineChecker(t), 0
	for line := range strings.Lines(text) {
		require.NoError(t, check(line), line)
		n++
	}
	require.Greater(t, n, 5)
}

// Capability H5. Every line of the traces that runs of the examples write is as the
// schema says, when they run through, wait, go on, and fail.
func TestTracesOfRunsFitTheSchema(t *testing.T) {
	dir := garden(t)
	fails := specFile(t, "id: x\nmodel_id: script:script.json\n", `{"answers": [{"error": "the model is away"}]}`)
	store := filepath.Join(t.TempDir(), "store")
	types := map[string]bool{}
	for i, run := range []struct {
		in   string
		code int
		args []string
	}{
		{"", cli.ExitOK, []string{"run", "--yes", "--dir", dir}},
		{"n\n", cli.ExitOK, []string{"run", agent, "--dir", garden(t)}},
		{"", cli.ExitWaiting, []string{"run", "--pause", "--dir", dir, "--store", store}},
		{"", cli.ExitOK, []string{"approve", reportTicket, "--store", store}},
		{"", cli.ExitError, []string{"run", fails, "--dir", dir}},
	} {
		file := filepath.Join(t.TempDir(), "trace.jsonl")
		got := fixpoint(t, run.in, append(run.args, "--trace", file)...)
		require.Equal(t, run.code, got.code, "%d: %s%s", i, got.out, got.err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		fitsSchema(t, string(text))
		for _, e := range events(t, string(text)) {
			types[e.Type()] = true
		}
	}
	require.Greater(t, len(types), 20, "the runs have most types of events")
}

// Events of every type and with whatever is in them fit the schema, and lines that no
// event is written as do not.
func TestEventsFitTheSchema(t *testing.T) {
	check := lineChecker(t)
	require.NoError(t, check(`{"type":"trace","version":1}`))
	require.NoError(t, check(`{"type":"trace","version":1,"module":"v1.2.3","time":"2030-01-02T03:04:05Z"}`))
	require.NoError(t, check(`{"type":"dropped","count":3}`))
	for _, broken := range []string{
		`{"type":"trace","version":2}`, `{"type":"trace"}`, `{"type":"dropped","count":0}`, `{"type":"dropped"}`, `{"type":"zebra"}`, `{}`, `[]`, `"warning"`,
	} {
		require.ErrorIs(t, check(broken), jsonschema.ErrValue, broken)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, typ := range engine.EventTypes() {
		for i := range 10 {
			zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, typ))
			require.NoError(t, err)
			v := reflect.New(reflect.TypeOf(zero)).Elem()
			anything(t, rng, v)
			for _, rules := range []trace.Rules{{}, {MaxValue: 64, MaxElement: 16, Keys: []string{"p*"}}} {
				line, err := engine.MarshalEvent(trace.Detailed(v.Interface().(engine.Event), rules))
				require.NoError(t, err)
				require.NoError(t, check(string(line)), "%s", line)
				if i == 0 {
					breakAll(t, check, line)
				}
			}
		}
	}
}

// breakAll takes away, renames and adds members of a line.
func breakAll(t *testing.T, check func(string) error, line []byte) {
	t.Helper()
	var whole map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(line, &whole))
	refused := func(change func(map[string]json.RawMessage)) error {
		broken := map[string]json.RawMessage{}
		for name, value := range whole {
			broken[name] = value
		}
		change(broken)
		text, err := json.Marshal(broken)
		require.NoError(t, err)
		return check(string(text))
	}
	for _, always := range []string{"type", "seq", "time", "run", "thread", "agent", "step", "revision"} {
		require.ErrorIs(t, refused(func(m map[string]json.RawMessage) { delete(m, always) }), jsonschema.ErrValue, always)
		require.ErrorIs(t, refused(func(m map[string]json.RawMessage) { m[always] = json.RawMessage("[1]") }), jsonschema.ErrValue, always)
	}
	require.ErrorIs(t, refused(func(m map[string]json.RawMessage) { m["new"] = json.RawMessage("1") }), jsonschema.ErrValue)
}

// anything sets every field at random.
func anything(t *testing.T, rng *rand.Rand, v reflect.Value) {
	texts := []string{"", "plain", "password=hunter22", "line\nbreak\u2028", `{"token":"x"}`, strings.Repeat("long ", 40)}
	values := []inference.JSON{"", `{"a":[1,2.50,"x"],"password":{"c":null}}`, `"text"`, "12345678901234567890", "false",
		inference.JSON(`["` + strings.Repeat("long ", 40) + `",1]`)}
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
	case *state.Scope:
		*at = state.Scope(rng.IntN(2))
		return
	case *effects.ID:
		*at = effects.ID{Run: "run/with/slashes", Revision: rng.Uint64N(1 << 50), Index: rng.IntN(9)}
		return
	case *json.RawMessage:
		*at = json.RawMessage(values[1+rng.IntN(len(values)-1)])
		return
	case *inference.JSON:
		*at = values[rng.IntN(len(values))]
		return
	case *state.Update, **state.Snapshot:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[rng.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(rng.Int64N(1 << 50))
	case reflect.Uint64:
		v.SetUint(rng.Uint64N(1 << 50))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rng.IntN(3), 3))
		for i := range v.Len() {
			anything(t, rng, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		anything(t, rng, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			anything(t, rng, v.Field(i))
		}
	default:
		require.FailNow(t, "an event has a field of a new kind", "%s", v.Type())
	}
}
