package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// The members of forms that stand for a ticket.
const (
	approveField = "approve"
	valueField   = "value"
	reasonField  = "reason"
)

// forms returns the tickets that the client's user can be asked as a form: none if the
// client has no way to, and no secrets, which forms must not ask for.
func forms(r *sdk.CallToolRequest, tickets []gate.Ticket) sdk.InputRequestMap {
	caps := r.ClientCapabilities()
	if caps == nil || caps.Elicitation == nil || caps.Elicitation.Form == nil && caps.Elicitation.URL != nil {
		return nil
	}
	out := sdk.InputRequestMap{}
	for _, t := range tickets {
		if schema := form(t); schema != nil {
			out[t.ID] = &sdk.ElicitParams{Mode: "form", Message: t.Message, RequestedSchema: schema}
		}
	}
	return out
}

// form returns the schema of the form that asks for a ticket's answer, or nil.
func form(t gate.Ticket) map[string]any {
	object := func(required string, field map[string]any) map[string]any {
		return map[string]any{"type": "object", "required": []string{required}, "properties": map[string]any{required: field}}
	}
	var choices []string
	_ = t.Choices.Decode(&choices) // none, or what gate.Choices wrote
	switch t.Kind {
	case gate.Confirm, "":
		f := object(approveField, map[string]any{"type": "boolean", "title": "Approve"})
		f["properties"].(map[string]any)[reasonField] = map[string]any{"type": "string", "title": "Reason"}
		return f
	case gate.Text:
		return object(valueField, map[string]any{"type": "string"})
	case gate.Choice:
		return object(valueField, map[string]any{"type": "string", "enum": choices})
	case gate.MultiChoice:
		return object(valueField, map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": choices}})
	case gate.Form:
		var schema map[string]any
		if t.Schema.Decode(&schema) == nil && flat(schema) {
			return schema
		}
	}
	return nil
}

// flat reports whether a schema is one that the protocol has for forms: an object of
// plain values.
func flat(schema map[string]any) bool {
	fields, ok := schema["properties"].(map[string]any)
	if !ok || schema["type"] != "object" {
		return false
	}
	for _, f := range fields {
		field, ok := f.(map[string]any)
		if !ok {
			return false
		}
		switch field["type"] {
		case "string", "number", "integer", "boolean":
		default:
			return false
		}
	}
	return true
}

// decision turns what the user did with a form into a decision. False means that the
// user did not decide.
func decision(t gate.Ticket, res *sdk.ElicitResult) (d engine.Decision, decided bool, err error) {
	d.Answer = phase.Answer{Ticket: t.ID}
	if res == nil || res.Action != "accept" {
		return d, res != nil && res.Action == "decline", nil
	}
	d.Answer.Approved = true
	switch t.Kind {
	case gate.Confirm, "":
		d.Answer.Approved, _ = res.Content[approveField].(bool)
		d.Answer.Reason, _ = res.Content[reasonField].(string)
	case gate.Form:
		d.Answer.Value, err = inference.ToJSON(res.Content)
	default:
		d.Answer.Value, err = inference.ToJSON(res.Content[valueField])
	}
	return d, true, err
}

// askNow asks the client's user while the call runs, one question after another. more
// is false when the user left one open and so is not to be asked again.
func askNow(ctx context.Context, r *sdk.CallToolRequest, tickets []gate.Ticket, requests sdk.InputRequestMap) (ds []engine.Decision, more bool) {
	for _, t := range tickets {
		p, ok := requests[t.ID].(*sdk.ElicitParams)
		if !ok {
			continue
		}
		res, err := r.Session.Elicit(ctx, p)
		if err != nil {
			return ds, false // the tickets are still there, and the result says so
		}
		d, decided, err := decision(t, res)
		if err != nil || !decided {
			return ds, false
		}
		ds = append(ds, d)
	}
	return ds, true
}

// responses goes on with a run whose questions the client has answered.
func (a *agent) responses(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, *AgentResult, error) {
	th, err := a.find(ctx, r, r.Params.RequestState)
	if err != nil {
		return nil, nil, err
	}
	var ds []engine.Decision
	mayAsk := true
	for _, t := range th.Tickets() {
		res, ok := r.Params.InputResponses[t.ID].(*sdk.ElicitResult)
		if !ok {
			continue
		}
		d, decided, err := decision(t, res)
		if err != nil {
			return nil, nil, err
		}
		if mayAsk = mayAsk && decided; decided {
			ds = append(ds, d)
		}
	}
	return a.drive(ctx, r, th, mayAsk, func(ctx context.Context) (*engine.Result, error) {
		return th.Resume(ctx, a.spec, engine.Input{Adapter: "mcp"}, ds...)
	})
}

// report tells the client of each message that the thread gets while the call runs, if
// it wants to know. The function that it returns ends that.
func report(ctx context.Context, r *sdk.CallToolRequest, th *engine.Thread) (end func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	const backlog = 64
	news, over, done := make(chan string, backlog), make(chan struct{}), make(chan struct{})
	seen := engine.Transcript.Get(th.Snapshot()).Len()
	stop := th.Subscribe(func(commit state.Commit) {
		log := engine.Transcript.Get(commit.Snapshot)
		for ; seen < log.Len(); seen++ {
			select {
			case news <- line(log.At(seen)):
			default: // a client that does not keep up misses some
			}
		}
	})
	n := 0.0
	tell := func(text string) {
		if text == "" {
			return
		}
		n++
		// That a client is gone, the call's context tells.
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: text})
	}
	go func() {
		defer close(done)
		for {
			select {
			case text := <-news:
				tell(text)
			case <-over:
				for len(news) > 0 {
					tell(<-news)
				}
				return
			}
		}
	}()
	return func() { stop(); close(over); <-done }
}

// line says in one line what a message is.
func line(m inference.Message) string {
	const limit = 200
	switch {
	case m.Role == inference.RoleTool:
		return fmt.Sprintf("%s: %s", m.Result.Name, m.Result.Outcome)
	case m.Role != inference.RoleAssistant:
		return ""
	case len(m.ToolCalls) > 0:
		var names []string
		for _, c := range m.ToolCalls {
			names = append(names, c.Name)
		}
		return "calls " + strings.Join(names, ", ")
	}
	return brief(cut(m.Text, limit))
}
