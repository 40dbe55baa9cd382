package gemini_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/gemini"
	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var failures = []modeltest.Failure{
	{Name: "rate limit", Class: resilient.RateLimited, Code: "RESOURCE_EXHAUSTED",
		Reply: failed(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", quotaFailure("GenerateRequestsPerMinutePerProject"), retryIn("7s"))},
	{Name: "rate limit with a reason", Class: resilient.RateLimited, Code: "RATE_LIMIT_EXCEEDED",
		Reply: failed(429, "RESOURCE_EXHAUSTED", "Too many requests.", errorInfo("RATE_LIMIT_EXCEEDED"), retryIn("7.000s"))},
	{Name: "rate limit in the header", Class: resilient.RateLimited, Code: "RESOURCE_EXHAUSTED", Reply: modeltest.Reply{Status: 429,
		Header: map[string]string{"Retry-After": "7"}, Body: failed(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).").Body}},
	{Name: "quota of the day", Class: resilient.Quota, Code: "RESOURCE_EXHAUSTED",
		Reply: failed(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", quotaFailure("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), retryIn("31s"))},
	{Name: "no credit", Class: resilient.Quota, Code: "RESOURCE_EXHAUSTED", Reply: failed(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.")},
	{Name: "overloaded", Class: resilient.Overloaded, Code: "UNAVAILABLE", Reply: failed(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")},
	{Name: "overflow", Class: resilient.ContextOverflow, Code: "INVALID_ARGUMENT",
		Reply: failed(400, "INVALID_ARGUMENT", "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).")},
	{Name: "overflow in short", Class: resilient.ContextOverflow, Code: "INVALID_ARGUMENT",
		Reply: failed(400, "INVALID_ARGUMENT", "The input token count exceeds the limit of 1048576.")},
	{Name: "overflow of the answer", Class: resilient.ContextOverflow, Code: "INVALID_ARGUMENT",
		Reply: failed(400, "INVALID_ARGUMENT", "The request exceeds the maximum number of tokens allowed.")},
	{Name: "overflow of the context", Class: resilient.ContextOverflow, Code: "INVALID_ARGUMENT",
		Reply: failed(400, "INVALID_ARGUMENT", "Unable to submit request because the input context is too long.")},
	{Name: "too many bytes", Class: resilient.ContextOverflow, Reply: modeltest.Reply{Status: 413, Body: "too large"}},
	{Name: "key", Class: resilient.Auth, Code: "API_KEY_INVALID",
		Reply: failed(400, "INVALID_ARGUMENT", "API key not valid: "+modeltest.Key+".", errorInfo("API_KEY_INVALID"))},
	{Name: "key in words", Class: resilient.Auth, Code: "INVALID_ARGUMENT", Reply: failed(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.")},
	{Name: "forbidden", Class: resilient.Auth, Code: "PERMISSION_DENIED", Reply: failed(403, "PERMISSION_DENIED", "Your project has no access.")},
	{Name: "country", Class: resilient.Auth, Code: "FAILED_PRECONDITION", Reply: failed(400, "FAILED_PRECONDITION", "User location is not supported for the API use.")},
	{Name: "model", Class: resilient.NotFound, Code: "NOT_FOUND", Reply: failed(404, "NOT_FOUND", "models/gemini-test is not found")},
	{Name: "parameter", Class: resilient.BadRequest, Code: "INVALID_ARGUMENT", Reply: failed(400, "INVALID_ARGUMENT", "Thinking level is not supported for this model.")},
	{Name: "server", Class: resilient.Transient, Code: "INTERNAL", Reply: failed(500, "INTERNAL", "An internal error has occurred.")},
	{Name: "deadline", Class: resilient.Transient, Code: "DEADLINE_EXCEEDED", Reply: failed(504, "DEADLINE_EXCEEDED", "Deadline expired.")},
	{Name: "status nobody knows", Class: resilient.BadRequest, Code: "FUTURE", Reply: failed(400, "FUTURE", "Well")},
}

func provider(w wire) modeltest.Provider {
	sent := modeltest.Sent
	return modeltest.Provider{
		New: func(t testing.TB, s modeltest.Setup) inference.Model {
			m, err := gemini.New(gemini.Options{BaseURL: s.BaseURL, Key: s.Key, HTTPClient: s.Client})
			require.NoError(t, err)
			return m
		},
		Model: "gemini-test", Streams: streams, Whole: w.whole, Stream: w.stream, Failures: failures,
		MidStream: []modeltest.Interruption{
			{Name: "overloaded", Class: resilient.Overloaded, Code: "UNAVAILABLE", Frame: errorFrame(503, "UNAVAILABLE", "The model is overloaded.")},
			{Name: "rate limit", Class: resilient.RateLimited, Code: "RESOURCE_EXHAUSTED", Frame: errorFrame(429, "RESOURCE_EXHAUSTED", "Slow down.", retryIn("3s"))},
			{Name: "no event", Class: resilient.Transient, Code: "INTERNAL", Frame: failed(500, "INTERNAL", "Internal error").Body + "\r\n\r\n"},
			{Name: "blocked prompt", Class: resilient.ContentFiltered, Code: "PROHIBITED_CONTENT",
				Frame: "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"},\"usageMetadata\":{\"promptTokenCount\":4}}\r\n\r\n"},
			{Name: "malformed call", Class: resilient.Transient, Code: "MALFORMED_FUNCTION_CALL",
				Frame: "data: {\"candidates\":[{\"content\":{},\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"Malformed function call: print(\"}]}\r\n\r\n"},
			{Name: "no JSON", Class: resilient.Transient, Frame: "data: {\"candidates\": \r\n\r\n"},
			{Name: "another form", Class: resilient.Transient, Frame: "data: {\"candidates\": 7}\r\n\r\n"},
		},
		Fields: map[inference.Field]modeltest.Place{
			inference.FieldUpstreamModel:           {InPath: true},
			inference.FieldTemperature:             {At: "/generationConfig/temperature"},
			inference.FieldMaxTokens:               {At: "/generationConfig/maxOutputTokens"},
			inference.FieldTopP:                    {At: "/generationConfig/topP"},
			inference.FieldReasoningEffort:         {At: "/generationConfig/thinkingConfig/thinkingLevel"},
			inference.ExtraField("modeltest"):      {At: "/modeltest"},
			inference.ExtraField("modeltest_null"): {At: "/modeltest_null"},
		},
		Efforts: map[inference.Effort]modeltest.Place{
			"none": {At: "/generationConfig/thinkingConfig/thinkingBudget", Value: "0"},
			"low":  {Value: `"LOW"`}, "medium": {Value: `"MEDIUM"`}, "high": {Value: `"HIGH"`}, "max": {Value: `"HIGH"`},
		},
		Parts: map[string]modeltest.Fate{
			"text": sent, "image": sent, "image at a URI": sent, "audio": sent, "file": sent, "file at a URI": sent,
			"kind nobody knows": modeltest.Refused,
		},
		Golden: "testdata/requests", Update: *update,
		Lacks: modeltest.Lacks{SplitArgs: true, Interleave: true, CallIDs: !w.ids, MalformedArgs: true},
	}
}

func TestConformance(t *testing.T) { modeltest.Run(t, provider(wire{ids: true})) }

// TestConformanceWithoutIDs is about models that give their calls no ids.
func TestConformanceWithoutIDs(t *testing.T) { modeltest.Run(t, provider(wire{})) }
