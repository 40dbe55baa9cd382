package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
)

// overCalls is what gates over tool calls are found by among those over actions.
const overCalls = ""

// gated is the turn of an action whose kind has gates. It is asked anew whenever the
// turn is taken again, so what it decides is about the state that it commits on.
type gated struct {
	r      *run
	sc     scene
	gates  []ballot
	job    *job
	plugin string // of the handler
	limit  time.Duration
	ruling ruling
}

// ruling is what a gate, or all of them, made of an action.
type ruling struct {
	kind   gate.RulingKind
	by     string // the plugin of the gate that decided, "" when the handler's call counts
	reason string
	cmd    phase.Command
	err    error
}

// fates are what becomes of an action, by kind of ruling.
var fates = [...]ActionStatus{gate.KindProceed: ActionDone, gate.KindReplace: ActionReplaced, gate.KindCancel: ActionCancelled}

// gate makes the gates decide about the first action of ts. The deadline is moved into
// the turn: one that is over may not change its job any more.
func (ts *turns) gate(r *run, sc scene, gates []ballot) *gated {
	if len(gates) == 0 {
		return nil
	}
	j := &ts.jobs[0]
	g := &gated{r: r, sc: sc, gates: gates, job: j, plugin: j.owner, limit: j.timeout}
	j.timeout = 0
	return g
}

func (g *gated) call(ctx context.Context, pc *phase.Context, t *turn) (phase.Command, error) {
	g.ruling = g.rule(ctx, pc, t.Action)
	g.job.owner = cmp.Or(g.ruling.by, g.plugin)
	if g.ruling.by != "" {
		return g.ruling.cmd, g.ruling.err
	}
	return within(ctx, g.r.crew, g.limit, g.plugin, g.sc.phase, func(ctx context.Context) (phase.Command, error) {
		return t.handle(ctx, pc)
	})
}

// rule asks all gates at the same time. The strictest ruling counts, between equals
// that of the first gate.
func (g *gated) rule(ctx context.Context, own *phase.Context, a phase.Action) (strictest ruling) {
	r := g.r
	votes := fanOut(ctx, r.way(nil), len(g.gates), func(i int) ruling {
		b, pc := g.gates[i], own
		if b.of != r {
			pc = b.of.context(g.sc, b.of.th.store.Snapshot())
		}
		limit := cmp.Or(b.opts.timeout, r.eng.config.Limits.HookTimeout)
		v, err := within(ctx, r.crew, limit, b.plugin, g.sc.phase, func(ctx context.Context) (gate.Ruling, error) {
			return b.action.Check(ctx, pc, a)
		})
		return ruling{kind: v.Kind(), reason: v.Reason(), cmd: v.Command(), err: err}
	}, func(err error) ruling { return ruling{err: err} })
	for i, v := range votes {
		b := g.gates[i]
		v.by = b.plugin
		switch {
		case v.err != nil && b.opts.failOpen:
			r.warn(g.sc, v.by, "gate %s failed and has no say: %v", b.id, v.err)
		case v.err != nil:
			return ruling{by: v.by, err: &gate.FailedError{Plugin: v.by, Err: v.err}}
		case v.kind > strictest.kind:
			strictest = v
		case v.kind == strictest.kind && v.kind != gate.KindProceed:
			r.warn(g.sc, v.by, "gate %s wants for %s what the gate of %s does, which counts", b.id, a.Name(), strictest.by)
		}
	}
	return strictest
}
