package modeltest_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// flawVariable names the flaw of the toy in a process that TestKitFindsFlaws starts.
const flawVariable = "MODELTEST_FLAW"

func toyProvider(flaw string) modeltest.Provider {
	failed := func(status int, code string, header map[string]string) modeltest.Reply {
		return modeltest.Reply{Status: status, Header: header, Body: toyJSON(toyError{code, "sorry, " + modeltest.Key})}
	}
	return modeltest.Provider{
		New:   func(_ testing.TB, s modeltest.Setup) inference.Model { return &toy{Setup: s, flaw: flaw} },
		Model: "toy-1",
		Streams: func(w modeltest.Wire) bool {
			var body struct{ Stream bool }
			return json.Unmarshal(w.Body, &body) == nil && body.Stream
		},
		Whole: toyWhole, Stream: toyStream,
		Failures: []modeltest.Failure{
			{Name: "rate limit", Class: resilient.RateLimited, Code: "slow", Reply: failed(429, "slow", map[string]string{"Retry-After": "7"})},
			{Name: "overloaded", Class: resilient.Overloaded, Code: "busy", Reply: failed(529, "busy", nil)},
			{Name: "overflow", Class: resilient.ContextOverflow, Code: "overflow", Reply: failed(400, "overflow", nil)},
			{Name: "bad", Class: resilient.BadRequest, Code: "bad", Reply: failed(400, "bad", nil)},
			{Name: "key", Class: resilient.Auth, Code: "key", Reply: failed(401, "key", nil)},
			{Name: "model", Class: resilient.NotFound, Code: "model", Reply: failed(404, "model", nil)},
			{Name: "server", Class: resilient.Transient, Code: "server", Reply: failed(500, "server", nil)},
		},
		MidStream: []modeltest.Interruption{
			{Name: "busy", Class: resilient.Overloaded, Code: "busy", Frame: toyJSON(toyLine{Error: &toyError{"busy", "sorry"}}) + "\n"},
		},
		Fields: map[inference.Field]modeltest.Place{
			inference.FieldUpstreamModel:           {InPath: true},
			inference.FieldTemperature:             {At: "/params/temperature"},
			inference.FieldTopP:                    {Warned: true},
			inference.FieldMaxTokens:               {At: "/params/max_tokens"},
			inference.FieldReasoningEffort:         {At: "/params/reasoning_effort"},
			inference.ExtraField("modeltest"):      {At: "/params/modeltest"},
			inference.ExtraField("modeltest_null"): {At: "/params/modeltest_null"},
		},
		Efforts: map[inference.Effort]modeltest.Place{"none": {Value: `"off"`}, "low": {}, "medium": {}, "high": {}, "max": {Refused: true}},
		Parts: map[string]modeltest.Fate{
			"text": modeltest.Sent, "image": modeltest.Sent, "image at a URI": modeltest.Sent, "audio": modeltest.Refused,
			"file": modeltest.Refused, "file at a URI": modeltest.Refused, "kind nobody knows": modeltest.Refused,
		},
		Golden: "testdata/requests", Update: *update,
	}
}

// TestToy runs the kit on an adapter for a protocol that was made for it.
func TestToy(t *testing.T) {
	flaw := os.Getenv(flawVariable)
	if flaw != "" {
		modeltest.Hurry(time.Second)
	}
	modeltest.Run(t, toyProvider(flaw))
}

// TestKitFindsFlaws gives the toy one flaw after the other; the kit must find each where it belongs.
func TestKitFindsFlaws(t *testing.T) {
	for flaw, place := range map[string]string{
		"buffers":                "answers/text_as_it_comes",
		"mixes calls":            "answers/several_calls",
		"repairs arguments":      "answers/malformed_arguments",
		"rounds":                 "answers/long_numbers",
		"asks twice":             "answers/text",
		"logs":                   "answers/text",
		"hides causes":           "failures/broken_streams",
		"counts twice":           "answers/usage",
		"counts no thoughts":     "answers/usage",
		"one reason":             "answers/stop_reasons",
		"shares":                 "answers/concurrent_use",
		"plain errors":           "failures/refusals",
		"retries":                "failures/refusals",
		"tells the key":          "failures/refusals",
		"status only":            "failures/refusals/overflow",
		"impatient":              "failures/refusals/rate_limit",
		"whole seconds":          "failures/times_to_wait",
		"follows anywhere":       "failures/redirects",
		"not partial":            "failures/interruptions",
		"takes cuts for ends":    "failures/broken_streams",
		"deaf":                   "ends/cancelled_in_mid_stream",
		"no cause":               "ends/cancelled_beforehand",
		"leaves bodies open":     "ends/stream_left_early",
		"leaves goroutines":      "answers/text",
		"eager":                  "ends/stream_nobody_walks",
		"drops temperature":      "requests/fields/temperature",
		"drops max_tokens":       "requests/fields/max_tokens",
		"drops top_p":            "requests/fields/top_p",
		"one model":              "requests/fields/upstream_model",
		"takes any effort":       "requests/efforts/max",
		"untranslated":           "requests/efforts/none",
		"drops zero":             "requests/fields/zero_is_a_value",
		"drops null":             "requests/fields/extra.modeltest_null",
		"drops reasoning_effort": "requests/efforts",
		"drops images":           "requests/parts/image",
		"any part":               "requests/parts/audio",
		"foreign":                "requests/foreign_parts",
		"details":                "requests/history",
		"results in disorder":    "requests/history",
		"results alike":          "requests/history",
	} {
		t.Run(flaw, func(t *testing.T) {
			run := "^TestToy$/^" + strings.ReplaceAll(place, "/", "$/^") + "$"
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+run, "-test.v", "-test.timeout=60s")
			child.Env = append(os.Environ(), flawVariable+"="+flaw)
			out, err := child.CombinedOutput()
			require.Error(t, err, "the kit did not find it:\n%s", out)
			require.Contains(t, string(out), "--- FAIL: TestToy/"+place)
		})
	}
}

// TestRunWantsEverything: a provider that leaves something out is told what.
func TestRunWantsEverything(t *testing.T) {
	if os.Getenv(flawVariable) != "" {
		modeltest.Run(t, modeltest.Provider{})
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunWantsEverything$")
	child.Env = append(os.Environ(), flawVariable+"=empty")
	out, err := child.CombinedOutput()
	require.Error(t, err)
	for _, want := range []string{"Provider.New", "Provider.Model", "Provider.Golden", "repeats Key", "rate limited", "not authorized", "temperature", "extra.modeltest_null", "effort", "max", "image at a URI"} {
		require.Contains(t, string(out), want)
	}
}
