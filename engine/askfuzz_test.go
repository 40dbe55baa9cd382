package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// tkPlay is a run that asks, what was done to it, and what must become of it.
type tkPlay struct {
	t     testing.TB
	rng   *rand.Rand
	w     *gbWorld
	store *memstore.Store
	now   atomic.Int64
	c     engine.Config

	calls    []inference.ToolCall
	fate     map[string]inference.Outcome // of calls that are not to run, by call
	answered map[string]string            // decision id by ticket
	given    []engine.Decision            // that were applied
	edits    int
}

// newTkPlay makes a run of one to three calls, about each of which up to two gates and the
// tool ask, with lifetimes or not.
func newTkPlay(t testing.TB, seed uint64) *tkPlay {
	p := &tkPlay{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), store: memstore.New(memstore.Options{}),
		fate: map[string]inference.Outcome{}, answered: map[string]string{},
	}
	p.calls = tkCalls(1 + p.rng.IntN(3))
	life := func(n int) time.Duration { return []time.Duration{0, 0, time.Minute, time.Hour}[n] }
	lives := []int{p.rng.IntN(4), p.rng.IntN(4), p.rng.IntN(4)}
	tool := tkChat(p.rng.IntN(3), gate.Ticket{Lifetime: life(lives[2])})
	plugins := []engine.Plugin{gbTools(tkRerun{tool}), gaPlugin("keys", func(r *engine.Registrar) { r.Key(tkCount) })}
	for i := range p.rng.IntN(3) {
		plugins = append(plugins, gbVote(fmt.Sprintf("gate %d", i), gate.Suspend(gate.Ticket{Message: "Go?", Lifetime: life(lives[i])})))
	}
	p.c = engine.Config{
		Model: gbScript(gbAsk(p.calls...)), Plugins: plugins, Journal: p.store,
		Now: func() time.Time { return time.Unix(p.now.Load(), 0) },
	}
	p.w = gbNew(t, p.c)
	if p.rng.IntN(2) == 0 {
		p.w.spec.ToolExecution = engine.ToolsParallel
	}
	p.w.say("go")
	return p
}

// resume brings decisions, which must be applied, and checks that each answers its ticket
// once.
func (p *tkPlay) resume(ds ...engine.Decision) {
	p.apply(p.w.thread.Tickets(), ds...)
	p.check()
}

// apply is resume for a run that had those tickets open.
func (p *tkPlay) apply(open []gate.Ticket, ds ...engine.Decision) {
	res, err := p.w.thread.Resume(p.t.Context(), p.w.spec, engine.Input{}, ds...)
	require.NoError(p.t, err)
	require.NoError(p.t, res.Err)
	for _, ticket := range open {
		if !ticket.Until.IsZero() && !p.c.Now().Before(ticket.Until) {
			p.fate[ticket.Call] = inference.OutcomeCancelled // nobody answered in time
			p.answered[ticket.ID] = "expired"
		}
	}
	for _, d := range ds {
		require.NotContains(p.t, p.answered, d.Answer.Ticket)
		p.answered[d.Answer.Ticket] = d.ID
		switch call := d.Call; {
		case d.Answer.Cancel:
			p.fate[call] = inference.OutcomeCancelled
		case !d.Answer.Approved:
			p.fate[call] = inference.OutcomeDenied
		}
	}
	p.given = append(p.given, ds...)
}

// die has a process die while it applies a decision, and another go on. Nobody knows
// whether it was applied, so it is brought again.
func (p *tkPlay) die(d engine.Decision) {
	open := p.w.thread.Tickets()
	dying := tkOpen(p.w, p.c, &tkDying{Store: p.store, left: p.rng.IntN(25)})
	_, _ = dying.thread.Resume(p.t.Context(), p.w.spec, engine.Input{}, d)
	p.w = tkOpen(p.w, p.c, p.store)
	for phase.RunLifecycle.Get(p.w.thread.Snapshot()).Status == phase.Running {
		p.apply(open)
	}
	p.apply(open, d)
}

// check holds the thread against what was done to it.
func (p *tkPlay) check() {
	results := map[string]int{}
	for _, r := range p.w.results() {
		results[r.CallID]++
		want, ok := p.fate[r.CallID]
		if !ok {
			want = inference.OutcomeOK
		}
		require.Equal(p.t, want, r.Outcome, r.CallID)
		require.Equal(p.t, 1, results[r.CallID], "one result per call")
	}
	open := map[string]bool{}
	for _, ticket := range p.w.thread.Tickets() {
		require.NotContains(p.t, p.answered, ticket.ID, "it was answered")
		require.False(p.t, open[ticket.Call], "one question at a time about a call")
		open[ticket.Call] = true
		require.Zero(p.t, results[ticket.Call])
	}
	for _, call := range p.calls {
		require.True(p.t, open[call.ID] || results[call.ID] == 1, "%s waits or is done", call.ID)
		if _, over := p.fate[call.ID]; over {
			require.Equal(p.t, 1, results[call.ID], "%s was decided", call.ID)
		}
	}
}

// refuse brings a batch that must change nothing.
func (p *tkPlay) refuse(want error, ds ...engine.Decision) {
	revision := p.w.thread.Snapshot().Revision()
	_, err := p.w.thread.Resume(p.t.Context(), p.w.spec, engine.Input{}, ds...)
	require.ErrorIs(p.t, err, want)
	require.Equal(p.t, revision, p.w.thread.Snapshot().Revision())
	p.check()
}

// decision makes a random decision about an open ticket.
func (p *tkPlay) decision(ticket gate.Ticket) engine.Decision {
	d := engine.Decision{ID: fmt.Sprintf("d%d", len(p.given)+p.rng.IntN(1<<30)<<8), Call: ticket.Call, Answer: phase.Answer{Ticket: ticket.ID}}
	switch p.rng.IntN(8) {
	case 0:
		d.Answer.Reason = "no"
	case 1:
		d.Answer.Cancel = true
	case 2:
		if p.edits < 3 {
			p.edits++
			d.Answer.Args = inference.JSON(fmt.Sprintf(`{"n":%d}`, 100+p.edits))
		}
		fallthrough
	default:
		d.Answer.Approved = true
		if ticket.Kind == gate.Text {
			d.Answer.Value = `"x"`
		}
	}
	return d
}

// step does one random thing.
func (p *tkPlay) step() {
	open := p.w.thread.Tickets()
	var expired, fresh []gate.Ticket
	for _, ticket := range open {
		if !ticket.Until.IsZero() && !p.c.Now().Before(ticket.Until) {
			expired = append(expired, ticket)
		} else {
			fresh = append(fresh, ticket)
		}
	}
	switch p.rng.IntN(11) {
	case 9, 10:
		if len(fresh) > 0 {
			p.die(p.decision(fresh[p.rng.IntN(len(fresh))]))
			p.check()
		}
	case 0: // the process ends, and another goes on
		p.w = tkOpen(p.w, p.c, p.store)
		p.check()
	case 1:
		p.now.Add(int64(p.rng.IntN(90)))
	case 2:
		p.resume()
	case 3: // what was applied before
		if len(p.given) > 0 {
			d := p.given[p.rng.IntN(len(p.given))]
			revision := p.w.thread.Snapshot().Revision()
			_, err := p.w.thread.Resume(p.t.Context(), p.w.spec, engine.Input{}, d)
			require.NoError(p.t, err)
			require.Equal(p.t, revision, p.w.thread.Snapshot().Revision())
			d.ID = "another"
			p.refuse(engine.ErrLate, d)
		}
	case 4:
		if len(expired) > 0 {
			p.refuse(engine.ErrLate, p.decision(expired[0]))
		}
	case 5: // a good one and a bad one
		if len(fresh) > 0 {
			p.refuse(engine.ErrUnknownTicket, p.decision(fresh[0]), rsYes("c9"))
			p.refuse(engine.ErrBadAnswer, engine.Decision{Call: fresh[0].Call, Answer: phase.Answer{Approved: true, Cancel: true}})
		}
	default:
		var ds []engine.Decision
		for _, ticket := range fresh {
			if p.rng.IntN(2) == 0 {
				ds = append(ds, p.decision(ticket))
			}
		}
		p.resume(ds...)
	}
}

func tkPlayOne(t testing.TB, seed uint64) {
	p := newTkPlay(t, seed)
	p.check()
	for n := 0; phase.RunLifecycle.Get(p.w.thread.Snapshot()).Status == phase.Waiting; n++ {
		require.Less(t, n, 500, "the run does not come to an end")
		p.step()
	}
	require.Len(t, p.w.results(), len(p.calls))
	_, err := p.w.thread.Resume(t.Context(), p.w.spec, engine.Input{})
	require.True(t, errors.Is(err, engine.ErrNotWaiting))
}

// Capability A14. Capability B5. Whatever sequence of answers, noes, edits, repeats,
// mistakes, expiries and changes of process a run goes through, every answer is applied
// once, every call has one result, and that is what was decided about it.
func FuzzQuestions(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { tkPlayOne(t, seed) })
}
