package trace_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// tellAll returns what all writers are told of an event.
func tellAll(t *testing.T, rules trace.Rules, e engine.Event) string {
	t.Helper()
	text, lines, chrome := new(strings.Builder), new(strings.Builder), new(strings.Builder)
	tr := trace.New(trace.Options{Text: text, Lines: lines, Chrome: chrome, Rules: rules})
	tr.Observe(e)
	require.NoError(t, tr.Close(t.Context()))
	return text.String() + lines.String() + chrome.String()
}

// Names of members are known however JSON writes them, and as those who read JSON take
// them: encoding/json finds a field "Token" for "to\u212aen".
func TestNamesOfMembersInDisguise(t *testing.T) {
	const secret = "zq7-hunter"
	for _, args := range []string{
		`{"\u0070assword":"zq7-hunter"}`,
		`{"PASS-WORD":"zq7-hunter"}`,
		`{"pass word":["zq7-hunter"]}`,
		`{"password\n":"zq7-hunter"}`,
		`{"pass\tword":"zq7-hunter"}`,
		`{"token\r\n":{"a":"zq7-hunter"}}`,
		`{"to\u212aen":"zq7-hunter"}`,
		"{\"to\u212aen\":\"zq7-hunter\"}",
		"{\"pa\u017f\u017fword\":\"zq7-hunter\"}",
		"{\"pass\u200bword\":\"zq7-hunter\"}",
		"{\"password\u00ad\":\"zq7-hunter\"}",
		`"{\"pass\\tword\":\"zq7-hunter\"}"`,
		`{"a":"{\"b\":\"{\\\"c\\\":\\\"{\\\\\\\"token\\\\\\\":\\\\\\\"zq7-hunter\\\\\\\"}\\\"}\"}"}`,
	} {
		require.True(t, json.Valid([]byte(args)), args)
		e := engine.ToolStarted{Header: engine.Header{Seq: 1, Time: enginetest.Epoch(), Run: "r"},
			Call: inference.ToolCall{ID: "c", Name: "n", Args: inference.JSON(args)}}
		if got := tellAll(t, trace.Rules{}, e); strings.Contains(got, secret) {
			t.Errorf("told with %s", args)
		}
	}
}

// A list of names and values, as commands and servers get their environment, has members
// too, and so has a table.
func TestNamesBesideValues(t *testing.T) {
	const secret = "zq7-hunter"
	for _, args := range []string{
		`{"env":[{"name":"DB_PASSWORD","value":"zq7-hunter"}]}`,
		`{"headers":[{"key":"X-Api-Key","value":"zq7-hunter"}]}`,
		`{"headers":[["Authorization","zq7-hunter"]]}`,
		`{"argv":["login","--password","zq7-hunter"]}`,
	} {
		e := engine.ToolStarted{Header: engine.Header{Seq: 1, Time: enginetest.Epoch(), Run: "r"},
			Call: inference.ToolCall{ID: "c", Name: "n", Args: inference.JSON(args)}}
		if got := tellAll(t, trace.Rules{}, e); strings.Contains(got, secret) {
			t.Errorf("told with %s", args)
		}
	}
}

// What a state key, or an entry of a table, is called counts as the name of a member does.
func TestNamesOfStateKeys(t *testing.T) {
	const secret = "zq7-hunter"
	cell := state.NewCell("login.password", state.Options[string]{Shared: true})
	vault := state.NewTable[string]("vault", state.Options[string]{Shared: true})
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{cell, vault}})
	require.NoError(t, err)
	for name, u := range map[string]state.Update{"key": cell.With(secret), "entry": vault.Put("api_key", secret)} {
		res, err := store.Commit(state.Batch{Owner: "x", Updates: []state.Update{u}})
		require.NoError(t, err)
		h := engine.Header{Seq: 1, Time: enginetest.Epoch(), Run: "r"}
		entry, _ := u.Entry().(string)
		w := []engine.Write{{Plugin: "p", Key: u.Key().Name(), Entry: entry, Op: u.Op(), Update: u}}
		for _, e := range []engine.Event{
			engine.Committed{Header: h, Writes: w},
			engine.Committed{Header: h, Before: res.Before, After: res.Snapshot},
			engine.Conflict{Header: h, Lost: w},
			engine.RunStarted{Header: h, Base: engine.Base{State: res.Snapshot}},
		} {
			if strings.Contains(tellAll(t, trace.Rules{}, e), secret) {
				t.Errorf("%s: told by %T", name, e)
			}
		}
	}
}

// Texts that are JSON in pieces, and keys that lines or escapes hide.
func TestCredentialsInPieces(t *testing.T) {
	key := "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
	pem := []string{"-----BEGIN PRIVATE KEY-----", key, "-----END PRIVATE KEY-----"}
	for name, c := range map[string]struct {
		e      engine.Event
		rules  trace.Rules
		secret string
	}{
		"whole PEM":        {engine.Warning{Message: strings.Join(pem, "\n")}, trace.Rules{}, key},
		"cut PEM":          {engine.Warning{Message: strings.Join(pem, "\n")}, trace.Rules{MaxValue: 40}, key[:8]},
		"across the cut":   {engine.Warning{Message: strings.Repeat("x", 35) + " ghp_" + strings.Repeat("a", 36)}, trace.Rules{MaxValue: 60}, "aaaa"},
		"longer than cut":  {engine.ToolFinished{Result: inference.ToolResult{Content: "token=" + strings.Repeat("zq7", 5000)}}, trace.Rules{MaxValue: 100}, "zq7"},
		"own, across cut":  {engine.Warning{Message: strings.Repeat("x", 35) + "zq7-hunter-zq7"}, trace.Rules{Secrets: []string{"zq7-hunter-zq7"}, MaxValue: 40}, "zq7"},
		"escaped address":  {engine.ToolStarted{Call: inference.ToolCall{ID: "c", Args: `{"u":"https:\/\/me:zq7-hunter@h\/x"}`}}, trace.Rules{}, "zq7"},
		"header":           {engine.ToolStarted{Call: inference.ToolCall{ID: "c", Args: `{"c":"curl -H \"Authorization: Bearer zq7abc\" h"}`}}, trace.Rules{}, "zq7"},
		"malformed args":   {engine.ToolStarted{Call: inference.ToolCall{ID: "c", Args: `{"password":"zq7-hunter`}}, trace.Rules{}, "zq7"},
		"lines of JSON":    {engine.Warning{Message: "{\"pwd\":\"zq7-hunter\"}\n{\"session_id\":\"zq7-hunter\"}"}, trace.Rules{}, "zq7"},
		"number of a text": {engine.ToolStarted{Call: inference.ToolCall{ID: "c", Args: `{"password":31415926}`}}, trace.Rules{}, "31415926"},
		"not JSON":         {engine.ToolStarted{Call: inference.ToolCall{ID: "c", Args: `{"password":"zq7-hunter",}`}}, trace.Rules{}, "zq7"},
		"ids and names": {engine.RunFinished{Header: engine.Header{Run: "token=zq7-hunter", Parent: "token=zq7-hunter", Thread: "token=zq7-hunter", Agent: "token=zq7-hunter"},
			Reason: "token=zq7-hunter", Detail: "token=zq7-hunter", Error: "token=zq7-hunter"}, trace.Rules{}, "zq7"},
	} {
		if strings.Contains(tellAll(t, c.rules, c.e), c.secret) {
			t.Errorf("told: %s", name)
		}
	}
}

// What a codec says of a value that it cannot encode is nobody's to read in the trace.
func TestErrorsOfCodecsAreNotTold(t *testing.T) {
	cell := state.NewCell("cell", state.Options[sulky]{Shared: true})
	e := engine.Conflict{Header: engine.Header{Seq: 1, Time: enginetest.Epoch()}, Lost: []engine.Write{{Key: "cell", Op: "set", Update: cell.With(sulky{})}}}
	lines := new(strings.Builder)
	tr := trace.New(trace.Options{Lines: lines})
	tr.Observe(e)
	err := tr.Close(t.Context())
	require.NotContains(t, lines.String(), "zq7-hunter")
	if err != nil {
		require.NotContains(t, err.Error(), "zq7-hunter")
	}
}

type sulky struct{}

func (sulky) MarshalJSON() ([]byte, error) { return nil, errors.New("zq7-hunter") }
