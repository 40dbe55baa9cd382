package gate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

func fingerprint(name string, args inference.JSON) string {
	return gate.Fingerprint(inference.ToolCall{ID: "ignored", Name: name, Args: args})
}

// Capability B5. Only white space and the order of members are ignored.
func TestFingerprintIgnoresSpelling(t *testing.T) {
	want := fingerprint("pay", `{"amount":1,"to":["a","b"]}`)
	for _, same := range []inference.JSON{
		` { "amount" : 1 , "to" : [ "a" , "b" ] } `,
		`{"to":["a","b"],"amount":1}`,
		`{"to":["\u0061","b"],"amount":1}`,
	} {
		require.Equal(t, want, fingerprint("pay", same), same)
	}
	require.NotEmpty(t, want)
	require.Equal(t, gate.Fingerprint(inference.ToolCall{ID: "1", Name: "pay"}), gate.Fingerprint(inference.ToolCall{ID: "2", Name: "pay"}))
}

// Capability B5. Any other difference makes another fingerprint. Numbers count
// digit by digit: two amounts that one float64 stands for are two amounts.
func TestFingerprintSeesEveryDifference(t *testing.T) {
	seen := map[string]inference.JSON{}
	for _, args := range []inference.JSON{
		`{"amount":1}`, `{"amount":2}`, `{"amount":"1"}`, `{"Amount":1}`, `{"amount":1,"x":null}`, `[1]`, `[1,2]`, `[2,1]`,
		`{"amount":9007199254740992}`, `{"amount":9007199254740993}`,
		`{"amount":0.1}`, `{"amount":0.10000000000000000001}`,
		`{}`, `{"a":{"b":1}}`, `{"a":{"c":1}}`, `true`, `"true"`, `{"amount":1`, `{"amount":2`, `not json`,
		`{"a":"<"}`, `{"a":"\\u003c"}`,
	} {
		p := fingerprint("pay", args)
		require.NotContains(t, seen, p, "%s and %s", args, seen[p])
		seen[p] = args
	}
	require.NotEqual(t, fingerprint("a", `{}`), fingerprint("b", `{}`))
	require.NotEqual(t, fingerprint("ab", `1`), fingerprint("a", `1`))
	require.NotEqual(t, fingerprint("a1", ``), fingerprint("a", `1`))
}

func TestTicketAsJSON(t *testing.T) {
	in := gate.Ticket{
		ID: "r/1/c/1", Call: "c", Plugin: "p", Kind: gate.Choice, Message: "which?", Params: `["a","b"]`,
		Schema: `{"enum":["a","b"]}`, Mode: gate.UseAsResult, Default: gate.DefaultNo, Fingerprint: "f",
	}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	var out gate.Ticket
	require.NoError(t, json.Unmarshal(text, &out))
	require.Equal(t, in, out)
}

// FuzzFingerprint checks that a saved and loaded call keeps its fingerprint, so
// that an approval given in another process still fits.
func FuzzFingerprint(f *testing.F) {
	for _, s := range []string{`{}`, `{"b":1,"a":[1,2,{"c":"\u003c"}]}`, `nope`, ``, `1e400`, `{"a":1}{"b":2}`, `{"a":"\ud800"}`, `9007199254740993`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		call := inference.ToolCall{ID: "c", Name: "tool", Args: inference.JSON(args)}
		before := gate.Fingerprint(call)
		require.Equal(t, before, gate.Fingerprint(call))
		text, err := json.Marshal(call)
		if err != nil {
			return
		}
		var back inference.ToolCall
		require.NoError(t, json.Unmarshal(text, &back))
		if inference.JSON(args).Valid() {
			require.Equal(t, before, gate.Fingerprint(back))
		}
	})
}
