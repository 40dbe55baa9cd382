package inference_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

// randomOverride makes an override from the bits of seed, so that the fuzzer can search them.
func randomOverride(seed uint64) inference.Override {
	r := rand.New(rand.NewPCG(seed, 1))
	var o inference.Override
	one := func(f inference.Field, set func()) {
		switch r.IntN(4) {
		case 0:
			set()
		case 1:
			o = o.Without(f)
		case 2:
			o = o.Without(f)
			set()
		}
	}
	one(inference.FieldUpstreamModel, func() { o.UpstreamModel = inference.Some(string(rune('a' + r.IntN(3)))) })
	one(inference.FieldTemperature, func() { o.Temperature = inference.Some(float64(r.IntN(2))) })
	one(inference.FieldMaxTokens, func() { o.MaxTokens = inference.Some(r.IntN(3)) })
	one(inference.FieldTopP, func() { o.TopP = inference.Some(float64(r.IntN(2))) })
	one(inference.FieldReasoningEffort, func() { o.ReasoningEffort = inference.Some(inference.EffortHigh) })
	for _, name := range []string{"", "x", "y"} {
		one(inference.ExtraField(name), func() { o.Extra = o.Extra.With(name, inference.JSON("123"[r.IntN(3):][:1])) })
	}
	return o
}

// state lists per field what an override says: its value, or "dropped". It is the model Merge is checked against.
func state(o inference.Override) map[inference.Field]string {
	m := map[inference.Field]string{}
	for f := range o.Dropped() {
		m[f] = "dropped"
	}
	for f, v := range o.Fields() {
		m[f] = string(v)
	}
	return m
}

// Capability A9. Overrides merge per field, the last writer wins, unset erases nothing, zero is a value.
// Fault B39. Temperature 0 is a wish.
func TestMergeIsPerField(t *testing.T) {
	first := inference.Override{Temperature: inference.Some(0.7), MaxTokens: inference.Some(100), Extra: inference.Extra{}.With("seed", "1").With("user", `"u"`)}
	second := inference.Override{Temperature: inference.Some(0.0), UpstreamModel: inference.Some("big"), Extra: inference.Extra{}.With("seed", "2")}

	got := first.Merge(second)
	require.Equal(t, map[inference.Field]string{
		"temperature": "0", "max_tokens": "100", "upstream_model": `"big"`, "extra.seed": "2", "extra.user": `"u"`,
	}, state(got))
	require.Equal(t, "0.7", state(first)["temperature"], "merging changes neither side")
	require.Equal(t, 4, len(state(first)))
	require.Equal(t, 3, len(state(second)))
}

// Fault F31. A field that was set can be taken back, and there are fields beyond the fixed ones.
func TestWithoutTakesBack(t *testing.T) {
	spec := inference.Request{Model: "spec-model", Params: inference.Params{Temperature: inference.Some(0.3), Extra: inference.Extra{}.With("seed", "1")}}
	run := inference.Override{Temperature: inference.Some(0.9), UpstreamModel: inference.Some("big"), Extra: inference.Extra{}.With("seed", "2").With("tag", "3")}
	step := inference.Override{}.Without(inference.FieldTemperature, inference.ExtraField("seed"))

	got := run.Merge(step).Apply(spec)
	require.Equal(t, "big", got.Model)
	require.Equal(t, inference.Some(0.3), got.Params.Temperature, "back to the spec")
	require.Equal(t, `{"seed":1,"tag":3}`, got.Params.Extra.String())
	require.Equal(t, "spec-model", spec.Model)

	again := run.Merge(step).Merge(inference.Override{Temperature: inference.Some(0.0)})
	require.Equal(t, inference.Some(0.0), again.Apply(spec).Params.Temperature, "a later wish wins over the drop")
	require.Equal(t, []inference.Field{"extra.seed"}, slices.Collect(again.Dropped()))

	o := inference.Override{}.Without(inference.FieldTopP)
	require.False(t, o.IsZero())
	o.TopP = inference.Some(0.5)
	require.Empty(t, slices.Collect(o.Dropped()), "setting the field afterwards wins in one layer too")
}

func TestApplyKeepsTheRest(t *testing.T) {
	r := fullRequest()
	require.Equal(t, r, inference.Override{}.Apply(r))
	require.Equal(t, r, inference.Override{}.Without(inference.FieldMaxTokens).Apply(r))
	got := inference.Override{
		UpstreamModel: inference.Some(""), MaxTokens: inference.Some(0), TopP: inference.Some(0.0),
		ReasoningEffort: inference.Some(inference.EffortNone), Temperature: inference.Some(1.0),
	}.Apply(r)
	want := fullRequest()
	want.Model = ""
	want.Params.MaxTokens, want.Params.TopP = inference.Some(0), inference.Some(0.0)
	want.Params.ReasoningEffort, want.Params.Temperature = inference.Some(inference.EffortNone), inference.Some(1.0)
	require.Equal(t, want, got)
}

func FuzzMergeLaws(f *testing.F) {
	for i := range uint64(200) {
		f.Add(i, i*7+1, i*13+2)
	}
	f.Fuzz(func(t *testing.T, x, y, z uint64) {
		a, b, c := randomOverride(x), randomOverride(y), randomOverride(z)
		left, right := a.Merge(b).Merge(c), a.Merge(b.Merge(c))
		require.True(t, left == right, "associative: %v %v", state(left), state(right))

		want := state(a)
		for f, v := range state(b) {
			want[f] = v
		}
		require.Equal(t, want, state(a.Merge(b)), "last writer per field")

		require.Equal(t, state(a), state(a.Merge(inference.Override{})))
		require.Equal(t, state(a), state(inference.Override{}.Merge(a)))
		require.Equal(t, a.Merge(b), a.Merge(b).Merge(b), "merging twice changes nothing")

		r := inference.Request{Model: "m", Params: inference.Params{TopP: inference.Some(0.25)}}
		require.Equal(t, b.Apply(a.Apply(r)), withoutDrops(a).Merge(withoutDrops(b)).Apply(r), "without drops, merging is applying in turn")
	})
}

func withoutDrops(o inference.Override) inference.Override {
	return inference.Override{
		UpstreamModel: o.UpstreamModel, Temperature: o.Temperature, MaxTokens: o.MaxTokens,
		TopP: o.TopP, ReasoningEffort: o.ReasoningEffort, Extra: o.Extra,
	}
}

func TestFieldsAreSorted(t *testing.T) {
	o := inference.Override{
		UpstreamModel: inference.Some("m"), Temperature: inference.Some(1.0), MaxTokens: inference.Some(1), TopP: inference.Some(1.0),
		ReasoningEffort: inference.Some(inference.EffortLow), Extra: inference.Extra{}.With("b", "1").With("a", "1"),
	}
	var got []inference.Field
	for f := range o.Fields() {
		got = append(got, f)
	}
	require.Len(t, got, 7)
	require.True(t, slices.IsSorted(got))
	for stop := range got {
		n := 0
		for range o.Fields() {
			if n++; n > stop {
				break
			}
		}
		require.Equal(t, stop+1, n)
	}
	for range o.Without("x", "y").Dropped() {
		break
	}
}

func TestValidate(t *testing.T) {
	bad := map[inference.Field]inference.Override{
		"temperature":      {Temperature: inference.Some(math.NaN())},
		"top_p":            {TopP: inference.Some(1.5)},
		"max_tokens":       {MaxTokens: inference.Some(-1)},
		"reasoning_effort": {ReasoningEffort: inference.Some(inference.Effort("lots"))},
		"extra.x":          {Extra: inference.Extra{}.With("x", "{")},
		"extra.":           {Extra: inference.Extra{}.With("", "1")},
		"temprature":       inference.Override{}.Without("temprature"),
	}
	for field, o := range bad {
		err := o.Validate()
		require.ErrorIs(t, err, inference.ErrBadField, field)
		var fe *inference.FieldError
		require.ErrorAs(t, err, &fe)
		require.Equal(t, field, fe.Field)
		require.NotEmpty(t, fe.Want)
	}
	for f, v := range (inference.Override{Temperature: inference.Some(math.NaN())}).Fields() {
		require.Equal(t, inference.FieldTemperature, f)
		require.Empty(t, v, "a number JSON does not have has no text")
	}
	for _, inf := range []float64{math.Inf(1), -0.1} {
		require.Error(t, inference.Override{Temperature: inference.Some(inf)}.Validate())
	}
	require.NoError(t, inference.Override{}.Validate())
	require.NoError(t, inference.Override{Temperature: inference.Some(0.0), TopP: inference.Some(1.0), MaxTokens: inference.Some(0)}.Without("extra.x", "top_p").Validate())
	for _, e := range []string{"none", "low", "medium", "high", "max"} {
		got, err := inference.ParseEffort(e)
		require.NoError(t, err)
		require.Equal(t, inference.Effort(e), got)
	}
	_, err := inference.ParseEffort("")
	require.ErrorContains(t, err, "none, low, medium, high or max")
}

func TestResolveNamesTheOwner(t *testing.T) {
	merged, owners := inference.Resolve(
		inference.Owned{Owner: "budget", Override: inference.Override{MaxTokens: inference.Some(10), Temperature: inference.Some(1.0)}},
		inference.Owned{Owner: "careful", Override: inference.Override{Temperature: inference.Some(0.0)}},
		inference.Owned{Owner: "silent"},
		inference.Owned{Owner: "reset", Override: inference.Override{Extra: inference.Extra{}.With("seed", "1")}.Without(inference.FieldMaxTokens)},
	)
	require.Equal(t, map[inference.Field]string{"temperature": "0", "extra.seed": "1", "max_tokens": "dropped"}, state(merged))
	require.Equal(t, []inference.FieldOwner{
		{Field: "extra.seed", Owner: "reset"},
		{Field: "max_tokens", Owner: "reset", Unset: true},
		{Field: "temperature", Owner: "careful"},
	}, owners)

	none, owners := inference.Resolve()
	require.True(t, none.IsZero())
	require.Empty(t, owners)
}

func FuzzOverrideJSON(f *testing.F) {
	for i := range uint64(20) {
		raw, err := json.Marshal(randomOverride(i))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(`{"temperature":0,"unset":["temperature","top_p"]}`)
	f.Add(`{"temperature":null,"extra":null,"unset":null}`)
	f.Add(`{"tempature":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		var o inference.Override
		if json.Unmarshal([]byte(text), &o) != nil {
			require.True(t, o.IsZero(), "a refused text changes nothing")
			return
		}
		require.NoError(t, o.Validate())
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		var back inference.Override
		require.NoError(t, json.Unmarshal(raw, &back))
		require.True(t, o == back, "%s\n%s", text, raw)
		require.True(t, o == inference.Override{}.Merge(o))
	})
}

func TestOverrideJSONIsStrict(t *testing.T) {
	for text, says := range map[string]string{
		`{"tempature":1}`:       "unknown field",
		`{"top_p":3}`:           "from 0 to 1",
		`{"unset":["tempo"]}`:   "tempo",
		`{"max_tokens":"many"}`: "cannot unmarshal",
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), new(inference.Override)), says)
	}
	raw, err := json.Marshal(inference.Override{Temperature: inference.Some(0.0)}.Without(inference.FieldTopP))
	require.NoError(t, err)
	require.Equal(t, `{"temperature":0,"unset":["top_p"]}`, string(raw))
}
