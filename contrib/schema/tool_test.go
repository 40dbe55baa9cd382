package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/contrib/schema"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// play has a model make the calls, all in one answer, and returns the results that it saw.
func play(t *testing.T, tool engine.Tool, plugins []engine.Plugin, args ...inference.JSON) []inference.ToolResult {
	t.Helper()
	var answers []enginetest.Answer
	for i, a := range args {
		answers = append(answers, enginetest.Call(fmt.Sprint(i), tool.Spec().Name, a))
	}
	model := enginetest.NewScript(answers[0].And(answers[1:]...), enginetest.Say("done"))
	config, _ := enginetest.Config(t, append(plugins, engine.NewPlugin("tools", func(r *engine.Registrar) error {
		r.Tool(tool)
		return nil
	}))...)
	config.Model = model
	res, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, res.Reason, res.Err)
	var results []inference.ToolResult
	for _, m := range model.Requests()[1].Messages {
		if m.Role == inference.RoleTool {
			results = append(results, m.Result)
		}
	}
	require.Len(t, results, len(args))
	return results
}

func editor(to ...inference.JSON) engine.Plugin {
	return engine.NewPlugin("editor", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			var n int
			if err := json.Unmarshal([]byte(pc.Call().ID), &n); err != nil || to[n] == "" || pc.Call().Args == to[n] {
				return gate.Abstain(), err
			}
			return gate.Edit(to[n]), nil
		}))
		return nil
	})
}

// bookings is a tool that keeps what it was called with.
func bookings(t *testing.T) (engine.Tool, *[]booking) {
	var got []booking
	tool, err := schema.Tool(inference.ToolSpec{Name: "book", Kind: "write"}, func(_ context.Context, b booking) (string, error) {
		got = append(got, b)
		return "ok", nil
	})
	require.NoError(t, err)
	return tool, &got
}

// What is wrong with arguments is told to the model, all of it, and nothing is called.
func TestFaultsAreTold(t *testing.T) {
	type stay struct {
		booking
		Guests []struct {
			Name string `json:"name"`
			Age  int    `json:"age" maximum:"150"`
		} `json:"guests,omitempty" maxItems:"2"`
		From  time.Time       `json:"from,omitzero"`
		Rooms map[string]int8 `json:"rooms,omitempty"`
		Seal  []byte          `json:"seal,omitempty"`
		Total uint64          `json:"total,omitempty"`
		Note  *string         `json:"note,omitempty" maxLength:"3"`
		Raw   json.RawMessage `json:"raw,omitempty"`
		Old   bool            `json:"old,omitempty"`
	}
	called := 0
	tool, err := schema.Tool(inference.ToolSpec{Name: "book"}, func(context.Context, stay) (string, error) {
		called++
		return "ok", nil
	})
	require.NoError(t, err)
	cases := []struct{ args, want string }{
		{``, `/city: is missing`},
		{`{}`, `/city: is missing`},
		{`null`, `it is null, not an object`},
		{`[]`, `it is an array, not an object`},
		{`"hunter2"`, `it is a string, not an object`},
		{`{"city":7}`, `/city: is a number, not a string, found 7`},
		{`{"city":null,"rooms":null,"old":1}`, `/city: is null, not a string; /old: is a number, not a boolean, found 1; /rooms: is null, not an object`},
		{`{"city":"x","nights":31}`, `/nights: is more than 30, found 31`},
		{`{"city":"x","nights":1.5,"board":"hunter2"}`, `/board: is not one of "none", "half", "full", found a string of 7 characters; /nights: is a number, not an integer, found 1.5`},
		{`{"city":"x","City":"y","nigths":1}`, `/City: is not known; /nigths: is not known`},
		{`{"city":"x","city":"hunter2"}`, `field "city" is there twice, again at 1:13; keep one`},
		{`{"city":"x","raw":{"a":1,"\u0061":2}}`, `field "a" is there twice, again at 1:26; keep one`},
		{`{"city":"x","nights":1.0}`, `/nights: want a whole number of 64 bits, got 1.0`},
		{`{"city":"x","guests":[{"name":"a","age":1},{"name":2}]}`, `/guests/1/age: is missing; /guests/1/name: is a number, not a string, found 2`},
		{`{"city":"x","guests":[{"name":"a","age":1e1},{"name":"b","age":2.0}]}`, `/guests/0/age: want a whole number of 64 bits, got 1e1; /guests/1/age: want a whole number of 64 bits, got 2.0`},
		{`{"city":"x","guests":[{"name":"a","age":151},{"name":"b","age":1},7]}`,
			`/guests: has more than 2 items, found 3 items; /guests/0/age: is more than 150, found 151; /guests/2: is a number, not an object, found 7`},
		{`{"city":"x","from":"tomorrow"}`, `/from: is not of the format "date-time", found a string of 8 characters`},
		{`{"city":"x","rooms":{"a/b~c":1,"d e":128}}`, `/rooms/d e: is more than 127, found 128`},
		{`{"city":"x","rooms":{"a/b~c":1.0}}`, `/rooms/a~1b~0c: want a whole number of 8 bits, got 1.0`},
		{`{"city":"x","guests":[{},{"a/b":1e999999}]}`, `/guests/1/a~1b: has an exponent beyond 400, found 1e999999`},
		{`{"city":"x","nights":1E-99999999999999999999}`, `/nights: has an exponent beyond 400, found 1E-99999999999999999999`},
		{`{"city":"x","nights":1e400}`, `/nights: is more than 30, found 1e400`},
		{`{"city":"x","seal":"?"}`, `/seal: illegal base64 data at input byte 0`},
		{`{"city":"x","total":18446744073709551616}`, `/total: want a whole number of 0 or more and 64 bits, got 18446744073709551616`},
		{`{"city":"x","total":-1,"note":"hunter2"}`, `/note: is longer than 3 characters, found a string of 7 characters; /total: is less than 0, found -1`},
		{"{\"city\":\"\xff\",\"city\":\"x\"}", `they are not JSON in UTF-8`},
		{`{"b1":1,"b2":1,"b3":1,"b4":1,"b5":1,"b6":1,"b7":1,"b8":1,"b9":1}`, `/b1: is not known; /b2: is not known; /b3: is not known; /b4: is not known; /b5: is not known; /b6: is not known; /b7: is not known; /b8: is not known; and 2 more`},
	}
	var args []inference.JSON
	for _, c := range cases {
		args = append(args, inference.JSON(c.args))
	}
	for i, res := range play(t, tool, nil, args...) {
		require.Equal(t, inference.OutcomeError, res.Outcome, cases[i].args)
		require.Equal(t, "arguments of book: "+cases[i].want, res.Content, cases[i].args)
		require.NotContains(t, res.Content, "hunter2")
	}
	require.Zero(t, called)

	err = tool.(engine.Validator).Validate(`{"nights":0}`)
	var fault *schema.ArgumentError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, []jsonschema.Fault{{Pointer: "/city", Reason: "is missing"}, {Pointer: "/nights", Reason: "is less than 1, found 0"}}, fault.Faults)
	require.ErrorContains(t, tool.(engine.Validator).Validate(`{"city":`), "not JSON")
	err = tool.(engine.Validator).Validate(inference.JSON(`{"city":"` + strings.Repeat("x", 1<<20) + `"}`))
	require.EqualError(t, err, "arguments of book: they have 1048587 bytes; the limit is 1048576")
	long := strings.Repeat("x", 1000)
	err = tool.(engine.Validator).Validate(inference.JSON(`{"city":"x","raw":{"` + long + `":1,"` + long + `":2}}`))
	require.EqualError(t, err, `arguments of book: field "`+long[:152]+"…")
}

type fussy struct{}

func (fussy) UnmarshalText(text []byte) error { return fmt.Errorf("cannot read\n%s", text) }

// What a type's own method says is told in one short line.
func TestOwnMethodRefuses(t *testing.T) {
	tool, err := schema.Tool(inference.ToolSpec{Name: "own"}, func(context.Context, map[string][]fussy) (string, error) { return "", nil })
	require.NoError(t, err)
	for _, r := range play(t, tool, nil, `{"a b":["x"]}`, inference.JSON(`{"a b":["`+strings.Repeat("x", 1000)+`"]}`)) {
		require.Equal(t, inference.OutcomeError, r.Outcome)
		require.True(t, strings.HasPrefix(r.Content, "arguments of own: /a b/0: cannot read\uFFFDx"), r.Content)
		require.Less(t, len(r.Content), 250)
	}
}

// Call checks too, for those who call a tool without an engine.
func TestCallChecks(t *testing.T) {
	tool, got := bookings(t)
	call := func(args inference.JSON) (engine.Output, error) {
		return tool.Call(t.Context(), phase.NewContext(phase.Frame{Call: &phase.CallFrame{Call: inference.ToolCall{Args: args}}}))
	}
	_, err := call(`{"nights":1}`)
	require.EqualError(t, err, "arguments of book: /city: is missing")
	require.Empty(t, *got)
	out, err := call(`{"city":"x"}`)
	require.NoError(t, err)
	require.Equal(t, engine.Text("ok"), out)
	require.Equal(t, []booking{{City: "x", Nights: 1}}, *got)
}

// Capability M2. Arguments that a gate has written are checked like those of the model.
func TestEditedArgumentsAreChecked(t *testing.T) {
	tool, got := bookings(t)
	results := play(t, tool, []engine.Plugin{editor(`{"city":"y","nights":0}`, `{"city":"y","city":"z"}`, `{"CITY":"y"}`, `{"city":"y","nights":2}`, "")},
		`{"city":"a"}`, `{"city":"b"}`, `{"city":"c"}`, `{"city":"d"}`, `{"city":"e"}`)
	for i, want := range []string{
		`/nights: is less than 1, found 0`, `field "city" is there twice`, `/CITY: is not known; /city: is missing`,
	} {
		require.NotEqual(t, inference.OutcomeOK, results[i].Outcome)
		require.Contains(t, results[i].Content, "editor changed the arguments to ones that the tool refuses: arguments of book: "+want)
	}
	require.Equal(t, inference.OutcomeOK, results[3].Outcome)
	require.Equal(t, []booking{{City: "y", Nights: 2}, {City: "e", Nights: 1}}, *got)
}

// A default takes the place of what is not there, at any depth, but of nothing else; and
// the gates see what the model wrote.
func TestDefaults(t *testing.T) {
	type item struct {
		Size  int      `json:"size" default:"3"`
		Words []string `json:"words" default:"[\"a\",\"b\"]"`
	}
	type order struct {
		List  []item          `json:"list,omitempty"`
		Named map[string]item `json:"named,omitempty"`
		ByNo  map[int]*item   `json:"by_no,omitempty"`
		One   *item           `json:"one" default:"{\"size\":9}"`
		Big   int64           `json:"big" default:"9007199254740993"`
		Label *string         `json:"label" default:"none"`
		Chain *recursive      `json:"chain,omitempty"`
		Raw   json.RawMessage `json:"raw,omitempty"`
	}
	var got []order
	tool, err := schema.Tool(inference.ToolSpec{Name: "order"}, func(_ context.Context, o order) (struct{}, error) {
		got = append(got, o)
		return struct{}{}, nil
	})
	require.NoError(t, err)
	var seen []inference.JSON
	watch := engine.NewPlugin("watch", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			seen = append(seen, pc.Call().Args)
			return gate.Abstain(), nil
		}))
		return nil
	})
	all := inference.JSON(`{"list":[{"size":0},{"words":[]}],"named":{"x":{}},"by_no":{"1":{},"2":null},"one":null,"big":1,"label":null,` +
		`"chain":{"value":2,"next":{"next":null}},"raw":{"size":12345678901234567890}}`)
	for _, res := range play(t, tool, []engine.Plugin{watch}, `{}`, all) {
		require.Equal(t, inference.OutcomeOK, res.Outcome, res.Content)
		require.Equal(t, "{}", res.Content)
	}
	ab, none := []string{"a", "b"}, "none"
	require.Equal(t, []order{
		{One: &item{9, ab}, Big: 9007199254740993, Label: &none},
		{
			List:  []item{{Size: 0, Words: ab}, {Size: 3, Words: []string{}}},
			Named: map[string]item{"x": {3, ab}}, ByNo: map[int]*item{1: {3, ab}, 2: nil},
			Big: 1, Chain: &recursive{Value: 2, Next: &recursive{Value: 7}}, Raw: json.RawMessage(`{"size":12345678901234567890}`),
		},
	}, got)
	require.Equal(t, []inference.JSON{`{}`, all}, seen)
}

type degrees float64

func (d degrees) String() string { return fmt.Sprintf("%.1f degrees", float64(d)) }

type forecast struct {
	Text string `json:"text"`
	Max  int    `json:"max"`
}

func result[Out any](t *testing.T, out Out, err error) inference.ToolResult {
	t.Helper()
	tool, made := schema.Tool(inference.ToolSpec{Name: "out"}, func(context.Context, empty) (Out, error) { return out, err })
	require.NoError(t, made)
	res := play(t, tool, nil, `{}`)[0]
	require.Equal(t, "out", res.Name)
	res.Name, res.CallID = "", ""
	return res
}

// What a function returns is told by its type.
func TestResults(t *testing.T) {
	ok := func(content string, details inference.JSON) inference.ToolResult {
		return inference.ToolResult{Content: content, Details: details, Outcome: inference.OutcomeOK}
	}
	require.Equal(t, ok("a < b", ""), result(t, "a < b", nil))
	require.Equal(t, ok(`{"text":"a < b","max":3}`, `{"text":"a < b","max":3}`), result(t, forecast{"a < b", 3}, nil))
	require.Equal(t, ok(`null`, `null`), result[*forecast](t, nil, nil))
	require.Equal(t, ok("21.5 degrees", "21.5"), result(t, degrees(21.5), nil))
	require.Equal(t, ok(`["a"]`, `["a"]`), result(t, []string{"a"}, nil))
	require.Equal(t, ok("text", `{"a":1}`), result(t, engine.Output{Content: "text", Details: `{"a":1}`}, nil))
	require.Equal(t, ok("dynamic", ""), result[any](t, "dynamic", nil))
	require.Equal(t, "error: no bed", result(t, forecast{}, errors.New("no bed")).Content)
	require.Equal(t, inference.OutcomeError, result[any](t, make(chan int), nil).Outcome)

	_, err := schema.Tool(inference.ToolSpec{Name: "x"}, func(context.Context, empty) (out []struct{ C map[string]func() }, err error) { return out, err })
	require.EqualError(t, err, "schema: []struct { C map[string]func() }[].C[]: a value of type func() cannot be written as JSON")
	_, err = schema.Tool(inference.ToolSpec{Name: "x"}, func(context.Context, empty) (out recursive, err error) { return out, err })
	require.NoError(t, err)
	_, err = schema.Tool(inference.ToolSpec{Name: "x", Schema: `{}`}, func(context.Context, empty) (string, error) { return "", nil })
	require.EqualError(t, err, "schema: tool x has a schema already; leave it empty, it is derived from the arguments")
	_, err = schema.Tool(inference.ToolSpec{Name: "x"}, func(context.Context, chan int) (string, error) { return "", nil })
	require.ErrorContains(t, err, "schema: chan int: ")
}

var booked = state.NewCell("schema_test.booked", state.Options[string]{})

// A function that wants to can see the call and have commands committed.
func TestContextTool(t *testing.T) {
	tool, err := schema.ContextTool(inference.ToolSpec{Name: "book"}, func(_ context.Context, pc *phase.Context, b booking) (engine.Output, error) {
		out := engine.Text(booked.Get(pc.Snapshot()) + pc.Call().ID)
		out.Command.Update(booked.With(b.City))
		return out, nil
	})
	require.NoError(t, err)
	keys := engine.NewPlugin("keys", func(r *engine.Registrar) error { r.Key(booked); return nil })
	results := play(t, tool, []engine.Plugin{keys}, `{"city":"x"}`, `{"city":"y"}`)
	require.Equal(t, "0", results[0].Content)
	require.Equal(t, "x1", results[1].Content)
}

// One tool serves many calls at once.
func TestConcurrentCalls(t *testing.T) {
	tool, err := schema.Tool(inference.ToolSpec{Name: "book"}, func(_ context.Context, b booking) (string, error) { return b.City, nil })
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				args := inference.JSON(fmt.Sprintf(`{"city":"%d-%d"}`, g, i))
				out, err := tool.Call(t.Context(), phase.NewContext(phase.Frame{Call: &phase.CallFrame{Call: inference.ToolCall{Args: args}}}))
				if err != nil || out.Content != fmt.Sprintf("%d-%d", g, i) {
					errs <- fmt.Errorf("%v: %w", out, err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
}
