package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// maxState bounds what a server may have us keep until an answer is there.
const maxState = 64 << 10

// Pending is what the ticket of a server's question has in its Params: what is needed
// to go on with the call once there is an answer.
type Pending struct {
	Server string `json:"server"`
	Tool   string `json:"tool"` // the server's own name for it
	// Live says that the call is under way and waits; otherwise it is made again with the
	// answers, as its server wants.
	Live bool `json:"live,omitzero"`
	// ID is the question's own among Questions, for a call that is made again.
	ID string `json:"id,omitzero"`
	// Round counts the times that the call was made before.
	Round     int                 `json:"round,omitzero"`
	Questions map[string]Question `json:"questions,omitempty"`
	// State is the server's to read.
	State string `json:"state,omitzero"`
}

// Question is one that a server asks.
type Question struct {
	Message string         `json:"message"`
	Schema  inference.JSON `json:"schema,omitzero"`
}

var errNoQuestions = errors.New("mcp: the server asks the user something, which it may not: Server.Elicit is off")

// question reads what a server asks.
func question(p *sdk.ElicitParams) (Question, error) {
	if p == nil || p.Mode != "" && p.Mode != "form" || p.URL != "" {
		return Question{}, errors.New("mcp: the server wants the user to open an address, which is not supported")
	}
	q := Question{Message: plain(p.Message, 4<<10), Schema: `{"type":"object"}`}
	if p.RequestedSchema != nil {
		schema, err := inference.ToJSON(p.RequestedSchema)
		if err != nil || len(schema) > maxState {
			return q, fmt.Errorf("mcp: the server asks with a schema that is not JSON or has more than %d bytes", maxState)
		}
		q.Schema = schema
	}
	return q, nil
}

// ticket returns the question as the engine asks it.
func (c *connection) ticket(q Question, p Pending, lifetime time.Duration) (*gate.Ticket, error) {
	params, err := inference.ToJSON(p)
	return &gate.Ticket{
		Kind: gate.Form, Mode: gate.PassToTool, Schema: q.Schema, Params: params, Lifetime: lifetime,
		Message: fmt.Sprintf("The server %s asks: %s", c.server.Name, q.Message),
	}, err
}

// elicit is called when the server asks while a call runs. There is one such call at a
// time, so it is that one which it is about.
func (c *connection) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	l := c.lane.inside()
	if _, err := question(p); err != nil || l == nil {
		c.notify(RequestRefused, "server %s asked the user outside of any call, or in a way that is not supported", c.server.Name)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	q := ask{p, make(chan *sdk.ElicitResult, 1)}
	select {
	case l.asks <- q:
	case <-l.ctx.Done():
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case res := <-q.reply:
		return res, nil
	case <-l.ctx.Done():
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accept is a yes as a server wants it.
func accept(a phase.Answer) (*sdk.ElicitResult, error) {
	res := &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}
	if a.Value == "" {
		return res, nil
	}
	if err := a.Value.Decode(&res.Content); err != nil {
		return nil, fmt.Errorf("mcp: the answer to a server's question must be a JSON object: %w", err)
	}
	return res, nil
}

// told is a question of the call's tool that was answered.
type told struct {
	pending Pending
	answer  phase.Answer
}

// answered returns the questions of the tool about this very call that were answered,
// oldest first. The answers are in pc, what was asked is in the state.
func answered(pc *phase.Context) (list []told, err error) {
	answers := map[string]phase.Answer{}
	for _, a := range pc.Answers() {
		answers[a.Ticket] = a
	}
	if len(answers) == 0 {
		return nil, nil
	}
	state, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
	for _, t := range state.Answers {
		a, ok := answers[t.Ticket.ID]
		if !ok {
			continue
		}
		var p Pending
		if err := t.Ticket.Params.Decode(&p); err != nil {
			return nil, fmt.Errorf("mcp: the question that was answered is not one of this package: %w", err)
		}
		list = append(list, told{p, a})
	}
	return list, nil
}

// pending returns what a result that needs answers leaves to be asked.
func (c *connection) pending(wire string, round int, res *sdk.CallToolResult) (Pending, error) {
	p := Pending{Server: c.server.Name, Tool: wire, Round: round, State: res.RequestState, Questions: map[string]Question{}}
	switch {
	case !c.server.Elicit:
		return p, errNoQuestions
	case len(res.InputRequests) == 0:
		return p, errors.New("mcp: the server is busy; try again later")
	case len(res.InputRequests) > 16 || len(res.RequestState) > maxState:
		return p, errors.New("mcp: the server asks too much at once")
	}
	for id, r := range res.InputRequests {
		e, ok := r.(*sdk.ElicitParams)
		if !ok {
			return p, errors.New("mcp: the server wants a model or the roots of a workspace, which it may not")
		}
		q, err := question(e)
		if err != nil {
			return p, err
		}
		p.Questions[id] = q
	}
	return p, nil
}

// next returns the ticket for the first question that has no answer yet, or nil.
func (c *connection) next(p Pending, given map[string]*sdk.ElicitResult) (*gate.Ticket, error) {
	for _, id := range slices.Sorted(maps.Keys(p.Questions)) {
		if given[id] == nil {
			p.ID = id
			return c.ticket(p.Questions[id], p, 0)
		}
	}
	return nil, nil
}

// refusal is a no, or nothing, as a server wants it.
func refusal(declined bool) *sdk.ElicitResult {
	if declined {
		return &sdk.ElicitResult{Action: "decline"}
	}
	return &sdk.ElicitResult{Action: "cancel"}
}
