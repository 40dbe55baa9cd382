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

// ruling is what gates made of an action.
type ruling struct {
	status ActionStatus
	by     string // the plugin of the gate that decided, "" when the handler's call counts
	reason string
	cmd    phase.Command
	err    error
}

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
func (g *gated) rule(ctx context.Context, own *phase.Context, a phase.Action) ruling {
	r := g.r
	type vote struct {
		gate.Ruling
		err error
	}
	votes := fanOut(ctx, r.way(nil), len(g.gates), func(i int) (v vote) {
		b, pc := g.gates[i], own
		if b.of != r {
			pc = b.of.context(g.sc, b.of.th.store.Snapshot())
		}
		limit := cmp.Or(b.opts.timeout, r.eng.config.Limits.HookTimeout)
		v.Ruling, v.err = within(ctx, r.crew, limit, b.plugin, g.sc.phase, func(ctx context.Context) (gate.Ruling, error) {
			return b.action.Check(ctx, pc, a)
		})
		return v
	}, func(err error) vote { return vote{err: err} })
	strictest, out := gate.KindProceed, ruling{status: ActionDone}
	for i, v := range votes {
		by, kind := g.gates[i].plugin, v.Kind()
		switch {
		case v.err != nil && g.gates[i].opts.failOpen:
			r.warn(g.sc, by, "gate %s failed and has no say: %v", g.gates[i].id, v.err)
		case v.err != nil:
			return ruling{by: by, err: &gate.FailedError{Plugin: by, Err: v.err}}
		case kind == gate.KindProceed || kind < strictest:
		case kind == strictest:
			r.warn(g.sc, by, "gate %s wants for %s what the gate of %s does, which counts", g.gates[i].id, a.Name(), out.by)
		default:
			strictest, out = kind, ruling{status: ActionCancelled, by: by, reason: v.Reason(), cmd: v.Command()}
			if kind == gate.KindReplace {
				out.status = ActionReplaced
			}
		}
	}
	return out
}
