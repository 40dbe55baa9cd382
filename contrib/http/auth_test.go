package serve_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// routes are those of the API's description, with the ids of one thread and run in them.
func routes(t testing.TB, thread, run string) (all [][2]string) {
	for _, o := range operations(t) {
		path := strings.NewReplacer("{thread}", thread, "{run}", run, "{agent}", "clerk").Replace(o.path)
		all = append(all, [2]string{strings.ToUpper(o.method), path})
	}
	return all
}

// Whatever a principal does with the ids of another one's threads and runs, it gets what
// it would get if they did not exist, word for word, and nothing happens to them; after
// a restart too.
func TestNobodyReachesWhatIsAnothers(t *testing.T) {
	c := config(asking())
	c.Journal = memstore.New(memstore.Options{})
	s := open(t, c, serve.Options{})
	v := s.await(t, s.start(t, `{"text":"go","thread":"chat"}`).Run, "run_suspended")
	body := map[string]string{
		"decisions": `{"decisions":[{"approved":true,"ticket":"` + v.Tickets[0].ID + `"}]}`,
	}
	for _, restart := range []bool{false, true} {
		if restart {
			s.close(t)
			s = open(t, c, serve.Options{})
		}
		bob := s.as("bob")
		theirs, nobodys := routes(t, "chat", v.Run), routes(t, "chut", strings.Replace(v.Run, "chat", "chut", 1))
		reached := 0
		for i := range theirs {
			method, path := theirs[i][0], theirs[i][1]
			if !strings.Contains(path, "chat") {
				continue // it has no id of another's
			}
			reached++
			text := body[path[strings.LastIndexByte(path, '/')+1:]]
			got, other := bob.do(t, method, path, text), bob.do(t, method, nobodys[i][1], text)
			require.Equal(t, http.StatusNotFound, got.status, path)
			require.Equal(t, other.status, got.status)
			require.Equal(t, other.body, got.body)
			got.header.Del("Date")
			other.header.Del("Date")
			require.Equal(t, other.header, got.header)
		}
		require.Equal(t, 7, reached)
		require.JSONEq(t, `{"threads":[]}`, bob.do(t, "GET", "/v1/threads", "").body)
		now := s.do(t, "GET", "/v1/runs/"+v.Run, "").view(t)
		require.Equal(t, v.Tickets, now.Tickets)
	}
	// A thread of the same name is another thread, and takes nothing from the first.
	bob := s.as("bob")
	mine := bob.await(t, bob.start(t, `{"text":"go","thread":"chat"}`).Run, "run_suspended")
	r := bob.do(t, "POST", "/v1/runs/"+mine.Run+"/decisions", body["decisions"])
	require.Equal(t, http.StatusNotFound, r.status, "a ticket of another's run: %s", r.body)
	answer := bob.do(t, "POST", "/v1/agui/clerk", `{"threadId":"chat","runId":"r2","messages":[],"resume":[{"interruptId":"`+v.Tickets[0].ID+`","status":"cancelled"}]}`)
	require.Equal(t, http.StatusNotFound, answer.status, answer.body)
	require.Equal(t, http.StatusNoContent, deleteAfterCancel(t, bob, mine))
	require.Equal(t, v.Tickets, s.do(t, "GET", "/v1/runs/"+v.Run, "").view(t).Tickets)
}

func deleteAfterCancel(t testing.TB, s *site, v serve.View) int {
	require.Equal(t, http.StatusOK, s.do(t, "POST", "/v1/runs/"+v.Run+"/cancel", "").status)
	return s.do(t, "DELETE", "/v1/threads/"+v.Thread, "").status
}

// Who is nobody learns nothing, on no route, and nothing of why.
func TestNobody(t *testing.T) {
	s := open(t, config(enginetest.NewScript()), serve.Options{Authorize: func(r *http.Request) (serve.Principal, error) {
		if r.Header.Get("X-User") == "empty" {
			return serve.Principal{}, nil
		}
		return serve.Principal{ID: "x"}, errors.New("the database is at 10.0.0.1")
	}})
	paths := append(routes(t, "chat", "chat.1-x"), [2]string{"PUT", "/v1/runs"}, [2]string{"GET", "/nowhere"}, [2]string{"GET", "//"})
	for _, user := range []string{"ann", "empty"} {
		var first string
		for _, p := range paths {
			r := s.as(user).do(t, p[0], p[1], "")
			require.Equal(t, http.StatusUnauthorized, r.status, p)
			require.NotEmpty(t, r.header.Get("WWW-Authenticate"))
			if first == "" {
				first = r.body
			}
			require.Equal(t, first, r.body)
			require.NotContains(t, r.body, "10.0.0.1")
		}
	}
}

// Runs outlive the connections that they were started by.
func TestARunOutlivesItsClient(t *testing.T) {
	enginetest.CheckLeaks(t)
	model, let := held()
	s := open(t, config(model), serve.Options{})
	ctx, gone := context.WithCancel(t.Context())
	resp, err := s.http.Client().Do(s.request(t, "POST", "/v1/agui/clerk", `{"threadId":"a","runId":"r","messages":[{"role":"user","content":"hi"}]}`).WithContext(ctx))
	require.NoError(t, err)
	run := strings.TrimPrefix(resp.Header.Get("Location"), "/v1/runs/")
	gone()
	resp.Body.Close()
	let()
	require.Equal(t, "at last", s.finished(t, run).Text)
}

// A server that shuts down takes nothing new, lets runs end, ends streams with a hint to
// come back, and cancels what takes too long.
func TestShutdown(t *testing.T) {
	enginetest.CheckLeaks(t)
	for _, patient := range []bool{true, false} {
		c := config(enginetest.NewScript())
		model, let := held()
		c.Models = map[string]inference.Model{"slow": model, "asking": asking()}
		c.Agents[0].ModelID = "asking"
		c.Agents = append(c.Agents, c.Agents[0])
		c.Agents[1].ID, c.Agents[1].ModelID = "slow", "slow"
		c.Journal = memstore.New(memstore.Options{})
		s := open(t, c, serve.Options{})
		waits := s.await(t, s.start(t, `{"text":"go","thread":"a","agent":"clerk"}`).Run, "run_suspended")
		quiet := raw(t, s, waits.Run, waits.Last)
		runs := s.start(t, `{"text":"go","thread":"b","agent":"slow"}`)
		busy := s.stream(t, runs.Run, "")
		ctx, impatient := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(ctx) }()
		require.Contains(t, <-quiet, "retry: 5000")
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/v1/runs", `{"text":"go","agent":"clerk","thread":"new"}`},
			{"POST", "/v1/runs/" + waits.Run + "/decisions", `{"decisions":[{"approved":true}]}`},
			{"GET", "/v1/runs/" + waits.Run + "/events", ""},
		} {
			r := s.do(t, c.method, c.path, c.body)
			require.Equal(t, http.StatusServiceUnavailable, r.status, r.body)
			require.NotEmpty(t, r.header.Get("Retry-After"))
		}
		require.Equal(t, serve.StatusRunning, s.do(t, "GET", "/v1/runs/"+runs.Run, "").view(t).Status)
		want := "natural"
		if patient {
			let()
		} else {
			impatient()
			want = "cancelled"
		}
		require.NoError(t, <-ended)
		impatient()
		let()
		all := busy.all()
		require.Equal(t, "run_finished", all[len(all)-1].kind, "to its end")
		require.Contains(t, all[len(all)-1].data, `"reason":"`+want+`"`)
		require.Error(t, s.Shutdown(t.Context()), "a second time")
		s.http.CloseClientConnections()
		s.http.Close()
		s.http = nil

		s = open(t, c, serve.Options{})
		require.Equal(t, http.StatusOK, s.do(t, "POST", "/v1/runs/"+waits.Run+"/decisions", `{"decisions":[{"approved":true}]}`).status)
		require.Equal(t, "paid", s.finished(t, waits.Run).Text)
		s.close(t)
	}
}

// raw gives all that a stream says, once it has ended.
func raw(t testing.TB, s *site, run, last string) <-chan string {
	t.Helper()
	resp, err := s.http.Client().Do(s.request(t, "GET", "/v1/runs/"+run+"/events", "", "Last-Event-ID", last))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text := make(chan string, 1)
	go func() {
		defer resp.Body.Close()
		text <- readAll(resp)
	}()
	return text
}

// A run that does not end holds the shutdown up only for so long.
func TestShutdownOfARunThatDoesNotEnd(t *testing.T) {
	stuck, let := make(chan struct{}), make(chan struct{})
	c := config(enginetest.NewScript(enginetest.Say("x")))
	c.Plugins = append(c.Plugins, engine.NewPlugin("stuck", func(r *engine.Registrar) error {
		r.Hook(phase.RunEnd, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
			close(stuck)
			<-let
			return phase.Command{}, nil
		}))
		return nil
	}))
	s := open(t, c, serve.Options{Limits: serve.Limits{Grace: 10 * time.Millisecond}})
	v := s.start(t, `{"text":"go"}`)
	<-stuck
	said := raw(t, s, v.Run, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, s.Shutdown(ctx), "1 runs do not end")
	require.Contains(t, <-said, "retry: 5000")
	close(let)
	s.http.Close()
	s.http = nil
}
