package trace

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// argument writes what an update is called with, as the member of that name, which is left
// out if there is none. What cannot be encoded is hidden.
func (e *encoder) argument(name string, u state.Update) {
	arg, ok := argumentOf(u)
	if ok && arg == nil {
		return
	}
	e.put(name)
	begin := len(e.out)
	if ok && e.known(arg) {
		return
	}
	e.out = e.out[:begin]
	if !ok || !e.any(arg) {
		e.out = append(e.out[:begin], hiddenValue...)
	}
	e.value(begin)
}

// usualMembers are the members of what known writes, and of changes.
var usualMembers = strings.Fields("input_tokens output_tokens cached_tokens reasoning_tokens " +
	"Run Fork Status Step Answered End Detail Continue Granted run status step answered ended reason detail continue continued " +
	"id name args malformed_args call_id content details is_error outcome index call started asked ended after result settled " +
	"role text tool_calls")

// known writes the values that most steps have without reflection, and reports whether
// this is one of them. Only their texts are looked at.
func (e *encoder) known(arg any) bool {
	if e.blunt {
		return false
	}
	switch v := arg.(type) {
	case int:
		e.out = strconv.AppendInt(e.out, int64(v), 10)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case string:
		e.text("", v)
	case phase.LifecycleUpdate:
		e.lifecycle(&v)
	case inference.Usage:
		e.tokens(v)
	case engine.CallState:
		return e.callState(&v)
	case []inference.Message:
		return e.messages(v)
	default:
		return false
	}
	return !e.odd
}

// argumentOf is Update.Arg, which may run code of the application to copy it.
func argumentOf(u state.Update) (arg any, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return u.Arg(), true
}

func (e *encoder) tokens(u inference.Usage) bool {
	begin := len(e.out)
	e.some(`,"input_tokens":`, u.InputTokens)
	e.some(`,"output_tokens":`, u.OutputTokens)
	e.some(`,"cached_tokens":`, u.CachedTokens)
	e.some(`,"reasoning_tokens":`, u.ReasoningTokens)
	if len(e.out) == begin {
		e.put("{")
	} else {
		e.out[begin] = '{'
	}
	e.put("}")
	return true
}

func (e *encoder) lifecycle(u *phase.LifecycleUpdate) {
	e.text(`{"Run":`, u.Run)
	e.text(`,"Fork":`, u.Fork)
	e.text(`,"Status":`, string(u.Status))
	e.int(`,"Step":`, int64(u.Step))
	e.int(`,"Answered":`, int64(u.Answered))
	e.text(`,"End":`, string(u.End))
	e.text(`,"Detail":`, u.Detail)
	e.text(`,"Continue":`, u.Continue)
	e.put(`,"Granted":`)
	e.out = strconv.AppendBool(e.out, u.Granted)
	e.put("}")
}

// call writes a call, whose own MarshalJSON escapes more than others.
func (e *encoder) call(c *inference.ToolCall) {
	begin, odd := len(e.out), e.odd
	if plainer(c.ID) && plainer(c.Name) && plainer(string(c.Args)) {
		e.text(`{"id":`, c.ID)
		e.text(`,"name":`, c.Name)
		e.maybeJSON(`,"args":`, c.Args)
		e.put("}")
		if !e.odd || odd {
			return
		}
	}
	raw, err := json.Marshal(*c) // arguments that are no JSON are malformed_args
	e.odd = odd || err != nil
	e.out = append(e.out[:begin], raw...)
	e.doubt = true
}

// plainer reports whether encoding/json writes a text in the same way however it escapes.
func plainer(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case '<', '>', '&', 0xe2: // the last begins U+2028
			return false
		}
	}
	return true
}

func (e *encoder) calls(name string, all []inference.ToolCall) {
	if len(all) == 0 {
		return
	}
	e.put(name)
	e.put("[")
	for i := range all {
		e.comma(i)
		e.call(&all[i])
	}
	e.put("]")
}

func (e *encoder) result(r *inference.ToolResult) {
	e.text(`{"call_id":`, r.CallID)
	e.maybe(`,"name":`, r.Name)
	e.text(`,"content":`, r.Content)
	e.maybeJSON(`,"details":`, r.Details)
	e.flag(`,"is_error":`, r.IsError)
	e.maybe(`,"outcome":`, string(r.Outcome))
	e.put("}")
}

// callState writes where a call stands, if nobody was asked about it.
func (e *encoder) callState(s *engine.CallState) bool {
	if s.Ticket != (engine.CallState{}).Ticket || s.Tickets != 0 || len(s.Answers) > 0 {
		return false
	}
	e.int(`{"index":`, int64(s.Index))
	e.put(`,"call":`)
	e.call(&s.Call)
	e.text(`,"status":`, string(s.Status))
	e.flag(`,"started":`, s.Started)
	e.flag(`,"asked":`, s.Asked)
	e.flag(`,"ended":`, s.Ended)
	e.flag(`,"after":`, s.After)
	if s.Result != (inference.ToolResult{}) {
		e.put(`,"result":`)
		e.result(&s.Result)
	}
	e.flag(`,"settled":`, s.Settled)
	e.put("}")
	return true
}

// messages writes messages, if they have no media.
func (e *encoder) messages(all []inference.Message) bool {
	if all == nil {
		return false
	}
	e.put("[")
	for i := range all {
		e.comma(i)
		if !e.message(&all[i]) {
			return false
		}
	}
	e.put("]")
	return true
}

func (e *encoder) message(m *inference.Message) bool {
	if len(m.Parts) > 0 {
		return false
	}
	e.text(`{"role":`, string(m.Role))
	e.maybe(`,"text":`, m.Text)
	e.calls(`,"tool_calls":`, m.ToolCalls)
	if m.Result != (inference.ToolResult{}) {
		e.put(`,"result":`)
		e.result(&m.Result)
	}
	e.put("}")
	return true
}
