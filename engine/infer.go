package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/pushseq"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// request makes this call's request from the spec, the transcript and what
// actions asked for, and passes it through the transforms of active plugins.
func (r *run) request(ctx context.Context, sc scene) (inference.Request, error) {
	a := r.agent.Load()
	snap := r.th.store.Snapshot()
	req := inference.Request{
		Model:    a.spec.ModelID,
		System:   a.spec.SystemPrompt,
		Messages: paired(Transcript.Get(snap)),
		Tools:    r.offered(),
		Params:   a.spec.Parameters(),
	}
	req.Messages = append(req.Messages, contexts.Get(snap).Slice()...)
	if layers := append(runOverride.Get(snap).Slice(), overrides.Get(snap).Slice()...); len(layers) > 0 {
		merged, origins := inference.Resolve(layers...)
		req = merged.Apply(req)
		r.emit(sc, func(h Header) Event { return OverrideApplied{Header: h, Fields: fieldOrigins(merged, origins)} })
	}
	if len(a.transforms) > 0 {
		ctx = phase.WithContext(ctx, r.context(sc, snap))
	}
	for _, t := range a.transforms {
		next, err := r.transform(ctx, t, sc.phase, req.Clone())
		if err != nil && ctx.Err() != nil {
			return req, context.Cause(ctx)
		}
		if err != nil {
			err = &HookError{Plugin: t.plugin, Hook: "transform", Phase: sc.phase, Err: err}
			if t.opts.onError == Skip {
				r.warn(sc, t.plugin, "%v; the request stays as it was", err)
				continue
			}
			return req, err
		}
		if r.watched() {
			r.transformed(sc, t.plugin, req, next)
		}
		req = next.Clone() // a transform may keep what it returned
	}
	return req, nil
}

// transform calls one transform, never inline: one that hangs must not hold up a
// cancelled run, nor one that ends its goroutine the run.
func (r *run) transform(ctx context.Context, t *transformEntry, p phase.Phase, req inference.Request) (inference.Request, error) {
	call := func(ctx context.Context) (inference.Request, error) { return t.transform.Transform(ctx, req) }
	limit := cmp.Or(t.opts.timeout, r.eng.config.Limits.HookTimeout)
	ctx, cancel := limited(ctx, limit, &TimeoutError{Plugin: t.plugin, Phase: p, Limit: limit})
	defer cancel()
	return detached(ctx, r.crew, t.plugin, p, call)
}

func fieldOrigins(o inference.Override, owners []inference.FieldOwner) []FieldOrigin {
	values := maps.Collect(o.Fields())
	out := make([]FieldOrigin, len(owners))
	for i, f := range owners {
		out[i] = FieldOrigin{Field: string(f.Field), Plugin: f.Owner, Value: values[f.Field]}
	}
	return out
}

func (r *run) transformed(sc scene, plugin string, before, after inference.Request) {
	ev := RequestTransformed{
		Plugin:   plugin,
		System:   before.System != after.System,
		Messages: !reflect.DeepEqual(before.Messages, after.Messages),
		Tools:    !slices.Equal(before.Tools, after.Tools),
		Params:   before.Model != after.Model || before.Params != after.Params,
	}
	if ev.System || ev.Messages || ev.Tools || ev.Params {
		r.emit(sc, func(h Header) Event { ev.Header = h; return ev })
	}
}

// paired puts every tool result directly behind the message that asked for it, in
// call order, and makes up for missing ones, whatever was appended in between:
// providers refuse a request whose calls and results do not match.
func paired(history state.List[inference.Message]) []inference.Message {
	out := make([]inference.Message, 0, history.Len())
	var calls []inference.ToolCall
	var between []inference.Message
	results := map[string]inference.Message{}
	flush := func() {
		for _, c := range calls {
			m, ok := results[c.ID]
			if !ok {
				m = inference.ToolMessage(inference.ToolResult{CallID: c.ID, Name: c.Name,
					Content: "interrupted: the result was lost", IsError: true, Outcome: inference.OutcomeCancelled})
			}
			out = append(out, m)
		}
		out = append(out, between...)
		calls, between = nil, nil
		clear(results)
	}
	for _, m := range history.All() {
		switch {
		case m.Role == inference.RoleTool:
			if _, again := results[m.Result.CallID]; !again && asked(calls, m.Result.CallID) {
				results[m.Result.CallID] = m
			}
		case m.Role == inference.RoleAssistant:
			flush()
			out = append(out, m)
			calls = m.ToolCalls
		case len(calls) > 0:
			between = append(between, m)
		default:
			out = append(out, m)
		}
	}
	flush()
	return out
}

func asked(calls []inference.ToolCall, id string) bool {
	return slices.ContainsFunc(calls, func(c inference.ToolCall) bool { return c.ID == id })
}

// infer asks the model. It returns when the model answered or ctx ended.
func (r *run) infer(ctx context.Context, sc scene, req inference.Request) (inference.Response, error) {
	a := r.agent.Load()
	r.emit(sc, func(h Header) Event {
		return InferenceStarted{Header: h, Model: req.Model, Messages: len(req.Messages), Tools: len(req.Tools)}
	})
	r.out.Rouse()
	start := r.now()
	sent := req.Clone()
	chunks := pushseq.NewTap(func(c inference.Chunk) {
		if c.Text != "" {
			r.emit(sc, func(h Header) Event { return InferenceChunk{Header: h, Text: c.Text} })
			r.out.Rouse()
		}
	})
	resp, err := detached(ctx, r.crew, "model "+a.spec.ModelID, sc.phase, func(ctx context.Context) (inference.Response, error) {
		if a.model == nil {
			return inference.Response{}, errNoModel
		}
		if s, ok := a.model.(inference.Streamer); ok && r.eng.config.Stream {
			return inference.Collect(chunks.On(s.Stream(ctx, sent)))
		}
		return a.model.Generate(ctx, sent)
	})
	chunks.Shut() // a stream that was given up on must not speak any more
	if err == nil {
		err = inference.ValidateResponse(resp)
	}
	resp = resp.Clone() // the model may keep what it returned
	if n := len(resp.Message.ToolCalls); n > 0 && resp.Stop == inference.StopMaxTokens && resp.Message.ToolCalls[n-1].Args == "" {
		resp.Message.ToolCalls[n-1].Args = "{" // cut off before its arguments, which are not none
	}
	r.emit(sc, func(h Header) Event {
		return InferenceFinished{Header: h, Text: resp.Message.Text, ToolCalls: slices.Clone(resp.Message.ToolCalls), Stop: resp.Stop,
			Usage: resp.Usage, Error: errText(err), Duration: r.now().Sub(start)}
	})
	return resp, err
}

// paid commits what an answer cost that cannot be used.
func (r *run) paid(ctx context.Context, sc scene, u inference.Usage) error {
	if u.Total() <= 0 || min(u.InputTokens, u.OutputTokens, u.CachedTokens, u.ReasoningTokens) < 0 {
		return nil
	}
	return r.apply(ctx, sc, Usage.With(u))
}

var errNoModel = errors.New("engine: the agent has no model; set Config.Model or put its model_id into Config.Models")

// remember commits what the model said: the message, its usage, and its tool
// calls in place of the former step's.
func (r *run) remember(ctx context.Context, sc scene, resp inference.Response) error {
	snap := r.th.store.Snapshot()
	updates := []state.Update{
		Transcript.Append(resp.Message), Usage.With(resp.Usage),
		phase.RunLifecycle.With(phase.LifecycleUpdate{Answered: r.step()}),
	}
	for id := range ToolCalls.All(snap) {
		updates = append(updates, ToolCalls.Delete(id))
	}
	for i, c := range resp.Message.ToolCalls {
		updates = append(updates, ToolCalls.Put(c.ID, CallState{Index: i, Call: c, Status: CallNew}))
	}
	updates = append(updates, phase.ClearEdits(snap)...)
	return r.apply(ctx, sc, updates...)
}
