package gemini_test

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

	"github.com/ddd26017/fixpoint/contrib/model/gemini"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// endpoint serves a handler and returns a model that asks it, and what it was asked last.
func endpoint(t *testing.T, o gemini.Options, handler func(w http.ResponseWriter, body []byte)) (*gemini.Model, func() (http.Header, []byte)) {
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
	m, err := gemini.New(o)
	require.NoError(t, err)
	return m, func() (http.Header, []byte) { return header, body }
}

func sendEvents(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
}

// TestStreams reads streams in testdata: what is made of each, and how it goes back to the service, is beside it.
func TestStreams(t *testing.T) {
	names, err := filepath.Glob("testdata/answers/*.sse")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".sse"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			m, asked := endpoint(t, gemini.Options{}, func(w http.ResponseWriter, _ []byte) { sendEvents(w, string(text)) })
			r := inference.Request{Model: "gemini-3-pro", Messages: []inference.Message{inference.User("Hello")}}
			answer, err := inference.Collect(m.Stream(context.Background(), r))
			require.NoError(t, err)
			require.NoError(t, inference.ValidateResponse(answer))

			r.Messages = append(r.Messages, answer.Message)
			for _, c := range answer.Message.ToolCalls {
				r.Messages = append(r.Messages, inference.ToolMessage(inference.ToolResult{CallID: c.ID, Name: c.Name, Content: "sun"}))
			}
			_, err = inference.Collect(m.Stream(context.Background(), r))
			require.NoError(t, err)
			_, body := asked()
			var sent struct{ Contents json.RawMessage }
			require.NoError(t, json.Unmarshal(body, &sent))

			got, err := inference.ToJSON(map[string]any{"answer": answer, "sent_back": sent.Contents})
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

// FuzzStream: whatever a service sends ends in an answer that can be saved and sent back, or in a failure.
func FuzzStream(f *testing.F) {
	names, err := filepath.Glob("testdata/answers/*.sse")
	require.NoError(f, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
		f.Add(string(text[:len(text)/2]))
	}
	f.Add(errorFrame(503, "UNAVAILABLE", "Overloaded"))
	f.Add(`data: {"candidates":[{"content":{"parts":[{"inlineData":{}}]}}]}`)
	f.Add(`data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":""},"thoughtSignature":"c2ln"}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
		})}
		m, err := gemini.New(gemini.Options{BaseURL: "http://models.example", HTTPClient: client})
		require.NoError(t, err)
		r := inference.Request{Model: "m"}
		answer, err := inference.Collect(m.Stream(context.Background(), r))
		if err != nil {
			var failure *resilient.Failure
			require.ErrorAs(t, err, &failure)
		}
		saved, err := inference.ToJSON(answer.Message)
		require.NoError(t, err)
		require.NoError(t, saved.Decode(&answer.Message))
		r.Messages = []inference.Message{answer.Message}
		_, err = inference.Collect(m.Stream(context.Background(), r))
		require.NotErrorIs(t, err, resilient.BadRequest, "the answer goes back")
	})
}
