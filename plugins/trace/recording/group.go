package recording

import (
	"strconv"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// plugins takes in the events about what plugins did.
func (r *Recording) plugins(x *run, h engine.Header, e engine.Event) bool {
	switch e := e.(type) {
	case engine.HookFinished:
		r.hookFinished(x, h, e)
	case engine.ActionFinished:
		r.actionFinished(x, h, e)
	case engine.RoundFinished:
		r.roundFinished(x, h, e)
	case engine.EffectFinished:
		r.effectFinished(x, h, e)
	case engine.Committed:
		r.committed(x, h, e)
	case engine.Conflict:
		r.conflicted(x, h, e)
	default:
		return r.aboutCalls(x, h, e)
	}
	return true
}

// tries are the calls of a hook or of an action's handler.
type tries struct {
	kind, name string
	started    time.Time // zero if it was given up on
	took       time.Duration
	again      []engine.Retry
	calls      int
	status     string // of the last one
	text       string
	lost       []*conflict
	dress      func(*span)
}

// tried adds a span for each call.
func (r *Recording) tried(x *run, parent *span, told time.Time, t tries) (last *span) {
	first := t.took
	for _, a := range t.again {
		first -= a.Duration
	}
	began := t.started
	if began.IsZero() {
		began, first = parent.began, told.Sub(parent.began)
	}
	n := max(t.calls, 1+len(t.again))
	for i := range n {
		from, to := began, began.Add(max(0, first))
		if i > 0 && i <= len(t.again) {
			a := t.again[i-1]
			from, to = a.Began, a.Began.Add(a.Duration)
		} else if i > 0 { // nobody knows when
			from, to = told, told
		}
		status, text := t.status, t.text
		if i < n-1 {
			status, text = statusConflict, "it lost a conflict"
			if i < len(t.lost) {
				text = t.lost[i].inWords()
			}
		}
		s := r.past(x, parent, t.kind, t.name, from, to, status)
		s.Text, s.Try = clip(text, longText), i+1
		if i == 0 && t.started.IsZero() {
			s.Facts = map[string]any{"given_up": true}
		}
		t.dress(s)
		last = s
	}
	if n > 1 {
		x.Retries += n - 1
		r.changed(ofRuns, &x.item)
	}
	return last
}

// hookStatus is how a hook's last call went.
func hookStatus(s engine.HookStatus) string {
	switch s {
	case engine.HookCommitted:
		return statusOK
	case "":
		return statusUnknown
	}
	return string(s)
}

func (r *Recording) hookFinished(x *run, h engine.Header, e engine.HookFinished) {
	d, parent := x.in(h.Phase), x.within(h.Phase)
	t := tries{kind: KindHook, name: e.Hook, started: e.Began, took: e.Duration, again: e.Retries, calls: min(e.Calls, mostTries),
		status: hookStatus(e.Status), text: cause(e.Error, phaseName(h.Phase))}
	base, after := uint64(0), (*commit)(nil)
	if d != nil {
		if e.Tier != d.tier {
			d.nextGroup(e.Tier)
		}
		base, after = d.base, d.by[e.Hook]
		t.lost = d.losses(e.Plugin, e.Hook, 0)
		d.now = h.Revision
		for _, l := range t.lost {
			l.finished(string(e.Status), t.text)
			r.settle(l)
		}
	}
	t.dress = func(s *span) {
		s.Plugin, s.Tier, s.Step = e.Plugin, e.Tier, h.Step
		if s.Try == 1 {
			s.RevBefore = base
		}
	}
	last := r.tried(x, parent, h.Time, t)
	if e.Slow {
		r.know(last, "slow", true)
	}
	if after != nil && (e.Status == engine.HookCommitted || e.Status == engine.HookRetried) {
		last.RevAfter = after.Rev
		if last.Try > 1 {
			last.RevBefore = after.Rev - 1
		}
	}
	if e.Status == engine.HookFailed || e.Status == engine.HookSkipped {
		x.Failed++
		r.changed(ofRuns, &x.item)
	}
	if d != nil && d.call != "" && last.Text != "" {
		if c := x.calls[d.call]; c != nil {
			c.did(deed{kind: hookFailed, span: last})
			r.changed(ofCalls, &c.item)
		}
	}
}

// mostTries bounds what one event may say of calls that it does not tell of.
const mostTries = 1000

// nextGroup begins another tier or round.
func (d *during) nextGroup(tier int) {
	d.tier, d.base, d.merged, d.lost = tier, d.now, nil, nil
	clear(d.by)
}

// losses are the conflicts that a hook or an action lost in this tier or round.
func (d *during) losses(plugin, hook string, action uint64) (lost []*conflict) {
	for _, l := range d.lost {
		if l.of(plugin, hook, action) {
			lost = append(lost, l)
		}
	}
	return lost
}

// round returns the span of a round, which begins with the first that is told of it.
func (r *Recording) round(x *run, d *during, n int, at time.Time) *span {
	for _, s := range d.rounds {
		if s.Round == n {
			return s
		}
	}
	d.nextGroup(0)
	s := r.open(x, d.span, KindRound, "round "+strconv.Itoa(n), at)
	s.Round, s.RevBefore = n, d.base
	d.rounds = append(d.rounds, s)
	return s
}

func (r *Recording) roundFinished(x *run, h engine.Header, e engine.RoundFinished) {
	d := x.in(h.Phase)
	if d == nil {
		return
	}
	s := r.round(x, d, e.Round, h.Time)
	s.Facts = map[string]any{"actions": e.Actions}
	s.RevAfter = h.Revision
	r.close(s, h.Time, statusOK)
	for _, l := range d.lost {
		r.settle(l)
	}
	d.now = h.Revision
}

// actionStatuses are those of spans.
var actionStatuses = map[engine.ActionStatus]string{
	engine.ActionDone: statusOK, engine.ActionDead: statusFailed, engine.ActionUndelivered: "dropped",
	engine.ActionReplaced: "substituted", engine.ActionCancelled: "cancelled",
}

func (r *Recording) actionFinished(x *run, h engine.Header, e engine.ActionFinished) {
	d, parent := x.in(h.Phase), x.within(h.Phase)
	ran := !e.Began.IsZero() || e.Status != engine.ActionDead && e.Status != engine.ActionUndelivered || e.Duration > 0
	c := x.thread.actions[e.ID]
	delete(x.thread.actions, e.ID)
	t := tries{kind: KindAction, name: e.Action, started: e.Began, took: e.Duration, again: e.Retries, status: actionStatuses[e.Status], text: cause(e.Error, phaseName(h.Phase))}
	if t.status == "" {
		t.status = statusUnknown
	}
	if e.By != "" {
		t.text = string(e.Status) + " by the gate of " + e.By + then(": ", e.Reason)
	}
	if len(e.Retries) > 0 && t.status == statusOK {
		t.status = statusRetried
	}
	plugin := x.handlers[e.Action]
	if c != nil {
		plugin = c.handled(e)
		if e.By == "" {
			x.handlers[e.Action] = plugin
		}
		r.changed(ofCommits, &c.item)
		for _, about := range c.bodies {
			r.changed(ofCalls, &about.item)
		}
	}
	if d != nil && e.Round > 0 && ran {
		parent = r.round(x, d, e.Round, h.Time)
		if !e.Began.IsZero() && e.Began.Before(parent.began) && !e.Began.Before(d.span.began) {
			parent.began, parent.Start = e.Began, r.micros(e.Began)
			r.changed(ofSpans, &parent.item)
		}
		t.lost = d.losses("", "", e.ID)
		for _, l := range t.lost {
			l.finished(string(e.Status), t.text)
			r.settle(l)
		}
		d.now = h.Revision
	}
	if !ran {
		t.started = h.Time // it was not called
	}
	t.dress = func(s *span) {
		s.Plugin, s.Round, s.Step = plugin, e.Round, h.Step
		if s.Facts == nil {
			s.Facts = map[string]any{}
		}
		s.Facts["id"], s.Facts["scheduled_by"] = e.ID, e.Plugin
	}
	last := r.tried(x, parent, h.Time, t)
	if c != nil {
		last.RevAfter = c.Rev
	}
	if e.Status == engine.ActionDead || e.Status == engine.ActionUndelivered {
		x.Failed++
		r.changed(ofRuns, &x.item)
	}
}

// effect is an Effect.
type effect struct {
	Effect
	item
}

func (r *Recording) effectFinished(x *run, h engine.Header, e engine.EffectFinished) {
	began := e.Began
	if began.IsZero() {
		began = h.Time
	}
	parent := x.here()
	f := &effect{Effect: Effect{Run: x.ID, Effect: e.Effect, Plugin: e.Plugin, Handler: e.Handler, At: r.micros(began),
		Rev: e.ID.Revision, Error: e.Error, Step: h.Step}, item: item{index: int32(len(r.effects))}}
	f.ID = r.unique("effect ", e.ID.String())
	if c := x.thread.at(e.ID.Revision); c != nil && e.ID.Run != "" {
		f.Step, f.Phase = c.Step, c.Phase
		if d := x.in(c.phase); d != nil && d.span.ID == c.PhaseSpan {
			parent = d.span
		}
	}
	r.effects = append(r.effects, f)
	r.changed(ofEffects, &f.item)
	status := statusOK
	if e.Error != "" {
		status = statusFailed
		x.Failed++
		r.changed(ofRuns, &x.item)
	}
	s := r.past(x, parent, KindEffect, e.Effect, began, began.Add(e.Duration), status)
	s.Plugin, s.Text, s.Step = e.Plugin, clip(e.Error, longText), f.Step
	s.Facts = map[string]any{"id": f.ID, "handler": e.Handler}
	f.Span = s.ID
}
