package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// talkative is a model whose run has many steps; between them it waits for a turn.
func talkative(steps int, turn <-chan struct{}) inference.Model {
	var answers []enginetest.Answer
	for i := range steps {
		a := enginetest.Call(fmt.Sprintf("c%d", i), "look", nil).And(enginetest.Say("step by step by step"))
		a.Wait = func(ctx context.Context) error {
			select {
			case <-turn:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		answers = append(answers, a)
	}
	return enginetest.NewScript(append(answers, enginetest.Say("done"))...)
}

// looking is a configuration whose agent may look around as often as it likes.
func looking(model inference.Model) engine.Config {
	return engine.Config{
		Model: model, Stream: true, Agents: []engine.AgentSpec{{ID: "scout", MaxRounds: 100}},
		Plugins: []engine.Plugin{engine.NewPlugin("eyes", func(r *engine.Registrar) error {
			r.Tool(enginetest.StubTool("look", engine.Text("a wall")))
			return nil
		})},
	}
}

// Whenever a client drops, and wherever it comes back with the last id it saw: what it
// gets, put together, is the run's events, each once and in order; while the run goes on
// and after its end.
func TestClientsThatComeBack(t *testing.T) {
	enginetest.CheckLeaks(t)
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		const steps = 12
		turn := make(chan struct{})
		c := looking(talkative(steps, turn))
		var recorder enginetest.Recorder
		c.Observers = []engine.Observer{&recorder}
		rules := trace.Rules{Chunks: true}
		s := open(t, c, serve.Options{Rules: rules})
		v := s.start(t, `{"text":"go"}`)
		var wg sync.WaitGroup
		got := make([][]told, 3)
		for i := range got {
			random := rand.New(rand.NewPCG(seed, uint64(i)+2))
			wg.Go(func() {
				for last, over := "", false; !over; {
					r := s.request(t, "GET", "/v1/runs/"+v.Run+"/events", "")
					if len(got[i]) > 0 && random.IntN(2) == 0 {
						r.URL.RawQuery = "after=" + last
					} else if last != "" {
						r.Header.Set("Last-Event-ID", last)
					}
					ctx, drop := context.WithCancel(t.Context())
					resp, err := s.http.Client().Do(r.WithContext(ctx))
					if err != nil {
						t.Error(err)
						drop()
						return
					}
					if over = resp.StatusCode == http.StatusNoContent; !over && resp.StatusCode != http.StatusOK {
						t.Errorf("answered with %d", resp.StatusCode)
						over = true
					}
					left := random.IntN(60)
					scan(resp.Body, func(e told) bool {
						got[i], last = append(got[i], e), e.id
						left--
						return left > 0
					})
					drop()
					resp.Body.Close()
				}
			})
		}
		for range steps {
			if random.IntN(3) == 0 {
				s.do(t, "GET", "/v1/runs/"+v.Run, "") // gives clients time to catch up
			}
			turn <- struct{}{}
		}
		wg.Wait()
		s.close(t)
		want := recorder.Run(recordedRun(recorder.Events(), "run_started"))
		require.Greater(t, len(want), 100)
		for _, events := range got {
			require.Len(t, events, len(want))
			for i, e := range events {
				require.Equal(t, want[i].Type(), e.kind)
				line, err := engine.MarshalEvent(trace.Detailed(want[i], rules))
				require.NoError(t, err)
				space, _, _ := strings.Cut(want[i].Head().Thread, "~")
				require.Equal(t, strings.ReplaceAll(string(line), space+"~", ""), e.data)
				var h struct{ Seq int }
				require.NoError(t, json.Unmarshal([]byte(e.data), &h))
				require.Equal(t, i+1, h.Seq)
			}
		}
	}
}

func recordedRun(events []engine.Event, kind string) string {
	for _, e := range events {
		if e.Type() == kind {
			return e.Head().Run
		}
	}
	return ""
}

// What does not fit is gone, and the client is told so, where the run stands and from
// where on there are events.
func TestGaps(t *testing.T) {
	turn := make(chan struct{})
	close(turn)
	s := open(t, looking(talkative(10, turn)), serve.Options{Limits: serve.Limits{Events: 20}})
	v := s.start(t, `{"text":"go"}`)
	last := s.over(t, v.Run)
	stream, _, _ := strings.Cut(last, "-")
	for _, ask := range []string{"", stream + "-0", stream + "-1", stream + "-999999", "other-3", "rubbish", stream + "-x"} {
		r := s.do(t, "GET", "/v1/runs/"+v.Run+"/events", "", "Last-Event-ID", ask)
		require.Equal(t, http.StatusGone, r.status, ask)
		f := r.fault(t)
		require.Equal(t, "gap", f.Code)
		require.Equal(t, "done", f.Run.Text)
		rest := s.stream(t, v.Run, f.After).all()
		require.Len(t, rest, 20)
		require.Equal(t, "run_finished", rest[19].kind)
		require.Equal(t, last, rest[19].id)
	}
	require.Equal(t, http.StatusNoContent, s.do(t, "GET", "/v1/runs/"+v.Run+"/events", "", "Last-Event-ID", last).status)
}

// A client that takes nothing holds nobody up, and hears of what it missed. The connection
// is a pipe, which holds nothing, so that the client is behind for sure.
func TestSlowReaders(t *testing.T) {
	enginetest.CheckLeaks(t)
	turn := make(chan struct{})
	s := open(t, looking(talkative(60, turn)), serve.Options{Limits: serve.Limits{EventBytes: 20 << 10}})
	pipes := make(pipe)
	web := &http.Server{Handler: s}
	go func() { _ = web.Serve(pipes) }() // until it is closed
	defer web.Close()
	transport := &http.Transport{DialContext: pipes.dial}
	defer transport.CloseIdleConnections()
	v := s.start(t, `{"text":"go"}`)
	resp, err := (&http.Client{Transport: transport}).Do(s.request(t, "GET", "/v1/runs/"+v.Run+"/events", ""))
	require.NoError(t, err)
	sub := read(resp, func() {})
	defer sub.close()
	first := <-sub.events
	require.Equal(t, "run_started", first.kind)
	close(turn)
	require.Equal(t, "done", s.finished(t, v.Run).Text)
	s.over(t, v.Run)
	all := sub.all()
	last := all[len(all)-1]
	require.Equal(t, "gap", last.kind)
	var gap struct {
		Code, After string
		Run         serve.View
	}
	require.NoError(t, json.Unmarshal([]byte(last.data), &gap))
	require.Equal(t, "gap", gap.Code)
	rest := s.do(t, "GET", "/v1/runs/"+v.Run+"/events?after="+gap.After, "")
	if rest.status == http.StatusGone { // the run went on since the gap was told
		rest = s.do(t, "GET", "/v1/runs/"+v.Run+"/events?after="+rest.fault(t).After, "")
	}
	require.Equal(t, http.StatusOK, rest.status, rest.body)
	require.Contains(t, rest.body, "\nevent: run_finished\n")
}

// pipe is a listener whose connections are in memory.
type pipe chan net.Conn

func (p pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipe) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipe) Close() error   { close(p); return nil }
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// One principal's runs do not push out the events of another one's.
func TestKeptEventsOfOthers(t *testing.T) {
	s := open(t, config(enginetest.NewScript(enginetest.Say("hi"))), serve.Options{Limits: serve.Limits{Kept: 3}})
	first := s.start(t, `{"text":"go"}`)
	s.await(t, first.Run, "run_finished")
	bob := s.as("bob")
	var last serve.View
	for range 5 {
		last = bob.start(t, `{"text":"go"}`)
		bob.stream(t, last.Run, "").all()
	}
	require.Greater(t, len(s.stream(t, first.Run, "").all()), 1)
	require.Greater(t, len(bob.stream(t, last.Run, "").all()), 1)
}

// over polls until a run's last event was told, which may come after the run is done, and
// returns its id.
func (s *site) over(t testing.TB, run string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		last := s.do(t, "GET", "/v1/runs/"+run, "").view(t).Last
		if s.do(t, "HEAD", "/v1/runs/"+run+"/events?after="+last, "").status == http.StatusNoContent {
			return last
		}
		require.True(t, time.Now().Before(deadline))
	}
}

// finished polls until a run is done.
func (s *site) finished(t testing.TB, run string) serve.View {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		v := s.do(t, "GET", "/v1/runs/"+run, "").view(t)
		if v.Status == serve.StatusDone {
			return v
		}
		require.True(t, time.Now().Before(deadline), v)
	}
}

// In another process there are no events of the past: a stream says where the run stands
// and goes on from there.
func TestStreamsAfterARestart(t *testing.T) {
	c := config(asking())
	c.Journal = memstore.New(memstore.Options{})
	s := open(t, c, serve.Options{})
	waits := s.await(t, s.start(t, `{"text":"go","thread":"a"}`).Run, "run_suspended")
	s.close(t)

	s = open(t, c, serve.Options{})
	r := s.do(t, "GET", "/v1/runs/"+waits.Run+"/events", "", "Last-Event-ID", waits.Last)
	require.Equal(t, http.StatusGone, r.status)
	f := r.fault(t)
	require.Equal(t, serve.StatusWaiting, f.Run.Status)
	require.Equal(t, waits.Tickets, f.Run.Tickets)

	fresh, later := s.stream(t, waits.Run, ""), s.stream(t, waits.Run, f.After)
	state := <-fresh.events
	require.Equal(t, "state", state.kind)
	require.Contains(t, state.data, `"status":"waiting"`)
	require.Equal(t, http.StatusOK, s.do(t, "POST", "/v1/runs/"+waits.Run+"/decisions", `{"decisions":[{"approved":true}]}`).status)
	events := fresh.all()
	require.Equal(t, events, later.all())
	require.Equal(t, "run_resumed", events[0].kind)
	require.Equal(t, "run_finished", events[len(events)-1].kind)
	s.close(t)

	s = open(t, c, serve.Options{})
	all := s.stream(t, waits.Run, "").all()
	require.Len(t, all, 1)
	require.Equal(t, "state", all[0].kind)
	require.Contains(t, all[0].data, `"text":"paid"`)
	require.Equal(t, http.StatusNoContent, s.do(t, "GET", "/v1/runs/"+waits.Run+"/events", "", "Last-Event-ID", all[0].id).status)
	r = s.do(t, "GET", "/v1/runs/"+waits.Run+"/events", "", "Last-Event-ID", events[0].id)
	require.Equal(t, http.StatusGone, r.status)
}

// Nothing is told that the rules hide: not in events, not of a run in any other way.
func TestRulesHoldEverywhere(t *testing.T) {
	c := config(enginetest.NewScript(
		enginetest.Call("c1", "pay", map[string]int{"amount": 1}).And(enginetest.Say("the word is opensesame")),
		enginetest.Say("still opensesame")))
	s := open(t, c, serve.Options{Rules: trace.Rules{Secrets: []string{"opensesame"}}})
	v := s.start(t, `{"text":"opensesame! password=hunter22","thread":"a"}`)
	v = s.await(t, v.Run, "run_suspended")
	agui := s.do(t, "POST", "/v1/agui/clerk", `{"threadId":"b","runId":"r","messages":[{"role":"user","content":"opensesame"}]}`)
	require.Contains(t, agui.body, "RUN_FINISHED")
	told := s.do(t, "GET", "/v1/runs/"+v.Run, "").body + s.do(t, "GET", "/v1/threads/a", "").body + agui.body
	sub := s.stream(t, v.Run, "")
	for e := range sub.events {
		if told += e.data; e.kind == "run_suspended" {
			break
		}
	}
	sub.close()
	require.Equal(t, http.StatusOK, s.do(t, "POST", "/v1/runs/"+v.Run+"/decisions", `{"decisions":[{"approved":false,"reason":"opensesame"}]}`).status)
	s.finished(t, v.Run)
	told += s.do(t, "GET", "/v1/threads/a/runs", "").body
	require.Contains(t, told, "still [hidden]")
	require.NotContains(t, told, "opensesame")
	require.NotContains(t, told, "hunter22")
	require.NotContains(t, told, "~", "ids are told as their owner has them")
}

// A thousand clients follow runs at the same time. They are real connections by way of
// loopback: two descriptors each, of which the limit must allow that many.
func TestAThousandStreams(t *testing.T) {
	enginetest.CheckLeaks(t)
	const clients, runs = 1000, 20
	turn := make(chan struct{})
	s := open(t, looking(talkative(3, turn)), serve.Options{Limits: serve.Limits{Streams: clients, Runs: runs}})
	transport := &http.Transport{MaxIdleConnsPerHost: -1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var ids []string
	for i := range runs {
		ids = append(ids, s.start(t, fmt.Sprintf(`{"text":"go","thread":"t%d"}`, i)).Run)
	}
	var open, done sync.WaitGroup
	open.Add(clients)
	lines := make([]string, clients)
	began := time.Now()
	for i := range clients {
		r := s.request(t, "GET", "/v1/runs/"+ids[i%runs]+"/events", "")
		done.Go(func() {
			resp, err := client.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Error(err)
				open.Done()
				return
			}
			defer resp.Body.Close()
			var all strings.Builder
			once := sync.OnceFunc(open.Done)
			scan(resp.Body, func(e told) bool {
				all.WriteString(e.id + " " + e.kind + "\n")
				once()
				return true
			})
			once()
			lines[i] = all.String()
		})
	}
	open.Wait()
	r := s.do(t, "GET", "/v1/runs/"+ids[0]+"/events", "")
	require.Equal(t, http.StatusTooManyRequests, r.status)
	require.Equal(t, "1", r.header.Get("Retry-After"))
	close(turn)
	done.Wait()
	require.Less(t, time.Since(began), time.Minute)
	for i := range lines {
		require.Contains(t, lines[i], "run_finished")
		require.Equal(t, lines[i%runs], lines[i])
	}
}

// A stream on which nothing happens is kept open by comments, and a client that is gone
// is noticed.
func TestKeepAlive(t *testing.T) {
	model, let := held()
	s := open(t, config(model), serve.Options{Limits: serve.Limits{KeepAlive: time.Millisecond, Streams: 1}})
	defer let()
	v := s.start(t, `{"text":"go"}`)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := s.http.Client().Do(s.request(t, "GET", "/v1/runs/"+v.Run+"/events", "").WithContext(ctx))
	require.NoError(t, err)
	buf, all := make([]byte, 1<<10), ""
	for !strings.Contains(all, "\n: still there\n\n: still there\n") {
		n, err := resp.Body.Read(buf)
		require.NoError(t, err)
		all += string(buf[:n])
	}
	require.Equal(t, http.StatusTooManyRequests, s.do(t, "GET", "/v1/runs/"+v.Run+"/events", "").status)
	cancel()
	_, _ = io.Copy(io.Discard, resp.Body)
	for deadline := time.Now().Add(patience); ; {
		if r := s.do(t, "HEAD", "/v1/runs/"+v.Run+"/events", ""); r.status == http.StatusOK {
			break
		}
		require.True(t, time.Now().Before(deadline))
	}
}

// A secret that comes in pieces is none the less one: chunks are looked at with what the
// model said before.
func TestSecretsInChunks(t *testing.T) {
	c := config(enginetest.NewScript(enginetest.Say(`here it is: {"pin": "walrus heron otter"} and no more`)))
	s := open(t, c, serve.Options{Rules: trace.Rules{Chunks: true, Members: []string{"pin"}}})
	v := s.start(t, `{"text":"go"}`)
	body := s.do(t, "GET", "/v1/runs/"+v.Run+"/events", "").body
	require.Contains(t, body, "inference_chunk")
	require.Contains(t, body, "here")
	for _, piece := range []string{"walrus", "heron", "otter"} {
		require.NotContains(t, body, piece)
	}
}
