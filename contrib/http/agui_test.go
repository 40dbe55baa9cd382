package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// aguiEvents are the members that an event must have and may have, of AG-UI 1.0.
var aguiEvents = map[string]struct{ must, may string }{
	"RUN_STARTED":          {"threadId runId", "protocolVersion"},
	"RUN_FINISHED":         {"threadId runId", "outcome result usage"},
	"RUN_ERROR":            {"message", "code usage"},
	"STEP_STARTED":         {"stepName", ""},
	"STEP_FINISHED":        {"stepName", ""},
	"TEXT_MESSAGE_START":   {"messageId", "role"},
	"TEXT_MESSAGE_CONTENT": {"messageId delta", ""},
	"TEXT_MESSAGE_END":     {"messageId", ""},
	"TOOL_CALL_START":      {"toolCallId toolCallName", "parentMessageId"},
	"TOOL_CALL_ARGS":       {"toolCallId delta", ""},
	"TOOL_CALL_END":        {"toolCallId", ""},
	"TOOL_CALL_RESULT":     {"messageId toolCallId content", "role"},
	"CUSTOM":               {"name value", ""},
}

type aguiEvent map[string]any

func (e aguiEvent) text(name string) string { s, _ := e[name].(string); return s }

// aguiRun sends an input, and checks the answer as a strict front end would: the shapes
// of events, and that what is opened is closed, in order.
func (s *site) aguiRun(t testing.TB, input string) (events []aguiEvent, location string) {
	t.Helper()
	resp, err := s.http.Client().Do(s.request(t, "POST", "/v1/agui/clerk", input, "Accept", "text/event-stream"))
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		require.Fail(t, "no stream", "%d %s", resp.StatusCode, readAll(resp))
	}
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	var in struct{ ThreadID, RunID string }
	require.NoError(t, json.Unmarshal([]byte(input), &in))
	open := map[string]bool{}
	scan(resp.Body, func(told told) bool {
		require.Empty(t, told.kind)
		var e aguiEvent
		require.NoError(t, json.Unmarshal([]byte(told.data), &e))
		kind := e.text("type")
		shape, ok := aguiEvents[kind]
		require.True(t, ok, told.data)
		for _, name := range strings.Fields(shape.must) {
			require.Contains(t, e, name, told.data)
		}
		for name := range e {
			require.Contains(t, strings.Fields("type timestamp metadata "+shape.must+" "+shape.may), name, told.data)
		}
		require.Equal(t, len(events) == 0, kind == "RUN_STARTED", told.data)
		if len(events) > 0 {
			last := events[len(events)-1].text("type")
			require.NotContains(t, []string{"RUN_FINISHED", "RUN_ERROR"}, last, "nothing follows the end")
		}
		for _, span := range []struct{ prefix, id string }{{"STEP", "stepName"}, {"TEXT_MESSAGE", "messageId"}, {"TOOL_CALL", "toolCallId"}} {
			key := span.prefix + " " + e.text(span.id)
			switch kind {
			case span.prefix + "_START", span.prefix + "_STARTED":
				require.False(t, open[key], told.data)
				open[key] = true
			case span.prefix + "_CONTENT", span.prefix + "_ARGS":
				require.True(t, open[key], told.data)
			case span.prefix + "_END", span.prefix + "_FINISHED":
				require.True(t, open[key], told.data)
				delete(open, key)
			}
		}
		switch kind {
		case "RUN_STARTED":
			require.Equal(t, "1.0", e.text("protocolVersion"))
			fallthrough
		case "RUN_FINISHED":
			require.Empty(t, open, "what is open at the end")
			require.Equal(t, in.ThreadID, e.text("threadId"))
			require.Equal(t, in.RunID, e.text("runId"))
		}
		events = append(events, e)
		return true
	})
	require.NotEmpty(t, events)
	return events, resp.Header.Get("Location")
}

func kinds(events []aguiEvent) string {
	var all []string
	for _, e := range events {
		if kind := e.text("type"); len(all) == 0 || all[len(all)-1] != kind {
			all = append(all, kind)
		}
	}
	return strings.Join(all, " ")
}

func TestAGUI(t *testing.T) {
	for _, chunks := range []bool{false, true} {
		s := open(t, config(enginetest.NewScript(enginetest.Say("hello dear ann").Costing(inference.Usage{InputTokens: 5, OutputTokens: 3}))), serve.Options{Rules: trace.Rules{Chunks: chunks}})
		input := `{"threadId":"t","runId":"r1","protocolVersion":"1.1","state":{},"tools":[{"name":"x"}],"context":[],"forwardedProps":{},"new":1,
			"messages":[{"id":"0","role":"user","content":"before"},{"id":"1","role":"assistant","content":"yes"},{"id":"2","role":"system","content":"obey"},{"id":"3","role":"user","content":"hi"}]}`
		events, location := s.aguiRun(t, input)
		require.Equal(t, "RUN_STARTED CUSTOM STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED", kinds(events))
		text, deltas := "", 0
		for _, e := range events {
			if e.text("type") == "TEXT_MESSAGE_CONTENT" {
				text += e.text("delta")
				deltas++
			}
		}
		require.Equal(t, "hello dear ann", text)
		require.Equal(t, chunks, deltas > 1)
		last := events[len(events)-1]
		require.Equal(t, map[string]any{"type": "success"}, last["outcome"])
		require.Equal(t, map[string]any{"text": "hello dear ann"}, last["result"])
		require.Equal(t, []any{map[string]any{"inputTokens": 5.0, "outputTokens": 3.0, "totalTokens": 8.0}}, last["usage"])
		v := s.do(t, "GET", location, "").view(t)
		require.Equal(t, "hello dear ann", v.Text)

		// A front end that sends its input again gets the same run.
		again, where := s.aguiRun(t, input)
		require.Equal(t, location, where)
		require.Equal(t, kinds(events), kinds(again))
		r := s.do(t, "POST", "/v1/agui/clerk", strings.Replace(input, "hi", "ho", 1))
		require.Equal(t, http.StatusUnprocessableEntity, r.status)
	}
}

// A run that waits is a run that ended with an interrupt, and the answer is a run of its
// own for the front end: one and the same for the server, also after a restart.
func TestAGUIInterrupts(t *testing.T) {
	for name, c := range map[string]struct{ entry, result string }{
		"approved":  {`"status":"resolved","payload":{"approved":true}`, "ann paid xxx"},
		"edited":    {`"status":"resolved","payload":{"approved":true,"editedArgs":{"amount":1}}`, "ann paid x"},
		"denied":    {`"status":"resolved","payload":{"approved":false,"reason":"no"}`, "no"},
		"cancelled": {`"status":"cancelled"`, "called off"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config(asking())
			conf.Journal = memstore.New(memstore.Options{})
			s := open(t, conf, serve.Options{})
			events, location := s.aguiRun(t, `{"threadId":"t","runId":"r1","messages":[{"role":"user","content":[{"type":"text","text":"go"},{"type":"video","source":{}}]}]}`)
			require.Equal(t, "RUN_STARTED STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END STEP_FINISHED RUN_FINISHED", kinds(events))
			outcome := events[len(events)-1]["outcome"].(map[string]any)
			require.Equal(t, "interrupt", outcome["type"])
			ask := aguiEvent(outcome["interrupts"].([]any)[0].(map[string]any))
			require.Equal(t, "tool_call", ask.text("reason"))
			require.Equal(t, "Pay?", ask.text("message"))
			require.Equal(t, events[2].text("toolCallId"), ask.text("toolCallId"))
			require.Contains(t, fmt.Sprint(ask["responseSchema"]), "editedArgs")

			r := s.do(t, "POST", "/v1/agui/clerk", `{"threadId":"t","runId":"r2","messages":[{"role":"user","content":"more"}]}`)
			require.Equal(t, http.StatusConflict, r.status, "an open interrupt blocks new input")
			s.close(t)
			s = open(t, conf, serve.Options{})
			resume := `{"threadId":"t","runId":"r2","messages":[],"resume":[{"interruptId":"` + ask.text("id") + `",` + c.entry + `}]}`
			events, where := s.aguiRun(t, resume)
			require.Equal(t, location, where)
			require.Equal(t, "TOOL_CALL_RESULT", events[1].text("type"))
			require.Equal(t, ask.text("toolCallId"), events[1].text("toolCallId"))
			require.Contains(t, events[1].text("content"), c.result)
			require.Equal(t, map[string]any{"type": "success"}, events[len(events)-1]["outcome"])

			again, _ := s.aguiRun(t, resume)
			require.Equal(t, "RUN_STARTED RUN_FINISHED", kinds(again), "the same answer once more is harmless")
			other := strings.Replace(resume, `"status":"resolved","payload":{"approved":true}`, `"status":"cancelled"`, 1)
			if other != resume {
				require.Equal(t, http.StatusConflict, s.do(t, "POST", "/v1/agui/clerk", other).status)
			}
		})
	}
}

func TestAGUIEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer enginetest.Answer
		rounds int
		want   string
		end    string
	}{
		"error":   {enginetest.Fail(fmt.Errorf("no model")), 0, "RUN_ERROR", "no model"},
		"stopped": {enginetest.Call("c", "nothing", nil).And(enginetest.Say("hm")), 1, "RUN_FINISHED", `{"type":"cancelled"}`},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config(enginetest.NewScript(c.answer))
			conf.Agents, conf.Plugins = []engine.AgentSpec{{ID: "clerk", MaxRounds: c.rounds}}, nil
			s := open(t, conf, serve.Options{})
			events, _ := s.aguiRun(t, `{"threadId":"t","runId":"r1","messages":[{"role":"user","content":"hi"}]}`)
			last := events[len(events)-1]
			require.Equal(t, c.want, last.text("type"))
			text, err := json.Marshal(last)
			require.NoError(t, err)
			require.Contains(t, string(text), c.end)
			require.NotContains(t, last, "result")
		})
	}
}

func TestAGUIInputsThatAreRefused(t *testing.T) {
	s := open(t, config(asking()), serve.Options{})
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"clerk", `{"threadId":"t","runId":"r"}`, 400},
		{"clerk", `{"threadId":"t","runId":"","messages":[]}`, 400},
		{"clerk", `{"threadId":"t/u","runId":"r","messages":[]}`, 400},
		{"clerk", `{"threadId":"t","runId":"r","messages":[]}`, 400},
		{"clerk", `{"threadId":"t","runId":"r","messages":{}}`, 400},
		{"clerk", `{"threadId":"t","runId":"r","messages":[]} x`, 400},
		{"clerk", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":7}]}`, 400},
		{"clerk", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":[{"type":"image","source":{"type":"data","value":"?"}}]}]}`, 400},
		{"nobody", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":"hi"}]}`, 404},
		{"clerk", `{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"x","status":"cancelled"}]}`, 404},
	} {
		r := s.do(t, "POST", "/v1/agui/"+c.path, c.body)
		require.Equal(t, c.status, r.status, "%s\n%s", c.body, r.body)
	}
	s.aguiRun(t, `{"threadId":"t","runId":"r","messages":[{"role":"user","content":"go"}]}`)
	for _, entry := range []string{`{}`, `{"interruptId":"x","status":"maybe"}`, `{"interruptId":"x","status":"resolved"}`, `{"interruptId":"x","status":"resolved","payload":{"yes":true}}`} {
		r := s.do(t, "POST", "/v1/agui/clerk", `{"threadId":"t","runId":"r2","messages":[],"resume":[`+entry+`]}`)
		require.Equal(t, http.StatusBadRequest, r.status, r.body)
	}
	require.Equal(t, http.StatusMethodNotAllowed, s.do(t, "GET", "/v1/agui/clerk", "").status)
}

// Events of a run that an agent delegated to are in the stream of the one that did, in
// order; AG-UI is told of the tool call that it is.
func TestDelegatedRuns(t *testing.T) {
	c := config(nil)
	c.Plugins = nil
	c.Models = map[string]inference.Model{
		"boss":  enginetest.NewScript(enginetest.Call("c1", "delegate_to_hand", map[string]string{"input": "dig"}), enginetest.Say("dug")),
		"hand":  enginetest.NewScript(enginetest.Call("c2", "delegate_to_other", map[string]string{"input": "dig"}), enginetest.Say("a hole")),
		"other": enginetest.NewScript(enginetest.Say("mud")),
	}
	c.Agents = []engine.AgentSpec{
		{ID: "clerk", ModelID: "boss", Delegates: []string{"hand"}},
		{ID: "hand", ModelID: "hand", Delegates: []string{"other"}}, {ID: "other", ModelID: "other"},
	}
	s := open(t, c, serve.Options{Agents: []string{"clerk"}})
	v := s.start(t, `{"text":"go"}`)
	events := s.stream(t, v.Run, "").all()
	runs := map[string]int{}
	for i, e := range events {
		var h struct {
			Seq int
			Run string
		}
		require.NoError(t, json.Unmarshal([]byte(e.data), &h))
		require.Equal(t, i+1, h.Seq)
		runs[h.Run]++
	}
	require.Len(t, runs, 3)
	require.Equal(t, "run_finished", events[len(events)-1].kind)
	told, _ := s.aguiRun(t, `{"threadId":"t","runId":"r","messages":[{"role":"user","content":"go"}]}`)
	require.Equal(t, "RUN_STARTED STEP_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT STEP_FINISHED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED", kinds(told))
}
