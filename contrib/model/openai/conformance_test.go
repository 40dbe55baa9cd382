package openai_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// failures are the same in both protocols.
var failures = []modeltest.Failure{
	{Name: "rate limit", Class: resilient.RateLimited, Code: "rate_limit_exceeded",
		Reply: failed(429, "requests", "rate_limit_exceeded", "Rate limit reached for requests per minute.", "Retry-After", "7")},
	{Name: "rate limit to the millisecond", Class: resilient.RateLimited, Code: "rate_limit_exceeded",
		Reply: failed(429, "tokens", "rate_limit_exceeded", "Rate limit reached.", "Retry-After", "8", "Retry-After-Ms", "7000")},
	{Name: "rate limit told in words", Class: resilient.RateLimited, Code: "rate_limit_exceeded",
		Reply: failed(429, "tokens", "rate_limit_exceeded", "Rate limit reached. Please try again in 7s. Visit the console to learn more.")},
	{Name: "quota", Class: resilient.Quota, Code: "insufficient_quota",
		Reply: failed(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota.")},
	{Name: "overloaded", Class: resilient.Overloaded, Code: "server_error",
		Reply: failed(503, "server_error", "", "The engine is currently overloaded, please try again later.")},
	{Name: "slow down", Class: resilient.Overloaded, Code: "slow_down", Reply: failed(503, "server_error", "slow_down", "Slow down.")},
	{Name: "overflow", Class: resilient.ContextOverflow, Code: "context_length_exceeded",
		Reply: failed(400, "invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model.")},
	{Name: "overflow without a code", Class: resilient.ContextOverflow, Code: "BadRequestError",
		Reply: failed(400, "BadRequestError", "", "This model's maximum context length is 4096 tokens.")},
	{Name: "filter", Class: resilient.ContentFiltered, Code: "content_filter",
		Reply: failed(400, "invalid_request_error", "content_filter", "The response was filtered.")},
	{Name: "flagged prompt", Class: resilient.ContentFiltered, Code: "invalid_prompt",
		Reply: failed(400, "invalid_request_error", "invalid_prompt", "Invalid prompt: your prompt was flagged.")},
	{Name: "key", Class: resilient.Auth, Code: "invalid_api_key",
		Reply: failed(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+modeltest.Key+".")},
	{Name: "forbidden", Class: resilient.Auth, Code: "unsupported_country_region_territory",
		Reply: failed(403, "request_forbidden", "unsupported_country_region_territory", "Country, region, or territory not supported")},
	{Name: "model", Class: resilient.NotFound, Code: "model_not_found",
		Reply: failed(404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it.")},
	{Name: "parameter", Class: resilient.BadRequest, Code: "unsupported_parameter",
		Reply: failed(400, "invalid_request_error", "unsupported_parameter", "Unsupported parameter: 'temperature'.")},
	{Name: "server", Class: resilient.Transient, Code: "server_error",
		Reply: failed(500, "server_error", "", "The server had an error while processing your request.")},
	{Name: "text alone", Class: resilient.BadRequest, Reply: modeltest.Reply{Status: 400, Body: `{"error":"no such option"}`}},
	{Name: "in a list", Class: resilient.RateLimited, Code: "429",
		Reply: modeltest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]`}},
	{Name: "detail", Class: resilient.BadRequest, Reply: modeltest.Reply{Status: 422, Body: `{"detail":"bad input"}`}},
}

func provider(api openai.API) modeltest.Provider {
	sent := modeltest.Sent
	p := modeltest.Provider{
		New: func(t testing.TB, s modeltest.Setup) inference.Model {
			m, err := openai.New(openai.Options{BaseURL: s.BaseURL + "/v1", Key: s.Key, API: api, HTTPClient: s.Client})
			require.NoError(t, err)
			return m
		},
		Model: "gpt-test", Streams: streams, Failures: failures,
		Fields: map[inference.Field]modeltest.Place{
			inference.FieldUpstreamModel:           {At: "/model"},
			inference.FieldTemperature:             {At: "/temperature"},
			inference.FieldTopP:                    {At: "/top_p"},
			inference.ExtraField("modeltest"):      {At: "/modeltest"},
			inference.ExtraField("modeltest_null"): {At: "/modeltest_null"},
		},
		Efforts: map[inference.Effort]modeltest.Place{"none": {}, "low": {}, "medium": {}, "high": {}, "max": {}},
		Parts: map[string]modeltest.Fate{
			"text": sent, "image": sent, "image at a URI": sent, "file": sent, "kind nobody knows": modeltest.Refused,
		},
		Golden: "testdata/requests/" + string(api), Update: *update,
		Lacks: modeltest.Lacks{ErrorResults: true},
	}
	if api == openai.Responses {
		p.Whole, p.Stream = wholeResponse, streamedResponse
		p.Fields[inference.FieldMaxTokens] = modeltest.Place{At: "/max_output_tokens"}
		p.Fields[inference.FieldReasoningEffort] = modeltest.Place{At: "/reasoning/effort"}
		p.Parts["audio"], p.Parts["file at a URI"] = modeltest.Refused, sent
		p.MidStream = []modeltest.Interruption{
			{Name: "failed", Class: resilient.Transient, Code: "server_error", Frame: responseFailed("server_error", "The model failed to generate a response.")},
			{Name: "failed for its rate", Class: resilient.RateLimited, Code: "rate_limit_exceeded", Frame: responseFailed("rate_limit_exceeded", "Please try again in 1.5s.")},
			{Name: "failed for a bad image", Class: resilient.BadRequest, Code: "image_too_large", Frame: responseFailed("image_too_large", "The image is too large.")},
			{Name: "error", Class: resilient.Overloaded, Code: "server_is_overloaded",
				Frame: "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"Busy.\",\"param\":null,\"sequence_number\":3}\n\n"},
			{Name: "error in an object", Class: resilient.ContextOverflow, Code: "context_length_exceeded",
				Frame: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\",\"message\":\"Too long.\"}}\n\n"},
			{Name: "no JSON", Class: resilient.Transient, Frame: "event: response.output_text.delta\ndata: {\"type\": \n\n"},
		}
		return p
	}
	p.Whole, p.Stream = wholeCompletion, streamedCompletion
	p.Lacks.ImageAnswers = true
	p.Fields[inference.FieldMaxTokens] = modeltest.Place{At: "/max_completion_tokens"}
	p.Fields[inference.FieldReasoningEffort] = modeltest.Place{At: "/reasoning_effort"}
	p.Parts["audio"], p.Parts["file at a URI"] = sent, modeltest.Refused
	p.MidStream = []modeltest.Interruption{
		{Name: "error", Class: resilient.Transient, Code: "server_error",
			Frame: "data: {\"error\":{\"message\":\"The server had an error.\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n"},
		{Name: "error of a gateway", Class: resilient.Overloaded, Code: "503",
			Frame: "data: {\"id\":\"x\",\"error\":{\"code\":503,\"message\":\"Overloaded\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n"},
		{Name: "finish reason error", Class: resilient.Transient, Code: "server_error",
			Frame: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n"},
		{Name: "no JSON", Class: resilient.Transient, Frame: "data: {\"choices\": \n\n"},
	}
	return p
}

func TestResponsesConformance(t *testing.T) { modeltest.Run(t, provider(openai.Responses)) }

func TestChatCompletionsConformance(t *testing.T) { modeltest.Run(t, provider(openai.ChatCompletions)) }
