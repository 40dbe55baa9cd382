package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// AgentOptions say how an agent is shown to clients of the protocol.
type AgentOptions struct {
	// Tool is the name of the tool that runs the agent; "" means the agent's id, with "_"
	// for characters that names of tools do not have. A second tool, with "_answer"
	// behind that name, answers questions of runs that wait.
	Tool string
	// Description is for the client's model; "" means the agent's.
	Description string
	// NoAnswers leaves the second tool out, so that a client's model cannot answer for its
	// user.
	NoAnswers bool
	// OpenThread opens the thread of an id that this server gave out before, such as
	// Engine.OpenThread with a journal. Nil keeps threads in memory only.
	OpenThread func(ctx context.Context, id string) (*engine.Thread, error)
	// Threads is how many threads are kept in memory, the one unused for longest dropped
	// first; 0 means 256.
	Threads int
	// Runs is how many runs may be under way; 0 means 16.
	Runs int
}

// AgentInput is what the agent's tool is called with.
type AgentInput struct {
	Prompt string `json:"prompt" jsonschema:"what the agent is to do"`
	Thread string `json:"thread,omitempty" jsonschema:"the thread of an earlier result, to go on with it"`
}

// AnswerInput is what the second tool is called with.
type AnswerInput struct {
	Thread  string        `json:"thread" jsonschema:"the thread of the result that waits"`
	Answers []AgentAnswer `json:"answers"`
}

// AgentAnswer answers a ticket.
type AgentAnswer struct {
	Ticket  string `json:"ticket" jsonschema:"id of the ticket"`
	Approve bool   `json:"approve"`
	Value   any    `json:"value,omitempty" jsonschema:"what was asked for: a text, a list of choices, or an object"`
	Reason  string `json:"reason,omitempty"`
}

// AgentResult is the structured result of both tools.
type AgentResult struct {
	Status  string        `json:"status" jsonschema:"done or waiting"`
	Reason  string        `json:"reason"`
	Detail  string        `json:"detail,omitempty"`
	Text    string        `json:"text"`
	Thread  string        `json:"thread" jsonschema:"to go on with this conversation; whoever has it can"`
	Run     string        `json:"run"`
	Steps   int           `json:"steps"`
	Input   int64         `json:"input_tokens"`
	Output  int64         `json:"output_tokens"`
	Tickets []AgentTicket `json:"tickets,omitempty"`
}

// AgentTicket is a question that a run waits for.
type AgentTicket struct {
	Ticket  string   `json:"ticket"`
	Kind    string   `json:"kind"`
	Message string   `json:"message"`
	Choices []string `json:"choices,omitempty"`
	Schema  any      `json:"schema,omitempty"`
}

// agent serves one agent of an engine.
type agent struct {
	eng  *engine.Engine
	spec engine.AgentSpec
	opts AgentOptions
	runs chan struct{}

	mu      sync.Mutex
	threads map[string]*kept
}

var foreign = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// NewAgent returns a server of the protocol with an agent as its tool. The spec must be
// one that the engine accepts, and the engine open.
func NewAgent(eng *engine.Engine, spec engine.AgentSpec, o AgentOptions) (*sdk.Server, error) {
	if err := eng.Check(spec); err != nil {
		return nil, err
	}
	o.Tool = cmp.Or(o.Tool, foreign.ReplaceAllString(spec.ID, "_"))
	if len(o.Tool) > maxToolName || foreign.MatchString(o.Tool) || o.Tool == "" {
		return nil, fmt.Errorf("%w: %q is no name of a tool: 1 to %d letters, digits, \"_\", \"-\" and \".\"", ErrOptions, o.Tool, maxToolName)
	}
	if o.Threads < 0 || o.Runs < 0 {
		return nil, fmt.Errorf("%w: a limit is negative", ErrOptions)
	}
	o.Threads, o.Runs = cmp.Or(o.Threads, 256), cmp.Or(o.Runs, 16)
	a := &agent{eng: eng, spec: spec.Clone(), opts: o, runs: make(chan struct{}, o.Runs), threads: map[string]*kept{}}
	s := sdk.NewServer(&sdk.Implementation{Name: o.Tool, Version: ownVersion}, nil)
	sdk.AddTool(s, &sdk.Tool{
		Name: o.Tool, Description: cmp.Or(o.Description, spec.Description, "Run the agent "+spec.ID+"."),
	}, a.run)
	if !o.NoAnswers {
		sdk.AddTool(s, &sdk.Tool{
			Name: o.Tool + "_answer", Description: "Answer the questions of a run of " + o.Tool + " that waits, as its user decided.",
		}, a.answer)
	}
	return s, nil
}

// Handler serves an agent over streamable HTTP. Whoever can reach it can run the agent:
// put authentication in front of it, such as that of the SDK's package auth.
func Handler(eng *engine.Engine, spec engine.AgentSpec, o AgentOptions, h *sdk.StreamableHTTPOptions) (http.Handler, error) {
	s, err := NewAgent(eng, spec, o)
	if err != nil {
		return nil, err
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, h), nil
}

// Serve serves an agent on standard input and output until the client goes or ctx ends.
func Serve(ctx context.Context, eng *engine.Engine, spec engine.AgentSpec, o AgentOptions) error {
	s, err := NewAgent(eng, spec, o)
	if err != nil {
		return err
	}
	return s.Run(ctx, &sdk.StdioTransport{})
}

var errTooMany = errors.New("too many runs are under way; try again later")

// run is the agent's tool.
func (a *agent) run(ctx context.Context, r *sdk.CallToolRequest, in AgentInput) (*sdk.CallToolResult, *AgentResult, error) {
	if r.Params.RequestState != "" { // the client brings answers to a run that waits
		return a.responses(ctx, r)
	}
	if in.Prompt == "" {
		return nil, nil, errors.New("the prompt is empty")
	}
	var th *engine.Thread
	var err error
	if in.Thread == "" {
		th, err = a.begin(ctx, r)
	} else {
		th, err = a.find(ctx, r, in.Thread)
	}
	if err != nil {
		return nil, nil, err
	}
	return a.drive(ctx, r, th, true, func(ctx context.Context) (*engine.Result, error) {
		return th.Run(ctx, a.spec, engine.Input{Messages: []inference.Message{inference.User(in.Prompt)}, Adapter: "mcp"})
	})
}

// answer is the second tool.
func (a *agent) answer(ctx context.Context, r *sdk.CallToolRequest, in AnswerInput) (*sdk.CallToolResult, *AgentResult, error) {
	th, err := a.find(ctx, r, in.Thread)
	if err != nil {
		return nil, nil, err
	}
	var ds []engine.Decision
	for _, answer := range in.Answers {
		d := engine.Decision{Answer: phase.Answer{Ticket: answer.Ticket, Approved: answer.Approve, Reason: answer.Reason}}
		if answer.Value != nil {
			if d.Answer.Value, err = inference.ToJSON(answer.Value); err != nil {
				return nil, nil, err
			}
		}
		ds = append(ds, d)
	}
	return a.drive(ctx, r, th, true, func(ctx context.Context) (*engine.Result, error) {
		return th.Resume(ctx, a.spec, engine.Input{Adapter: "mcp"}, ds...)
	})
}

// drive runs the agent, asks the client's user what the run waits for, unless it wants
// to be asked no more, and makes the result.
func (a *agent) drive(ctx context.Context, r *sdk.CallToolRequest, th *engine.Thread, mayAsk bool, start func(context.Context) (*engine.Result, error)) (*sdk.CallToolResult, *AgentResult, error) {
	select {
	case a.runs <- struct{}{}:
		defer func() { <-a.runs }()
	default:
		return nil, nil, errTooMany
	}
	tell := report(ctx, r, th)
	defer tell()
	res, err := start(ctx)
	for err == nil && res.Status == phase.Waiting && mayAsk {
		requests := forms(r, res.Tickets)
		if len(requests) == 0 {
			break
		}
		if r.ProtocolVersion() >= asksLater {
			return &sdk.CallToolResult{InputRequests: requests, RequestState: th.ID()}, nil, nil
		}
		var ds []engine.Decision
		if ds, mayAsk = askNow(ctx, r, res.Tickets, requests); len(ds) == 0 {
			break
		}
		res, err = th.Resume(ctx, a.spec, engine.Input{Adapter: "mcp"}, ds...)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("thread %s: %w", th.ID(), err)
	}
	return a.result(th, res)
}

func (a *agent) result(th *engine.Thread, res *engine.Result) (*sdk.CallToolResult, *AgentResult, error) {
	out := &AgentResult{
		Status: string(res.Status), Reason: string(res.Reason), Detail: res.Detail, Text: res.Text,
		Thread: th.ID(), Run: res.Run, Steps: res.Steps, Input: res.Usage.InputTokens, Output: res.Usage.OutputTokens,
	}
	text := res.Text
	for _, t := range res.Tickets {
		ticket := AgentTicket{Ticket: t.ID, Kind: string(cmp.Or(t.Kind, gate.Confirm)), Message: t.Message}
		_ = t.Choices.Decode(&ticket.Choices) // none, or what gate.Choices wrote
		_ = t.Schema.Decode(&ticket.Schema)   // the engine asks with schemas that are JSON
		out.Tickets = append(out.Tickets, ticket)
	}
	if res.Status == phase.Waiting {
		text = fmt.Sprintf("The run waits for %d answers; the thread is %s.", len(res.Tickets), th.ID())
		for _, t := range out.Tickets {
			text += fmt.Sprintf("\nTicket %s (%s): %s", t.Ticket, t.Kind, t.Message)
		}
		if !a.opts.NoAnswers {
			text += "\nAsk the user, and call " + a.opts.Tool + "_answer."
		}
	}
	failed := res.Reason == phase.ReasonError || res.Reason == phase.ReasonCancelled
	if failed {
		text = fmt.Sprintf("The run failed (%s): %v", res.Reason, res.Err)
		out.Detail = cmp.Or(out.Detail, text)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: failed}, out, nil
}
