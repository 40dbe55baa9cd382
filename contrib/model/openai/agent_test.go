package openai_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// TestAgent lets an agent work over streams: calls in parallel of which one is malformed, then an answer.
func TestAgent(t *testing.T) {
	for _, api := range []openai.API{openai.Responses, openai.ChatCompletions} {
		t.Run(string(api), func(t *testing.T) {
			stream := streamedResponse
			if api == openai.ChatCompletions {
				stream = streamedCompletion
			}
			usage := modeltest.Usage{Input: 100, Cached: 60, Output: 10, Reasoning: 5}
			answers := []modeltest.Answer{
				{Reasoning: []string{"Two cities."}, Usage: usage, Stop: inference.StopToolUse, Calls: []modeltest.Call{
					{ID: "call_1", Name: "weather", Args: []string{`{"city":`, `"Oslo"}`}}, {ID: "call_2", Name: "weather", Args: []string{`{"city":`}},
				}},
				{Text: []string{"Rain ", "in Oslo."}, Usage: usage, Stop: inference.StopEnd},
			}
			m, asked := endpoint(t, openai.Options{API: api, Model: "gpt-test"}, func(w http.ResponseWriter, _ []byte) {
				sendEvents(w, strings.Join(stream(answers[0]), ""))
				answers = answers[1:]
			})
			weather := engine.NewTool(inference.ToolSpec{Name: "weather", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`},
				func(_ context.Context, _ *phase.Context, in struct {
					City string `json:"city"`
				}) (engine.Output, error) {
					return engine.Text("rain in " + in.City), nil
				})
			enginetest.CheckLeaks(t)
			eng, err := engine.New(engine.Config{Model: m, Stream: true})
			require.NoError(t, err)
			in := engine.Prompt("How is the weather?")
			in.Tools = []engine.Tool{weather}
			result, err := eng.Run(context.Background(), engine.AgentSpec{ID: "a"}, in)
			require.NoError(t, err)
			require.NoError(t, result.Err)
			require.Equal(t, "Rain in Oslo.", result.Text)
			require.Equal(t, inference.Usage{InputTokens: 200, CachedTokens: 120, OutputTokens: 20, ReasoningTokens: 10}, result.Usage)

			_, body := asked()
			var sent struct {
				Input []struct {
					Type, Output, Arguments string
					ID                      string `json:"call_id"`
				}
				Messages []struct {
					Role, Content string
					ID            string `json:"tool_call_id"`
				}
			}
			require.NoError(t, json.Unmarshal(body, &sent))
			results := map[string]string{}
			for _, item := range sent.Input {
				if item.Type == "function_call_output" {
					results[item.ID] = item.Output
				}
			}
			for _, message := range sent.Messages {
				if message.Role == "tool" {
					results[message.ID] = message.Content
				}
			}
			require.Len(t, results, 2)
			require.Equal(t, "rain in Oslo", results["call_1"])
			require.Contains(t, results["call_2"], "JSON")
			require.Contains(t, string(body), "malformed_args")
		})
	}
}
