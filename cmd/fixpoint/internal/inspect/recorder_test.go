//go:build browser

package inspect_test

import "fmt"

// recorder writes views as a run would: it has a clock, a revision and a place.
type recorder struct {
	view *view
	run  *run
	now  float64 // microseconds
	rev  int
	step int
	ids  int
}

func newRecorder(source string) *recorder {
	return &recorder{view: &view{Version: 1, Source: source, Zero: "2026-11-30T09:00:00Z"}}
}

func (r *recorder) id(prefix string) string {
	r.ids++
	return fmt.Sprintf("%s%d", prefix, r.ids)
}

func (r *recorder) begin(id, agent, input, parent string, base ...change) *span {
	r.run = &run{
		ID: id, Parent: parent, Thread: "thread-" + id, Agent: agent, Input: input, Status: "running", Mode: "interactive",
		Start: r.now, Base: base, BaseRev: r.rev,
	}
	r.view.Runs = append(r.view.Runs, r.run)
	return r.open(nil, "run", agent)
}

func (r *recorder) finish(top *span, reason string) {
	r.close(top)
	r.run.Status, r.run.Reason, r.run.End, r.run.Steps = "done", reason, ptr(r.now), r.step
}

// open begins a span within another.
func (r *recorder) open(parent *span, kind, name string) *span {
	s := &span{ID: r.id("s"), Run: r.run.ID, Kind: kind, Name: name, Start: r.now, Status: "open", Step: r.step, RevBefore: ptr(r.rev)}
	if parent != nil {
		s.Parent, s.Phase, s.Call, s.Round = parent.ID, parent.Phase, parent.Call, parent.Round
	}
	if kind == "phase" {
		s.Phase = name
	}
	r.view.Spans = append(r.view.Spans, s)
	return s
}

func (r *recorder) close(s *span) *span {
	s.End = ptr(r.now)
	if s.Status == "open" {
		s.Status = "ok"
	}
	if r.rev != *s.RevBefore {
		s.RevAfter = ptr(r.rev)
	}
	return s
}

// child is a span of a length that begins so long after its parent did.
func (r *recorder) child(parent *span, kind, plugin, hook string, after, length float64, status string) *span {
	s := r.open(parent, kind, hook)
	s.Plugin, s.Hook, s.Status = plugin, hook, status
	s.Start = parent.Start + after
	s.End = ptr(s.Start + length)
	return s
}

// hooks runs hooks at once from now on; the clock is at the last end after it.
func (r *recorder) hooks(phase *span, tier int, hooks ...hook) []*span {
	begin, end := r.now, r.now
	var spans []*span
	for i, h := range hooks {
		s := r.open(phase, "hook", h.name)
		s.Plugin, s.Hook, s.Tier, s.Try, s.Status, s.Text = h.plugin, h.name, tier, 1, h.status, h.text
		if s.Status == "" {
			s.Status = "ok"
		}
		s.Start = begin + float64(i)*1.5
		s.End = ptr(s.Start + h.length)
		end = max(end, *s.End)
		spans = append(spans, s)
	}
	r.now = end + 3
	return spans
}

type hook struct {
	plugin, name string
	length       float64
	status, text string
}

// commit makes the next revision.
func (r *recorder) commit(phase *span, writes []write, conflicts ...conflict) *commit {
	r.rev++
	c := &commit{
		ID: r.id("c"), Run: r.run.ID, Rev: r.rev, At: r.now, Step: r.step, Phase: phase.Phase, PhaseSpan: phase.ID, Round: phase.Round,
		Writes: writes, Conflicts: conflicts,
	}
	for _, w := range writes {
		c.Changes = append(c.Changes, change{
			Key: w.Key, Entry: w.Entry, Value: w.Value,
			Why: []string{fmt.Sprintf("Revision %d: %s (%s) wrote %s in %s of step %d.", r.rev, w.Plugin, w.Hook, w.Key, phase.Phase, r.step)},
		})
	}
	r.view.Commits = append(r.view.Commits, c)
	r.now += 4
	return c
}

// retry runs a hook again, alone, and commits it.
func (r *recorder) retry(phase *span, lost *span, length float64, writes ...write) *commit {
	s := r.open(phase, "hook", lost.Hook)
	s.Plugin, s.Hook, s.Tier, s.Try, s.Status = lost.Plugin, lost.Hook, lost.Tier, 2, "ok"
	r.now += length
	s.End = ptr(r.now)
	r.now += 1
	c := r.commit(phase, writes)
	c.Retry = true
	s.RevAfter = ptr(c.Rev)
	return c
}

// round runs actions one after another, each with a commit of its own.
func (r *recorder) round(phase *span, n int, actions ...hook) {
	round := r.open(phase, "round", fmt.Sprintf("round %d", n))
	round.Round = n
	at := *phase
	at.Round = n
	for _, a := range actions {
		s := r.open(round, "action", a.name)
		s.Plugin, s.Hook, s.Status, s.Text = a.plugin, a.name, a.status, a.text
		if s.Status == "" {
			s.Status = "ok"
		}
		r.now += a.length
		s.End = ptr(r.now)
		r.now += 1
		c := r.commit(&at, []write{{a.plugin, a.name, "index.entries", a.name, "set", map[string]any{"round": n, "state": "done"}}})
		s.RevAfter = ptr(c.Rev)
	}
	r.close(round)
}

func (r *recorder) gate(phase *span, plugin, name string, after, length float64, decision, text string) {
	s := r.child(phase, "gate", plugin, name, after, length, decision)
	s.Text = text
	r.now = max(r.now, *s.End)
}

func (r *recorder) effect(phase *span, name, plugin, handler string, length float64, failure string) {
	s := r.open(phase, "effect", name)
	s.Plugin, s.Hook, s.Text = handler, name, failure
	r.now += length
	s.End = ptr(r.now)
	s.Status = "ok"
	if failure != "" {
		s.Status = "failed"
		r.run.Failed++
	}
	r.view.Effects = append(r.view.Effects, &effect{
		ID: r.id("e"), Span: s.ID, Run: r.run.ID, Effect: name, Plugin: plugin, Handler: handler, At: s.Start, Rev: r.rev, Error: failure, Step: r.step, Phase: phase.Phase,
	})
}

func ptr[T any](v T) *T { return &v }
