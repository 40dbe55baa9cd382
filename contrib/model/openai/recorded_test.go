package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/inference"
)

// endpoint serves a handler and returns a model that asks it, and what it was asked last.
func endpoint(t *testing.T, o openai.Options, handler func(w http.ResponseWriter, body []byte)) (*openai.Model, func() (http.Header, []byte)) {
	t.Helper()
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		handler(w, body)
	}))
	t.Cleanup(server.Close)
	o.BaseURL = server.URL
	m, err := openai.New(o)
	require.NoError(t, err)
	return m, func() (http.Header, []byte) { return header, body }
}

func sendEvents(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
}

// TestStreams reads streams in testdata: what is made of each, and how it goes back to the service, is beside it.
func TestStreams(t *testing.T) {
	for _, api := range []openai.API{openai.Responses, openai.ChatCompletions} {
		names, err := filepath.Glob(filepath.Join("testdata", "answers", string(api), "*.sse"))
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			t.Run(string(api)+"/"+strings.TrimSuffix(filepath.Base(name), ".sse"), func(t *testing.T) {
				text, err := os.ReadFile(name)
				require.NoError(t, err)
				m, asked := endpoint(t, openai.Options{API: api}, func(w http.ResponseWriter, _ []byte) { sendEvents(w, string(text)) })
				r := inference.Request{Model: "gpt-5.2", Messages: []inference.Message{inference.User("Hello")}}
				answer, err := inference.Collect(m.Stream(context.Background(), r))
				require.NoError(t, err)
				require.NoError(t, inference.ValidateResponse(answer))

				r.Messages = append(r.Messages, answer.Message)
				for _, c := range answer.Message.ToolCalls {
					r.Messages = append(r.Messages, inference.ToolMessage(inference.ToolResult{CallID: c.ID, Content: "sun"}))
				}
				_, err = inference.Collect(m.Stream(context.Background(), r))
				require.NoError(t, err)
				_, body := asked()
				var sent struct{ Input, Messages json.RawMessage }
				require.NoError(t, json.Unmarshal(body, &sent))

				got, err := inference.ToJSON(map[string]any{"answer": answer, "sent_back": append(sent.Input, sent.Messages...)})
				require.NoError(t, err)
				var pretty bytes.Buffer
				require.NoError(t, json.Indent(&pretty, []byte(got), "", "  "))
				pretty.WriteByte('\n')
				golden := strings.TrimSuffix(name, ".sse") + ".json"
				if *update {
					require.NoError(t, os.WriteFile(golden, pretty.Bytes(), 0o644))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				require.Equal(t, string(want), pretty.String())
			})
		}
	}
}
