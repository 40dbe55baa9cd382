package serve_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/enginetest"
)

// Whatever is sent, the answer is a 2xx or a 4xx, and never a panic.
func FuzzRequests(f *testing.F) {
	c := config(enginetest.NewScript(enginetest.Say("hi")))
	s := open(f, c, serve.Options{Limits: serve.Limits{Runs: 8, Body: 4 << 10, KeepAlive: 1e6}})
	v := s.start(f, `{"text":"go","thread":"chat"}`)
	s.await(f, v.Run, "run_finished")
	for _, r := range routes(f, "chat", v.Run) {
		f.Add(r[0], r[1], "application/json", "", "", "")
		f.Add(r[0], r[1]+"?after=x&limit=2", "application/json; charset=utf-8", `{"text":"x","thread":"chat"}`, "x-1", "key")
	}
	f.Add("POST", "/v1/agui/clerk", "application/json", `{"threadId":"chat","runId":"r","messages":[{"role":"user","content":"x"}],"resume":[{}]}`, "", "")
	f.Add("POST", "/v1/runs/"+v.Run+"/decisions", "application/json", `{"decisions":[{"approved":true,"value":{}}]}`, "", "")
	f.Add("CONNECT", "//v1/%2e%2e/runs/%00", "text/plain", "\xff", "\n", "\x00")
	f.Fuzz(func(t *testing.T, method, target, kind, body, last, key string) {
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method = method
		u, err := r.URL.Parse(target)
		if err != nil {
			return // no server gets such a request
		}
		r.URL, r.RequestURI = u, target
		r.Header.Set("X-User", "ann")
		r.Header.Set("Content-Type", kind)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.True(t, w.Code >= 200 && w.Code < 300 || w.Code >= 400 && w.Code < 500, "%d %s", w.Code, w.Body)
		require.NotContains(t, w.Body.String(), "~0", "no namespace is told")
	})
}
