package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// replying is a way to a service that replies the same to everybody.
func replying(status int, kind, body string) *http.Client {
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})}
}

// FuzzAnswer: whatever a service says, the outcome is an answer or a Failure, and an answer can go back.
func FuzzAnswer(f *testing.F) {
	names, err := filepath.Glob("testdata/answers/*/*.sse")
	require.NoError(f, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(200, true, string(text))
	}
	for _, refusal := range failures {
		f.Add(refusal.Reply.Status, false, refusal.Reply.Body)
	}
	f.Add(200, false, wholeResponse(modeltest.Answer{Text: []string{"Yes."}, Stop: inference.StopEnd}).Body)
	f.Add(200, true, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"id\":\"a\",\"function\":{\"name\":\"f\"}},{\"index\":0}]}}]}\n\n")
	f.Fuzz(func(t *testing.T, status int, stream bool, body string) {
		status = 200 + int(uint(status)%400)
		kind := "application/json"
		if stream {
			kind = "text/event-stream"
		}
		for _, api := range []openai.API{openai.Responses, openai.ChatCompletions} {
			m, err := openai.New(openai.Options{BaseURL: "http://models.invalid", API: api, HTTPClient: replying(status, kind, body)})
			require.NoError(t, err)
			r := inference.Request{Model: "m", Messages: []inference.Message{inference.User("Hello")}}
			ask := func() (inference.Response, error) {
				if stream {
					return inference.Collect(m.Stream(context.Background(), r))
				}
				return m.Generate(context.Background(), r)
			}
			answer, err := ask()
			if err != nil {
				var failure *resilient.Failure
				require.ErrorAs(t, err, &failure)
				require.NotEqual(t, resilient.Cancelled, failure.Class)
				continue
			}
			r.Messages = append(r.Messages, answer.Message)
			_, err = ask()
			require.False(t, errors.Is(err, resilient.BadRequest), "an answer cannot go back: %v", err)
		}
	})
}
