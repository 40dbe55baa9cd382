package mcp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

var (
	nameSchema = map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"}}
	sizeSchema = map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}}}
)

// asker is a server whose tool "order" asks for a name and then for a size. It counts
// how often it was called and what it was told.
type asker struct {
	*sdk.Server
	calls atomic.Int32
	last  atomic.Value // the last action that the user took
}

func newAsker(version string) *asker {
	a := &asker{Server: newServer(version)}
	add(a.Server, "order", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		a.calls.Add(1)
		if version == legacy {
			return a.live(ctx, r)
		}
		return a.again(r)
	})
	add(a.Server, "echo", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return say("here"), nil })
	return a
}

// live asks while the call runs.
func (a *asker) live(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	text := "order:"
	for _, q := range []*sdk.ElicitParams{{Message: "Who?", RequestedSchema: nameSchema}, {Message: "How big?", RequestedSchema: sizeSchema}} {
		res, err := r.Session.Elicit(ctx, q)
		if err != nil {
			return nil, err
		}
		a.last.Store(res.Action)
		if res.Action != "accept" {
			return say("no order"), nil
		}
		text += fmt.Sprint(" ", res.Content)
	}
	return say(text), nil
}

// again asks by its result and is called again with the answers.
func (a *asker) again(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if r.Params.RequestState == "" {
		return &sdk.CallToolResult{RequestState: "state of the server", InputRequests: sdk.InputRequestMap{
			"who": &sdk.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: nameSchema},
			"how": &sdk.ElicitParams{Mode: "form", Message: "How big?", RequestedSchema: sizeSchema},
		}}, nil
	}
	who, how := r.Params.InputResponses["who"].(*sdk.ElicitResult), r.Params.InputResponses["how"].(*sdk.ElicitResult)
	return say(fmt.Sprint("order: ", who.Content, " ", how.Content, " ", r.Params.RequestState)), nil
}

func yes(ticket gate.Ticket, value inference.JSON) phase.Answer {
	return phase.Answer{Ticket: ticket.ID, Approved: true, Value: value}
}

func value(t gate.Ticket) inference.JSON {
	if t.Message == "The server shop asks: Who?" {
		return `{"name":"Ada"}`
	}
	return `{"size":3}`
}

const current = "2026-07-28"

// A server's questions are tickets like any others: a resolver answers them in place, or
// the run waits and goes on later. A server that asks while the call runs is called
// once; one that asks by its result is called again as it wants.
func TestQuestions(t *testing.T) {
	for version, c := range map[string]struct {
		calls  int32
		result string
	}{
		legacy:  {1, "order: map[name:Ada] map[size:3]"},
		current: {2, "order: map[name:Ada] map[size:3] state of the server"},
	} {
		for _, inPlace := range []bool{true, false} {
			t.Run(fmt.Sprint(version, " in place ", inPlace), func(t *testing.T) {
				enginetest.CheckLeaks(t)
				s := newAsker(version)
				servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true}}})
				asked := 0
				w := newWorld(t, servers.Shared(), func(c *engine.Config) {
					if inPlace {
						c.Resolver = gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
							asked++
							return yes(t, value(t)), nil
						})
					}
				}, enginetest.Call("c1", "shop__order", nil), enginetest.Say("done"))
				res := w.run(t)
				for !inPlace && res.Status == phase.Waiting {
					asked++
					require.Len(t, res.Tickets, 1)
					require.Equal(t, gate.Form, res.Tickets[0].Kind)
					require.Equal(t, "tool shop__order", res.Tickets[0].Plugin)
					res = w.resume(t, yes(res.Tickets[0], value(res.Tickets[0])))
				}
				require.NoError(t, res.Err)
				require.Equal(t, 2, asked)
				require.Equal(t, c.result, w.results()[0].Content)
				require.Equal(t, c.calls, s.calls.Load())
			})
		}
	}
}

// A no ends the call; the server of a call that is under way is told, and is free for
// the next one.
func TestDeclined(t *testing.T) {
	enginetest.CheckLeaks(t)
	s := newAsker(legacy)
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true}}})
	for _, answer := range []phase.Answer{{Reason: "not now"}, {Cancel: true}} {
		w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "shop__order", nil), enginetest.Call("c2", "shop__echo", nil), enginetest.Say("done"))
		require.Len(t, w.run(t).Tickets, 1)
		require.NoError(t, w.resume(t, answer).Err)
		require.True(t, w.results()[0].IsError)
		require.Equal(t, "here", w.results()[1].Content)
		want := map[bool]string{true: "cancel", false: "decline"}[answer.Cancel]
		require.Eventually(t, func() bool { return s.last.Load() == want }, 30*time.Second, time.Millisecond)
	}
}

// While a call waits for an answer, others of that server are refused at once: they
// would wait for a person.
func TestOthersWhileOneWaits(t *testing.T) {
	s := newAsker(legacy)
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true}}})
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "shop__order", nil).And(enginetest.Call("c2", "shop__echo", nil)), enginetest.Say("done"))
	res := w.run(t)
	require.Len(t, res.Tickets, 1)
	res = w.resume(t, yes(res.Tickets[0], `{"name":"Ada"}`))
	res = w.resume(t, yes(res.Tickets[0], `{"size":3}`))
	require.NoError(t, res.Err)
	for _, r := range w.results() {
		if r.CallID == "c2" {
			require.Contains(t, r.Content, "waits for an answer about another call")
		} else {
			require.Equal(t, "order: map[name:Ada] map[size:3]", r.Content)
		}
	}
}

// An answer that comes when the call is not there any more does not make it again. A
// call whose server asks by its result goes on also then.
func TestAnswersAfterARestart(t *testing.T) {
	for _, version := range []string{legacy, current} {
		s := newAsker(version)
		options := mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true}}}
		before, err := mcp.Connect(t.Context(), options)
		require.NoError(t, err)
		answers := []enginetest.Answer{enginetest.Call("c1", "shop__order", nil), enginetest.Say("done")}
		w := newWorld(t, before, nil, answers...)
		require.Len(t, w.run(t).Tickets, 1)
		dump, err := w.thread.Export()
		require.NoError(t, err)
		require.NoError(t, before.Close(t.Context()))

		w = newWorld(t, connect(t, options), nil, answers...)
		require.NoError(t, w.thread.Import(dump, 0))
		res := w.resume(t)
		for res.Status == phase.Waiting {
			res = w.resume(t, yes(res.Tickets[0], value(res.Tickets[0])))
		}
		require.NoError(t, res.Err)
		if version == legacy {
			require.True(t, w.results()[0].IsError)
			require.Contains(t, w.results()[0].Content, "was not there any more when the answer came")
			require.EqualValues(t, 1, s.calls.Load())
			continue
		}
		require.Equal(t, "order: map[name:Ada] map[size:3] state of the server", w.results()[0].Content)
		require.EqualValues(t, 2, s.calls.Load())
	}
}

// A call does not wait for ever for an answer to its question.
func TestNobodyAnswers(t *testing.T) {
	enginetest.CheckLeaks(t)
	s := newAsker(legacy)
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true}}, Limits: mcp.Limits{Parked: 10 * time.Millisecond}})
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "shop__order", nil), enginetest.Say("done"))
	res := w.run(t)
	for res.Status == phase.Waiting {
		time.Sleep(time.Millisecond)
		res = w.resume(t)
	}
	require.NoError(t, res.Err)
	require.True(t, w.results()[0].IsError)
	require.Equal(t, "here", one(t, servers.Shared(), "shop__echo", nil).Content)
}

// A question that the engine cannot ask ends the call, and the server is free again.
func TestQuestionThatCannotBeAsked(t *testing.T) {
	for _, version := range []string{legacy, current} {
		s := newAsker(version)
		servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true}}})
		w := newWorld(t, servers.Shared(), func(c *engine.Config) { c.Schemas = nil }, enginetest.Call("c1", "shop__order", nil), enginetest.Call("c2", "shop__echo", nil), enginetest.Say("done"))
		require.NoError(t, w.run(t).Err)
		require.True(t, w.results()[0].IsError)
		require.Equal(t, "here", w.results()[1].Content)
	}
}

// Without Elicit a server cannot ask at all; and nothing lets it use our model or look
// at roots.
func TestUnwantedRequests(t *testing.T) {
	for _, version := range []string{legacy, current} {
		s := newAsker(version)
		add(s.Server, "sample", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			//lint:ignore SA1019 servers still do it
			p := &sdk.CreateMessageParams{MaxTokens: 5, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "think for me"}}}}
			if version == current {
				return &sdk.CallToolResult{RequestState: "x", InputRequests: sdk.InputRequestMap{"m": p}}, nil
			}
			//lint:ignore SA1019 likewise
			res, err := r.Session.CreateMessage(ctx, p)
			return say(fmt.Sprint(res, err)), nil
		})
		for _, elicit := range []bool{true, false} {
			servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: elicit}}})
			text := one(t, servers.Shared(), "shop__sample", nil).Content
			if version == current {
				require.Regexp(t, "which it may not", text)
			} else {
				require.Contains(t, text, "does not support")
			}
			if !elicit {
				res := one(t, servers.Shared(), "shop__order", nil)
				require.True(t, res.IsError)
			}
		}
	}
}
