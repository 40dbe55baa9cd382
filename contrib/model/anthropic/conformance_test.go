package anthropic_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/anthropic"
	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var failures = []modeltest.Failure{
	{Name: "rate limit", Class: resilient.RateLimited, Code: "rate_limit_error",
		Reply: failed(429, "rate_limit_error", "This request would exceed your rate limit of requests per minute.", "Retry-After", "7", "Anthropic-Ratelimit-Requests-Remaining", "0")},
	{Name: "rate limit to the millisecond", Class: resilient.RateLimited, Code: "rate_limit_error",
		Reply: failed(429, "rate_limit_error", "Slow down.", "Retry-After", "8", "Retry-After-Ms", "7000")},
	{Name: "spend limit", Class: resilient.Quota, Code: "enforced_spend_limit_reached", Reply: modeltest.Reply{Status: 429,
		Body: `{"type":"error","error":{"type":"rate_limit_error","message":"Limit reached.","details":{"error_code":"enforced_spend_limit_reached"}}}`}},
	{Name: "own spend limit", Class: resilient.Quota, Code: "invalid_request_error",
		Reply: failed(400, "invalid_request_error", "You have reached your specified API usage limits.")},
	{Name: "no credit", Class: resilient.Quota, Code: "invalid_request_error",
		Reply: failed(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.")},
	{Name: "billing", Class: resilient.Quota, Code: "billing_error", Reply: failed(402, "billing_error", "There is an issue with your billing.")},
	{Name: "overloaded", Class: resilient.Overloaded, Code: "overloaded_error", Reply: failed(529, "overloaded_error", "Overloaded")},
	{Name: "overflow", Class: resilient.ContextOverflow, Code: "invalid_request_error",
		Reply: failed(400, "invalid_request_error", "prompt is too long: 205668 tokens > 200000 maximum")},
	{Name: "overflow with the answer", Class: resilient.ContextOverflow, Code: "invalid_request_error",
		Reply: failed(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000")},
	{Name: "too many bytes", Class: resilient.ContextOverflow, Code: "request_too_large",
		Reply: failed(413, "request_too_large", "Request exceeds the maximum size")},
	{Name: "filter", Class: resilient.ContentFiltered, Code: "invalid_request_error",
		Reply: failed(400, "invalid_request_error", "Output blocked by content filtering policy")},
	{Name: "key", Class: resilient.Auth, Code: "authentication_error",
		Reply: failed(401, "authentication_error", "invalid x-api-key "+modeltest.Key)},
	{Name: "forbidden", Class: resilient.Auth, Code: "permission_error", Reply: failed(403, "permission_error", "Not allowed.")},
	{Name: "model", Class: resilient.NotFound, Code: "not_found_error", Reply: failed(404, "not_found_error", "model: claude-test")},
	{Name: "parameter", Class: resilient.BadRequest, Code: "invalid_request_error",
		Reply: failed(400, "invalid_request_error", "temperature: range: 0..1")},
	{Name: "server", Class: resilient.Transient, Code: "api_error", Reply: failed(500, "api_error", "Internal server error")},
	{Name: "timeout", Class: resilient.Transient, Code: "timeout_error", Reply: failed(504, "timeout_error", "Timed out")},
	{Name: "type nobody knows", Class: resilient.BadRequest, Code: "future_error", Reply: failed(400, "future_error", "Well")},
}

func provider() modeltest.Provider {
	sent := modeltest.Sent
	return modeltest.Provider{
		New: func(t testing.TB, s modeltest.Setup) inference.Model {
			m, err := anthropic.New(anthropic.Options{BaseURL: s.BaseURL, Key: s.Key, HTTPClient: s.Client})
			require.NoError(t, err)
			return m
		},
		Model: "claude-test", Streams: streams, Whole: wholeMessage, Stream: streamedMessage, Failures: failures,
		MidStream: []modeltest.Interruption{
			{Name: "overloaded", Class: resilient.Overloaded, Code: "overloaded_error", Frame: errorEvent("overloaded_error", "Overloaded")},
			{Name: "server", Class: resilient.Transient, Code: "api_error", Frame: errorEvent("api_error", "Internal server error")},
			{Name: "rate limit", Class: resilient.RateLimited, Code: "rate_limit_error", Frame: errorEvent("rate_limit_error", "Slow down.")},
			{Name: "filter", Class: resilient.ContentFiltered, Code: "invalid_request_error", Frame: errorEvent("invalid_request_error", "Output blocked by content filtering policy")},
			{Name: "type nobody knows", Class: resilient.Transient, Code: "future_error", Frame: errorEvent("future_error", "Well")},
			{Name: "words", Class: resilient.Transient, Frame: "event: error\ndata: upstream gone\n\n"},
			{Name: "named in the data only", Class: resilient.Overloaded, Code: "overloaded_error",
				Frame: "event: message_error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"},
			{Name: "no JSON", Class: resilient.Transient, Frame: "event: content_block_delta\ndata: {\"type\": \n\n"},
		},
		Fields: map[inference.Field]modeltest.Place{
			inference.FieldUpstreamModel:           {At: "/model"},
			inference.FieldTemperature:             {At: "/temperature"},
			inference.FieldMaxTokens:               {At: "/max_tokens"},
			inference.FieldTopP:                    {At: "/top_p"},
			inference.FieldReasoningEffort:         {At: "/output_config/effort"},
			inference.ExtraField("modeltest"):      {At: "/modeltest"},
			inference.ExtraField("modeltest_null"): {At: "/modeltest_null"},
		},
		Efforts: map[inference.Effort]modeltest.Place{
			"none": {At: "/thinking/type", Value: `"disabled"`}, "low": {}, "medium": {}, "high": {}, "max": {},
		},
		Parts: map[string]modeltest.Fate{
			"text": sent, "image": sent, "image at a URI": sent, "audio": modeltest.Refused, "file": sent, "file at a URI": sent,
			"kind nobody knows": modeltest.Refused,
		},
		Golden: "testdata/requests", Update: *update,
		Lacks: modeltest.Lacks{Interleave: true, MalformedWhole: true, ImageAnswers: true},
	}
}

func TestConformance(t *testing.T) { modeltest.Run(t, provider()) }
