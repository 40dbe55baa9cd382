package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// ErrChanged is the kind of error of a call of a tool that is no longer what it was
// when the engine was built. The call was not made.
var ErrChanged = errors.New("mcp: the server changed this tool")

// tool is a tool of a server, as it was when the engine was built.
type tool struct {
	c *connection
	definition
}

func (t tool) Spec() inference.ToolSpec { return t.spec }

// Validate is asked before the gates and the user are.
func (t tool) Validate(args inference.JSON) error {
	if err := object(args); err != nil {
		return err
	}
	if t.c.opts.Schemas == nil {
		return nil
	}
	if args == "" {
		args = "{}"
	}
	return t.c.opts.Schemas.CheckSchema(t.spec.Schema, args)
}

func (t tool) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	said, err := answered(pc)
	if err != nil {
		return engine.Output{}, err
	}
	key := keyOf(pc)
	if len(said) > 0 && said[len(said)-1].pending.Live {
		return t.goOn(ctx, key, said[len(said)-1].answer)
	}
	params := &sdk.CallToolParams{Name: t.wire}
	round := 0
	if len(said) > 0 {
		last := said[len(said)-1].pending
		given := map[string]*sdk.ElicitResult{}
		for _, s := range said {
			if s.pending.Round == last.Round && !s.pending.Live {
				if given[s.pending.ID], err = accept(s.answer); err != nil {
					return engine.Output{}, err
				}
			}
		}
		if ask, err := t.c.next(last, given); ask != nil || err != nil {
			return engine.Output{Ask: ask}, err
		}
		params.RequestState, params.InputResponses = last.State, sdk.InputResponseMap{}
		for id, res := range given {
			params.InputResponses[id] = res
		}
		round = last.Round + 1
	}
	args := pc.Call().Args
	if err := object(args); err != nil {
		return engine.Output{}, err
	}
	if args != "" {
		params.Arguments = json.RawMessage(args)
	}
	link, err := t.c.get(ctx)
	if err != nil {
		return engine.Output{}, err
	}
	switch now, ok := t.c.current(t.spec.Name); {
	case !ok:
		return engine.Output{}, fmt.Errorf("%w: it has none of that name any more", ErrChanged)
	case now != t.definition:
		return engine.Output{}, fmt.Errorf("%w since the run's tools were decided on; what it does now was not agreed to", ErrChanged)
	}
	l, err := t.c.start(ctx, link, key, t.wire, params)
	if err != nil {
		return engine.Output{}, err
	}
	return t.wait(ctx, l, round)
}

// goOn gives the answer to the call that waits for it.
func (t tool) goOn(ctx context.Context, key callKey, a phase.Answer) (engine.Output, error) {
	res, err := accept(a)
	l := t.c.unpark(key)
	if l == nil {
		return engine.Output{}, fmt.Errorf("%w: it had asked the user, and was not there any more when the answer came", ErrLost)
	}
	if err != nil {
		l.cancel(err)
		return engine.Output{}, err
	}
	l.open.reply <- res
	l.goOn()
	return t.wait(ctx, l, 0)
}

// wait returns the call's result, or its question.
func (t tool) wait(ctx context.Context, l *live, round int) (engine.Output, error) {
	q, err := t.c.await(ctx, l)
	if err != nil {
		var answer *jsonrpc.Error
		if errors.As(err, &answer) {
			err = fmt.Errorf("mcp: server %s: %s", t.c.server.Name, plain(answer.Message, t.c.limits.Description))
		}
		return engine.Output{}, err
	}
	if q == nil {
		if l.res.NeedsInput() || len(l.res.InputRequests) > 0 {
			p, err := t.c.pending(t.wire, round, l.res)
			if err != nil {
				return engine.Output{}, err
			}
			ask, err := t.c.next(p, nil)
			return engine.Output{Ask: ask}, err
		}
		return t.c.output(t.wire, l.res)
	}
	text, err := question(q.params)
	if err != nil {
		l.cancel(err)
		return engine.Output{}, err
	}
	ticket, err := t.c.ticket(text, Pending{Server: t.c.server.Name, Tool: t.wire, Live: true}, t.c.limits.Parked)
	if err != nil {
		l.cancel(err)
		return engine.Output{}, err
	}
	t.c.park(l)
	return engine.Output{Ask: ticket}, nil
}
