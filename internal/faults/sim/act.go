package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// act does one thing that somebody who uses an engine would do.
func (p *process) act(d dice) {
	w := p.w
	if d.chance(150, "outbox") {
		p.deliverOutbox(p.ctx)
		return
	}
	id := w.threadID(d.n(w.plan.threads, "thread"))
	t, err := p.thread(p.ctx, id, d.chance(300, "anew"))
	if err != nil {
		w.trace(p.name, "cannot open %s: %v", id, err)
		return
	}
	ctx, cancel := p.patience(d)
	defer cancel()
	l := phase.RunLifecycle.Get(t.Snapshot())
	switch l.Status {
	case phase.Waiting:
		err = p.answer(ctx, t, d)
	case phase.Running:
		err = p.resume(ctx, t)
	default:
		err = p.begin(ctx, t, d)
	}
	if d.chance(100, "fork") {
		p.fork(t, d)
	}
	if d.chance(100, "submit") {
		p.submit(t, d)
	}
	if w.plan.prune && d.chance(100, "prune") {
		p.prune(id, 1+d.n(3, "keep"))
	}
	if p.gone() {
		delete(p.open, id)
	}
	if err != nil {
		w.trace(p.name, "%s: %v", id, err)
		if broken(err) {
			delete(p.open, id)
		}
	}
}

// patience is a context that some of the time ends before a run does.
func (p *process) patience(d dice) (context.Context, context.CancelFunc) {
	if d.chance(150, "cancel") {
		return context.WithTimeout(p.ctx, 100*time.Millisecond*time.Duration(1+d.n(100, "after")))
	}
	return context.WithCancel(p.ctx)
}

// broken reports whether a thread must be opened again.
func broken(err error) bool {
	return errors.Is(err, engine.ErrJournalConflict) || errors.Is(err, engine.ErrFenced) || errors.Is(err, engine.ErrUnknownOutcome) ||
		errors.Is(err, engine.ErrCorrupt) || errors.Is(err, context.DeadlineExceeded)
}

// begin starts a run, as long as there are some left.
func (p *process) begin(ctx context.Context, t *engine.Thread, d dice) error {
	n := 0
	for _, m := range engine.Transcript.Get(t.Snapshot()).All() {
		if m.Role == inference.RoleUser && strings.HasPrefix(m.Text, prompt) {
			n++
		}
	}
	if n >= p.w.plan.runs {
		return nil
	}
	p.w.trace(p.name, "runs %s", t.ID())
	res, err := t.Run(ctx, p.w.plan.spec(), input(t.ID(), n))
	return p.went(t, res, err)
}

// resume goes on with a run.
func (p *process) resume(ctx context.Context, t *engine.Thread, ds ...engine.Decision) error {
	p.w.trace(p.name, "resumes %s with %v", t.ID(), ds)
	res, err := t.Resume(ctx, p.w.plan.spec(), engine.Input{}, ds...)
	return p.went(t, res, err)
}

// went looks at how a run or a part of it went.
func (p *process) went(t *engine.Thread, res *engine.Result, err error) error {
	if err == nil {
		p.w.trace(p.name, "%s is %s: %s %s, %d tickets, %v", t.ID(), res.Status, res.Reason, res.Detail, len(res.Tickets), res.Err)
		p.w.ledger.add(func(s *Stats) {
			s.Runs++
			switch {
			case p.gone():
			case res.Status == phase.Waiting:
				s.Waits++
			case res.Reason == phase.ReasonNatural:
				s.Natural++
			case res.Reason == phase.ReasonCancelled:
				s.Cancelled++
			}
		})
		err = res.Err
		p.said(t, res)
	}
	if errors.Is(err, engine.ErrLate) {
		p.w.ledger.add(func(s *Stats) { s.Late++ })
	}
	if errors.Is(err, engine.ErrLeaseHeld) {
		p.w.ledger.add(func(s *Stats) { s.Held++ })
	}
	p.w.sameAsKept(p, t)
	return err
}

// said checks that a result without an error says what is kept.
func (p *process) said(t *engine.Thread, res *engine.Result) {
	if res.Err != nil || p.gone() {
		return
	}
	is := phase.RunLifecycle.Get(t.Snapshot())
	if is.Status != res.Status || is.Run != res.Run || res.Status != phase.Done && res.Status != phase.Waiting {
		p.w.ledger.violated("%s: %s is said to be %s (%s), and is %s (%s)", p.name, t.ID(), res.Status, res.Run, is.Status, is.Run)
	}
	if res.Status == phase.Waiting && len(res.Tickets) == 0 {
		p.w.ledger.violated("%s: %s waits for nothing", p.name, t.ID())
	}
	for _, ticket := range res.Tickets {
		if ticket.ID == "" {
			p.w.ledger.violated("%s: %s waits for an answer to a ticket without an id", p.name, t.ID())
		}
	}
}

// decision is the world's answer to a ticket, by everyone the same, unless it is a
// rival one, which comes from somebody else.
func (p *process) decision(thread string, t gate.Ticket, rival bool) engine.Decision {
	d := p.w.dice.about("decision", thread, t.ID)
	yes := d.chance(750, "yes") != rival
	answer := "no"
	if yes {
		answer = "yes"
	}
	if rival {
		answer += "-rival"
	}
	a := phase.Answer{Ticket: t.ID, Approved: yes}
	if yes {
		a.Value = valueFor(t)
	} else {
		a.Reason, a.Cancel = "because", d.chance(200, "cancel")
	}
	return engine.Decision{ID: newToken(tokenDecision, t.ID, answer), Answer: a}
}

// everything is a decision on each open ticket.
func (p *process) everything(t *engine.Thread) (ds []engine.Decision) {
	for _, ticket := range t.Tickets() {
		if p.calm && !ticket.Until.IsZero() && !time.Now().Before(ticket.Until) {
			continue // its default counts
		}
		ds = append(ds, p.decision(t.ID(), ticket, false))
	}
	return ds
}

// answer brings decisions: all, some, again, against each other or about nothing.
func (p *process) answer(ctx context.Context, t *engine.Thread, d dice) error {
	ds := p.everything(t)
	switch what := d.n(10, "answer"); {
	case what < 2 && len(ds) > 1:
		ds = ds[d.n(len(ds), "from"):]
	case what == 2 && len(ds) > 0:
		ds = []engine.Decision{p.decision(t.ID(), t.Tickets()[0], true)}
	case what == 3:
		ds = nil
	case what == 4:
		before := t.Snapshot().Revision()
		bad := append(ds[:len(ds):len(ds)], engine.Decision{ID: "nothing", Answer: phase.Answer{Ticket: "nobody/1/c0-0/1"}})
		_, err := t.Resume(ctx, p.w.plan.spec(), engine.Input{}, bad...)
		var de *engine.DecisionError
		if errors.As(err, &de) && t.Snapshot().Revision() != before {
			p.w.ledger.violated("%s: a refused batch changed %s", p.name, t.ID())
		}
		if err == nil {
			p.w.ledger.violated("%s: a decision about nothing was taken", p.name)
		}
		p.w.sameAsKept(p, t)
		return err
	}
	err := p.decide(ctx, t, ds)
	if err == nil && d.chance(300, "twice") {
		revision := t.Snapshot().Revision()
		if again := p.decide(ctx, t, ds); again == nil && len(ds) > 0 && t.Snapshot().Revision() != revision {
			p.w.ledger.violated("%s: decisions that came twice changed %s twice", p.name, t.ID())
		}
	}
	return err
}

// decide resumes with decisions, and checks that they count when that is said.
func (p *process) decide(ctx context.Context, t *engine.Thread, ds []engine.Decision) error {
	p.w.trace(p.name, "resumes %s with %v", t.ID(), ds)
	late := p.late(t, ds)
	res, err := t.Resume(ctx, p.w.plan.spec(), engine.Input{}, ds...)
	if late && err == nil {
		p.w.ledger.violated("%s: a decision about %s is taken, and its time had run out", p.name, t.ID())
	}
	if err == nil && !p.gone() {
		for _, id := range ds {
			if !p.w.ledger.applied(t.ID(), id.ID) {
				p.w.ledger.violated("%s: decision %s is said to be applied, and is not in the journal of %s", p.name, id.ID, t.ID())
			}
		}
	}
	return p.went(t, res, err)
}

// late reports whether a batch has a decision that did not come before and whose
// ticket is open no longer, by a clock that does not jump.
func (p *process) late(t *engine.Thread, ds []engine.Decision) bool {
	if p.w.plan.skew {
		return false
	}
	for _, ticket := range t.Tickets() {
		for _, d := range ds {
			if d.Answer.Ticket == ticket.ID && !ticket.Until.IsZero() && time.Now().After(ticket.Until) {
				return true
			}
		}
	}
	return false
}

// fork begins another story at some revision of a thread, and goes on with it.
func (p *process) fork(t *engine.Thread, d dice) {
	now := t.Snapshot().Revision()
	if now == 0 || strings.Count(t.ID(), "-") > 0 || p.gone() {
		return
	}
	revision := now - uint64(d.n(min(int(now), 12), "back"))
	id := fmt.Sprintf("%s-%s-%d", t.ID(), p.name, revision)
	before, _ := t.Export()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	f, err := t.Fork(ctx, revision, id)
	p.w.trace(p.name, "forks %s at %d as %s: %v", t.ID(), revision, id, err)
	if after, _ := t.Export(); !same(before, after) {
		p.w.ledger.violated("%s: forking %s changed it", p.name, t.ID())
	}
	if err != nil {
		return
	}
	p.w.ledger.add(func(s *Stats) { s.Forks++ })
	p.adopt(f)
	p.w.sameAsKept(p, f)
	if l := phase.RunLifecycle.Get(f.Snapshot()); l.Status == phase.Running {
		_ = p.resume(p.ctx, f)
	}
}

// prune drops what is older than some snapshots.
func (p *process) prune(id string, keep int) {
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	if p.conn.Prune(ctx, id, engine.PrunePolicy{KeepSnapshots: keep}) == nil {
		p.w.ledger.add(func(s *Stats) { s.Prunes++ })
	}
}

// submit commits something beside all runs.
func (p *process) submit(t *engine.Thread, d dice) {
	var cmd phase.Command
	(&agent{p: p}).emit(&cmd, true, fmt.Sprintf("%s/submit/%s.%d", t.ID(), p.name, p.ids.Add(1)))
	cmd.Update(total.With(1))
	if d.chance(300, "purse") {
		cmd.Update(purse.With(7))
	}
	_, err := t.Submit(p.ctx, "sim", cmd)
	p.w.trace(p.name, "submits to %s: %v", t.ID(), err)
	p.w.sameAsKept(p, t)
}

func same(a, b state.Dump) bool {
	if len(a.Entries) != len(b.Entries) {
		return false
	}
	for i, e := range a.Entries {
		o := b.Entries[i]
		if e.Name != o.Name || e.Version != o.Version || string(e.Raw) != string(o.Raw) {
			return false
		}
	}
	return true
}
