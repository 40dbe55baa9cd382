package serve_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct{ decision, want string }{
		"approve":         {`{"approved":true}`, "ann paid xxx"},
		"approve by call": {`{"approved":true,"call":"c1"}`, "ann paid xxx"},
		"edit":            {`{"approved":true,"args":{"amount":5}}`, "ann paid xxxxx"},
		"deny":            {`{"approved":false,"reason":"too dear"}`, "too dear"},
		"nobody":          {`{"cancel":true}`, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, config(asking()), serve.Options{})
			v := s.await(t, s.start(t, `{"text":"go"}`).Run, "run_suspended")
			require.Len(t, v.Tickets, 1)
			require.Equal(t, "Pay?", v.Tickets[0].Message)
			require.True(t, strings.HasPrefix(v.Tickets[0].ID, v.Run+"/"), v.Tickets[0].ID)
			sub := s.stream(t, v.Run, v.Last)
			r := s.do(t, "POST", "/v1/runs/"+v.Run+"/decisions", `{"decisions":[`+c.decision+`]}`)
			require.Equal(t, http.StatusOK, r.status, r.body)
			told := ""
			for _, e := range sub.all() {
				if e.kind == "tool_finished" {
					told += e.data
				}
			}
			require.Contains(t, told, c.want)
			require.Equal(t, "paid", s.finished(t, v.Run).Text)
		})
	}
}

// Of many answers to one ticket one counts; the others learn that it was late.
func TestOneAnswerCounts(t *testing.T) {
	s := open(t, config(asking()), serve.Options{})
	v := s.await(t, s.start(t, `{"text":"go"}`).Run, "run_suspended")
	path, ticket := "/v1/runs/"+v.Run+"/decisions", v.Tickets[0].ID
	var wg sync.WaitGroup
	var counted atomic.Int32
	for range 16 {
		wg.Go(func() {
			r := s.do(t, "POST", path, `{"decisions":[{"approved":true,"ticket":"`+ticket+`"}]}`)
			if r.status == http.StatusOK {
				counted.Add(1)
			} else if r.status != http.StatusConflict {
				t.Error(r.status, r.body)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, counted.Load())
	s.finished(t, v.Run)
	require.Equal(t, http.StatusConflict, s.do(t, "POST", path, `{"decisions":[{"approved":true,"ticket":"`+ticket+`"}]}`).status)
}

func TestDecisionsThatAreRefused(t *testing.T) {
	s := open(t, config(asking()), serve.Options{})
	v := s.await(t, s.start(t, `{"text":"go"}`).Run, "run_suspended")
	for _, c := range []struct {
		body   string
		status int
		code   string
	}{
		{`{"decisions":[{"approved":true,"ticket":"nonsense"}]}`, 404, "unknown_ticket"},
		{`{"decisions":[{"approved":true,"call":"c9"}]}`, 404, "unknown_ticket"},
		{`{"decisions":[{"approved":true},{"approved":false,"call":"c1"}]}`, 409, "repeated"},
		{`{"decisions":[{}]}`, 400, "bad_decision"},
		{`{"decisions":[{"approved":true,"cancel":true}]}`, 400, "bad_decision"},
		{`{"decisions":[{"approved":true,"id":"` + strings.Repeat("x", 201) + `"}]}`, 400, "bad_decision"},
		{`{"decisions":[{"approve":true}]}`, 400, "bad_json"},
		{`{"decisions":true}`, 400, "bad_json"},
	} {
		r := s.do(t, "POST", "/v1/runs/"+v.Run+"/decisions", c.body)
		require.Equal(t, c.status, r.status, "%s\n%s", c.body, r.body)
		require.Equal(t, c.code, r.fault(t).Code)
	}
	require.Equal(t, v.Tickets, s.do(t, "GET", "/v1/runs/"+v.Run, "").view(t).Tickets, "nothing was applied")
	r := s.do(t, "POST", "/v1/runs", `{"text":"more","thread":"`+v.Thread+`"}`)
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "waiting", r.fault(t).Code)
}

// A run that waits is decided in another process, once; a decision that is sent again
// changes nothing.
func TestDecisionsAfterARestart(t *testing.T) {
	c := config(asking())
	c.Journal = memstore.New(memstore.Options{})
	s := open(t, c, serve.Options{})
	v := s.await(t, s.start(t, `{"text":"go","thread":"a"}`).Run, "run_suspended")
	s.close(t)

	s = open(t, c, serve.Options{})
	body := `{"decisions":[{"id":"d1","approved":true,"ticket":"` + v.Tickets[0].ID + `"}]}`
	path := "/v1/runs/" + v.Run + "/decisions"
	require.Equal(t, http.StatusNotFound, s.as("bob").do(t, "POST", path, body).status)
	for range 3 {
		r := s.do(t, "POST", path, body)
		require.Equal(t, http.StatusOK, r.status, r.body)
	}
	require.Equal(t, "paid", s.finished(t, v.Run).Text)
	require.Equal(t, http.StatusOK, s.do(t, "POST", path, body).status)
	s.close(t)
	s = open(t, c, serve.Options{})
	require.Equal(t, http.StatusOK, s.do(t, "POST", path, body).status)
	r := s.do(t, "POST", path, `{"decisions":[{"approved":true}]}`)
	require.Equal(t, http.StatusConflict, r.status, r.body)
	require.Equal(t, "not_waiting", r.fault(t).Code)
}

func TestCancel(t *testing.T) {
	model, let := held()
	defer let()
	s := open(t, config(model), serve.Options{})
	v := s.start(t, `{"text":"go"}`)
	path := "/v1/runs/" + v.Run + "/cancel"
	require.Equal(t, http.StatusBadRequest, s.do(t, "POST", path, `{}`).status)
	require.Equal(t, http.StatusNotFound, s.as("bob").do(t, "POST", path, "").status)
	require.Equal(t, http.StatusAccepted, s.do(t, "POST", path, "").status)
	v = s.finished(t, v.Run)
	require.Equal(t, phase.ReasonCancelled, v.Reason)
	require.Equal(t, http.StatusOK, s.do(t, "POST", path, "").status, "a second time")
	s.start(t, `{"text":"again","thread":"`+v.Thread+`"}`)
}

// Fault B34. Who hears of a question can answer it at once, here or in another process.
func TestAnswersAtOnce(t *testing.T) {
	for i := range 50 {
		c := config(asking())
		c.Journal, c.Owner = memstore.New(memstore.Options{}), "one"
		one := open(t, c, serve.Options{})
		at := one
		if i%2 == 0 {
			c.Owner = "two"
			at = open(t, c, serve.Options{})
		}
		v := one.start(t, `{"text":"go"}`)
		sub := one.stream(t, v.Run, "")
		for e := range sub.events {
			if e.kind == "run_suspended" {
				r := at.do(t, "POST", "/v1/runs/"+v.Run+"/decisions", `{"decisions":[{"approved":true}]}`)
				require.Equal(t, http.StatusOK, r.status, r.body)
				break
			}
		}
		sub.close()
		require.Equal(t, "paid", at.finished(t, v.Run).Text)
		at.close(t)
		one.close(t)
	}
}

// A run that waits can be cancelled as well, also in another process: nothing is paid.
func TestCancelOfARunThatWaits(t *testing.T) {
	for _, restart := range []bool{false, true} {
		c := config(asking())
		c.Journal = memstore.New(memstore.Options{})
		s := open(t, c, serve.Options{Limits: serve.Limits{Runs: 1}})
		v := s.await(t, s.start(t, `{"text":"go","thread":"a"}`).Run, "run_suspended")
		if restart {
			s.close(t)
			s = open(t, c, serve.Options{Limits: serve.Limits{Runs: 1}})
		}
		r := s.do(t, "POST", "/v1/runs/"+v.Run+"/cancel", "")
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Equal(t, serve.StatusDone, r.view(t).Status)
		require.Equal(t, phase.ReasonCancelled, r.view(t).Reason)
		require.Empty(t, r.view(t).Tickets)
		r = s.do(t, "POST", "/v1/runs/"+v.Run+"/decisions", `{"decisions":[{"approved":true,"ticket":"`+v.Tickets[0].ID+`"}]}`)
		require.Equal(t, http.StatusConflict, r.status, r.body)
	}
}

// A run whose process ended while it was under way goes on with no decisions at all, or
// is cancelled.
func TestRunsThatWereInterrupted(t *testing.T) {
	for _, off := range []bool{false, true} {
		journal := memstore.New(memstore.Options{})
		c := config(enginetest.NewScript(enginetest.Say("there")))
		dying := &ending{Store: journal, left: 4}
		c.Journal = dying
		s := open(t, c, serve.Options{})
		v := s.start(t, `{"text":"hi","thread":"a"}`)
		s.stream(t, v.Run, "").all()
		s.close(t)

		c.Journal = journal
		s = open(t, c, serve.Options{})
		v = s.do(t, "GET", "/v1/runs/"+v.Run, "").view(t)
		require.Equal(t, serve.StatusInterrupted, v.Status)
		r := s.do(t, "POST", "/v1/runs", `{"text":"more","thread":"a"}`)
		require.Equal(t, "interrupted", r.fault(t).Code)
		if off {
			v = s.do(t, "POST", "/v1/runs/"+v.Run+"/cancel", "").view(t)
			require.Equal(t, serve.StatusDone, v.Status)
			require.Equal(t, phase.ReasonCancelled, v.Reason)
			continue
		}
		r = s.do(t, "POST", "/v1/runs/"+v.Run+"/decisions", `{"decisions":[]}`)
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Equal(t, "there", s.finished(t, v.Run).Text)
	}
}

// Two processes share a journal that leases threads: while a run is under way in one, the
// other one leaves it alone.
func TestRunsThatAreElsewhere(t *testing.T) {
	model, let := held()
	defer let()
	c := config(model)
	c.Journal, c.Owner = memstore.New(memstore.Options{}), "one"
	one := open(t, c, serve.Options{})
	v := one.await(t, one.start(t, `{"text":"hi","thread":"a"}`).Run, "inference_started")
	c.Owner = "two"
	two := open(t, c, serve.Options{})
	require.Equal(t, serve.StatusInterrupted, two.do(t, "GET", "/v1/runs/"+v.Run, "").view(t).Status)
	for path, body := range map[string]string{"decisions": `{"decisions":[]}`, "cancel": ""} {
		r := two.do(t, "POST", "/v1/runs/"+v.Run+"/"+path, body)
		require.Equal(t, http.StatusConflict, r.status, r.body)
		require.Equal(t, "elsewhere", r.fault(t).Code)
		require.NotEmpty(t, r.header.Get("Retry-After"))
	}
	let()
	require.Equal(t, "at last", one.finished(t, v.Run).Text)
	require.Equal(t, "at last", two.do(t, "GET", "/v1/runs/"+v.Run, "").view(t).Text)
}

// Fault B27. A decision that does not say what it is about, or a batch of which one is
// about nothing, changes nothing; a good one after it works.
//
// Fault B28. A call that was denied has its one result, in its place, like the others.
func TestDecisionsAboutSeveralTickets(t *testing.T) {
	script := enginetest.NewScript(
		enginetest.Call("c1", "pay", map[string]int{"amount": 1}).And(enginetest.Call("c2", "pay", map[string]int{"amount": 2})), enginetest.Say("paid"))
	c := config(script)
	c.Agents[0].ToolExecution = engine.ToolsParallel
	s := open(t, c, serve.Options{})
	v := s.await(t, s.start(t, `{"text":"go"}`).Run, "run_suspended")
	require.Len(t, v.Tickets, 2)
	path := "/v1/runs/" + v.Run + "/decisions"
	r := s.do(t, "POST", path, `{"decisions":[{"approved":true}]}`)
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Equal(t, "ambiguous", r.fault(t).Code)
	r = s.do(t, "POST", path, `{"decisions":[{"call":"c1","approved":true},{"call":"c9","approved":true}]}`)
	require.Equal(t, http.StatusNotFound, r.status)
	require.Equal(t, 1, *r.fault(t).Decision)
	now := s.do(t, "GET", "/v1/runs/"+v.Run, "").view(t)
	require.Equal(t, v.Tickets, now.Tickets)

	sub := s.stream(t, v.Run, now.Last)
	r = s.do(t, "POST", path, `{"decisions":[{"call":"c2","approved":true}]}`)
	require.Equal(t, http.StatusOK, r.status, r.body)
	for e := range sub.events {
		if e.kind == "run_suspended" {
			break
		}
	}
	sub.close()
	r = s.do(t, "POST", path, `{"decisions":[{"call":"c1","approved":false,"reason":"not now"}]}`)
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Equal(t, "paid", s.finished(t, v.Run).Text)
	messages := script.Requests()[1].Messages
	results := messages[len(messages)-2:]
	require.Equal(t, "c1", results[0].Result.CallID)
	require.Contains(t, results[0].Result.Content, "not now")
	require.Equal(t, "ann paid xx", results[1].Result.Content)
}
