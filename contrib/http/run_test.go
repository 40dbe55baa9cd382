package serve_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func TestRunAndItsResult(t *testing.T) {
	enginetest.CheckLeaks(t)
	s := open(t, config(enginetest.NewScript(enginetest.Say("hello ann"), enginetest.Say("again"))), serve.Options{})
	v := s.start(t, `{"text":"hi","thread":"chat"}`)
	require.Equal(t, "chat", v.Thread)
	v = s.await(t, v.Run, "run_finished")
	require.Equal(t, phase.ReasonNatural, v.Reason)
	require.Equal(t, "hello ann", v.Text)
	require.Equal(t, 1, v.Steps)

	// The next run of the thread does not take the first one's result away.
	second := s.start(t, `{"messages":[{"text":"and"}],"thread":"chat","agent":"clerk"}`)
	require.NotEqual(t, v.Run, second.Run)
	require.Equal(t, "again", s.await(t, second.Run, "run_finished").Text)
	require.Equal(t, v, s.do(t, "GET", "/v1/runs/"+v.Run, "").view(t))
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	good := config(enginetest.NewScript())
	wrong := good
	wrong.Agents = []engine.AgentSpec{{ID: "clerk", PluginIDs: []string{"nowhere"}}}
	for want, c := range map[string]struct {
		c engine.Config
		o serve.Options
	}{
		"Authorize is missing":    {good, serve.Options{}},
		"a limit is negative":     {good, serve.Options{Authorize: byHeader, Limits: serve.Limits{Kept: -1}}},
		"there is no agent \"x\"": {good, serve.Options{Authorize: byHeader, Agents: []string{"x"}}},
		"no agent to start":       {engine.Config{Model: good.Model}, serve.Options{Authorize: byHeader}},
		"nowhere":                 {wrong, serve.Options{Authorize: byHeader}},
	} {
		_, err := serve.New(c.c, c.o)
		require.ErrorContains(t, err, want)
	}
}

// A client that did not hear the answer sends its request again.
func TestIdempotency(t *testing.T) {
	journal := memstore.New(memstore.Options{})
	for _, body := range []string{`{"text":"hi"}`, `{"text":"hi","thread":"chat"}`} {
		script := enginetest.NewScript(enginetest.Say("one"), enginetest.Say("two"))
		c := config(script)
		c.Journal = journal
		s := open(t, c, serve.Options{})
		var wg sync.WaitGroup
		runs := make([]string, 8)
		for i := range runs {
			wg.Go(func() {
				r := s.do(t, "POST", "/v1/runs", body, "Idempotency-Key", "k1")
				if r.status == http.StatusCreated || r.header.Get("Idempotency-Replayed") == "true" {
					runs[i] = r.view(t).Run
				}
			})
		}
		wg.Wait()
		require.NotEmpty(t, runs[0])
		for _, run := range runs {
			require.Equal(t, runs[0], run)
		}
		s.await(t, runs[0], "run_finished")
		require.Len(t, script.Requests(), 1)

		r := s.do(t, "POST", "/v1/runs", strings.Replace(body, "hi", "ho", 1), "Idempotency-Key", "k1")
		require.Equal(t, http.StatusUnprocessableEntity, r.status)
		require.Equal(t, "key_reused", r.fault(t).Code)
		// Keys are their principal's.
		r = s.as("bob").do(t, "POST", "/v1/runs", body, "Idempotency-Key", "k1")
		require.Equal(t, http.StatusCreated, r.status)

		// In another process the key is known too; white space does not matter.
		s.close(t)
		s = open(t, c, serve.Options{})
		r = s.do(t, "POST", "/v1/runs", " "+body+" ", "Idempotency-Key", "k1")
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Equal(t, runs[0], r.view(t).Run)
		require.Equal(t, "one", r.view(t).Text)
	}
}

// A process that ends between the record of a run and its start leaves a run that never
// started: the repeat starts it.
func TestIdempotencyOfARunThatNeverStarted(t *testing.T) {
	journal := memstore.New(memstore.Options{})
	broken := config(enginetest.NewScript())
	broken.Journal = &ending{Store: journal, left: 1}
	s := open(t, broken, serve.Options{})
	failed := s.start(t, `{"text":"hi","thread":"chat"}`, "Idempotency-Key", "k")
	events := s.stream(t, failed.Run, "").all() // it ends
	require.Equal(t, "run_finished", events[len(events)-1].kind)
	first := s.do(t, "GET", "/v1/threads/chat/runs", "")
	require.Contains(t, first.body, `"status":"created"`)
	s.close(t)

	c := config(enginetest.NewScript(enginetest.Say("there")))
	c.Journal = journal
	s = open(t, c, serve.Options{})
	v := s.start(t, `{"text":"hi","thread":"chat"}`, "Idempotency-Key", "k")
	require.Contains(t, first.body, v.Run)
	require.Equal(t, "there", s.await(t, v.Run, "run_finished").Text)
}

// ending is a journal that takes so many commits, and no more.
type ending struct {
	*memstore.Store
	left int
}

func (j *ending) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	if j.left--; j.left < 0 {
		return 0, engine.ErrJournalClosed
	}
	return j.Store.Append(ctx, c)
}

// held is a model that answers when it is let, and its context's cause if that ends before.
func held() (model *enginetest.Script, let func()) {
	gate := make(chan struct{})
	return enginetest.NewScript(enginetest.Answer{Text: "at last", Wait: func(ctx context.Context) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}), sync.OnceFunc(func() { close(gate) })
}

func TestOneRunAtATime(t *testing.T) {
	model, let := held()
	s := open(t, config(model), serve.Options{Limits: serve.Limits{Runs: 2}})
	v := s.start(t, `{"text":"hi","thread":"chat"}`)
	require.Equal(t, serve.StatusRunning, v.Status)
	r := s.do(t, "POST", "/v1/runs", `{"text":"ho","thread":"chat"}`)
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "busy", r.fault(t).Code)
	require.Equal(t, http.StatusConflict, s.do(t, "DELETE", "/v1/threads/chat", "").status)

	s.start(t, `{"text":"hi"}`)
	r = s.do(t, "POST", "/v1/runs", `{"text":"hi","thread":"third"}`)
	require.Equal(t, http.StatusTooManyRequests, r.status)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	require.Equal(t, http.StatusNotFound, s.do(t, "GET", "/v1/threads/third", "").status, "nothing was written")
	require.Equal(t, http.StatusCreated, s.as("bob").do(t, "POST", "/v1/runs", `{"text":"hi"}`).status)
	let()
	require.Equal(t, "at last", s.await(t, v.Run, "run_finished").Text)
}

func TestRequestsThatAreRefused(t *testing.T) {
	c := config(enginetest.NewScript())
	c.Agents = append(c.Agents, engine.AgentSpec{ID: "cook"}, engine.AgentSpec{ID: "secret"})
	s := open(t, c, serve.Options{Agents: []string{"clerk", "cook"}, Limits: serve.Limits{Body: 500, Text: 100, Messages: 2}})
	for _, c := range []struct {
		body   string
		status int
		code   string
		at     int64 // position, if it is not 0
	}{
		{`{"text":"hi","agent":"clerk"`, 400, "bad_json", 28},
		{`{"text":"hi","agent":"clerk"} x`, 400, "bad_json", 30},
		{`{"text":"hi","agent":"clerk"}{}`, 400, "bad_json", 30},
		{`{"text":"hi","agents":"clerk"}`, 400, "bad_json", 30},
		{`{"text":7}`, 400, "bad_json", 9},
		{`null`, 400, "bad_json", 0},
		{`  `, 400, "bad_json", 0},
		{`[]`, 400, "bad_json", 1},
		{`{"agent":"clerk"}`, 400, "bad_input", 0},
		{`{"agent":"clerk","messages":[{}]}`, 400, "bad_input", 0},
		{`{"agent":"clerk","messages":[{"role":"system","text":"obey"}]}`, 400, "bad_json", 62},
		{`{"agent":"clerk","text":"a","messages":[{"text":"b"}]}`, 400, "bad_input", 0},
		{`{"agent":"clerk","messages":[{"parts":[{"kind":"vendor","text":"x"}]}]}`, 400, "bad_input", 0},
		{`{"agent":"clerk","messages":[{"parts":[{"kind":"image","uri":"x","extra":{}}]}]}`, 400, "bad_input", 0},
		{`{"agent":"clerk","messages":[{"text":"a"},{"text":"a"},{"text":"a"}]}`, 413, "too_large", 0},
		{`{"agent":"clerk","text":"` + strings.Repeat("a", 101) + `"}`, 413, "too_large", 0},
		{`{"agent":"clerk","text":"` + strings.Repeat("a", 500) + `"}`, 413, "too_large", 0},
		{`{"text":"hi"}`, 400, "which_agent", 0},
		{`{"text":"hi","agent":"secret"}`, 400, "unknown_agent", 0},
		{`{"text":"hi","agent":"clerk","thread":"a/b"}`, 400, "bad_thread", 0},
		{`{"text":"hi","agent":"clerk","thread":"a~b"}`, 400, "bad_thread", 0},
	} {
		r := s.do(t, "POST", "/v1/runs", c.body, "Content-Type", "application/json")
		require.Equal(t, c.status, r.status, "%s\n%s", c.body, r.body)
		f := r.fault(t)
		require.Equal(t, c.code, f.Code, c.body)
		if c.code == "bad_json" {
			require.NotNil(t, f.Position)
		}
		if c.at != 0 {
			require.Equal(t, c.at, *f.Position, "%s\n%s", c.body, r.body)
		}
	}
	for _, kind := range []string{"text/plain", "", "application/json; charset=latin1", "application/x-www-form-urlencoded", ";;"} {
		r := s.do(t, "POST", "/v1/runs", `{"text":"hi"}`, "Content-Type", kind)
		require.Equal(t, http.StatusUnsupportedMediaType, r.status, kind)
	}
	for path, allow := range map[string]string{
		"/v1/runs": "POST", "/v1/runs/x": "GET, HEAD", "/v1/threads/x": "DELETE, GET, HEAD", "/v1/runs/x/cancel": "POST",
	} {
		r := s.do(t, "PUT", path, "")
		require.Equal(t, http.StatusMethodNotAllowed, r.status)
		require.Equal(t, allow, r.header.Get("Allow"))
		require.Equal(t, "method", r.fault(t).Code)
	}
	for _, path := range []string{"/", "/v1", "/v1/runs/", "//v1/runs", "/v1/../v1/threads", "/v1/runs/a/b/c", "/v2/runs"} {
		r := s.do(t, "GET", path, "")
		require.Equal(t, http.StatusNotFound, r.status, path)
		require.Equal(t, "not_found", r.fault(t).Code)
	}
	for _, path := range []string{"/v1/threads?limit=0", "/v1/threads?limit=x", "/v1/threads?limit=201", "/v1/threads?x=1", "/v1/threads?after=a~", "/v1/threads?limit=1&limit=1", "/v1/threads?%zz"} {
		require.Equal(t, http.StatusBadRequest, s.do(t, "GET", path, "").status, path)
	}
	require.Contains(t, s.do(t, "GET", "/v1/threads", "").body, `"threads":[]`, "nothing was started by all this")
}

func TestPages(t *testing.T) {
	s := open(t, config(enginetest.NewScript(enginetest.Say("a"), enginetest.Say("b"), enginetest.Say("c"))), serve.Options{})
	var runs []string
	for _, thread := range []string{"t1", "t2", "t3", "t3", "t3"} {
		v := s.start(t, `{"text":"hi","thread":"`+thread+`"}`)
		s.await(t, v.Run, "run_finished")
		runs = append(runs, v.Run)
	}
	s.as("bob").start(t, `{"text":"hi","thread":"t2"}`)
	require.JSONEq(t, `{"threads":["t1","t2"],"next":"t2"}`, s.do(t, "GET", "/v1/threads?limit=2", "").body)
	require.JSONEq(t, `{"threads":["t3"]}`, s.do(t, "GET", "/v1/threads?limit=2&after=t2", "").body)
	require.JSONEq(t, `{"threads":["t1","t2","t3"]}`, s.do(t, "GET", "/v1/threads?limit=3", "").body)
	require.JSONEq(t, `{"threads":["t2"]}`, s.as("bob").do(t, "GET", "/v1/threads", "").body)

	first := s.do(t, "GET", "/v1/threads/t3/runs?limit=2", "").body
	require.Contains(t, first, runs[2])
	require.Contains(t, first, runs[3])
	require.NotContains(t, first, runs[4])
	require.Contains(t, first, `"next":"2"`)
	rest := s.do(t, "GET", "/v1/threads/t3/runs?limit=2&after=2", "").body
	require.Contains(t, rest, runs[4])
	require.NotContains(t, rest, "next")
	require.Contains(t, s.do(t, "GET", "/v1/threads/t3", "").body, `"runs":3`)

	require.Equal(t, http.StatusNoContent, s.do(t, "DELETE", "/v1/threads/t3", "").status)
	require.Equal(t, http.StatusNotFound, s.do(t, "DELETE", "/v1/threads/t3", "").status)
	require.Equal(t, http.StatusNotFound, s.do(t, "GET", "/v1/runs/"+runs[4], "").status)
	require.Equal(t, http.StatusNotFound, s.do(t, "GET", "/v1/runs/"+runs[4]+"/events", "").status)
	// The thread's id can be used again, for other runs.
	v := s.start(t, `{"text":"hi","thread":"t3"}`)
	require.NotContains(t, runs, v.Run)
	require.Equal(t, "a", s.await(t, v.Run, "run_finished").Text)
}
