package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// plan is what a seed decides about a world as a whole.
type plan struct {
	dice       dice
	clients    int // processes that are there at the same time
	threads    int
	actions    int // of each client
	runs       int // of each thread
	leased     bool
	prune      bool // somebody drops the past now and then
	handoffs   bool // to another agent
	courier    bool // each process delivers the outbox beside its runs
	parallel   bool // tool calls run at the same time
	resolver   bool // questions are answered in place
	background bool // effects are
	vault      bool // secrets outlive a process
	many       bool // the store says that several processes use it
	stops      bool // processes stand still in the middle of something
	skew       bool // clocks are wrong and jump
	crashes    bool // of processes
	dieAt      int  // append at which the first process dies; 0 for none
	dieLate    bool // after the store has it
	faults     faultstore.Config
}

// lease is short, so that tools and pauses outlast it.
const lease = 12 * time.Second

func newPlan(seed uint64) plan {
	d := dice(mix(seed))
	p := plan{
		dice:       d,
		clients:    1 + d.n(3, "clients"),
		threads:    1 + d.n(2, "threads"),
		actions:    5 + d.n(5, "actions"),
		runs:       1 + d.n(2, "runs"),
		leased:     d.chance(700, "leased"),
		parallel:   d.chance(500, "parallel"),
		resolver:   d.chance(200, "resolver"),
		prune:      d.chance(300, "prune"),
		handoffs:   d.chance(300, "handoffs"),
		courier:    d.chance(400, "courier"),
		background: d.chance(200, "background"),
		vault:      d.chance(500, "vault"),
		stops:      d.chance(500, "stops"),
		skew:       d.chance(300, "skew"),
		crashes:    d.chance(700, "crashes"),
	}
	p.many = p.clients > 1 && d.chance(800, "many")
	p.faults = faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{}, At: map[int]faultstore.Fault{}}
	// None, a few or many of each kind, so that some worlds get far and some fight on the spot.
	for f := faultstore.FailBefore; f <= faultstore.Stale; f++ {
		p.faults.Rate[f] = []float64{0, 0, 0.01, 0.02, 0.06}[d.n(5, "rate", f.String())]
	}
	for i := range d.n(3, "store crashes") {
		p.faults.At[1+d.n(90, "crash at", i)] = faultstore.Crash
	}
	return p
}

// withoutFaults is the plan of the same world with a store and processes that work.
func (p plan) withoutFaults() plan {
	p.faults.Rate, p.faults.At, p.crashes, p.stops, p.skew = nil, nil, false, false, false
	return p
}

func (p plan) spec() engine.AgentSpec {
	s := engine.AgentSpec{ID: "sim", MaxRounds: 6}
	if p.parallel {
		s.ToolExecution = engine.ToolsParallel
	}
	return s
}

// other is the agent that runs are handed off to.
func (p plan) other() engine.AgentSpec {
	s := p.spec()
	s.ID, s.SystemPrompt = "other", "You are the other one."
	return s
}

func (p plan) limits() engine.Limits {
	l := engine.Limits{
		JournalTimeout: 20 * time.Second, Lease: lease, OutboxDelay: 10 * time.Second,
		Grace: 5 * time.Second, EffectTries: 1000, PhaseRounds: 8,
	}
	if p.dice.chance(300, "tool timeout") {
		l.ToolTimeout = 20 * time.Second
	}
	if p.dice.chance(200, "effect timeout") {
		l.EffectTimeout = 2 * time.Second
	}
	return l
}

// String says in one line what kind of world it is.
func (p plan) String() string {
	var is []string
	for _, x := range []struct {
		yes  bool
		name string
	}{
		{p.leased, "leased"}, {p.parallel, "parallel tools"}, {p.resolver, "resolver"}, {p.prune, "pruning"}, {p.handoffs, "handoffs"}, {p.courier, "couriers"}, {p.background, "effects in the background"}, {p.vault, "vault"}, {p.many, "shared store"},
		{p.stops, "stops"}, {p.skew, "wrong clocks"}, {p.crashes, "crashes"},
	} {
		if x.yes {
			is = append(is, x.name)
		}
	}
	return fmt.Sprintf("%d clients, %d threads, %d actions, %d runs; %s; rates %v, at %v", p.clients, p.threads, p.actions, p.runs,
		strings.Join(is, ", "), p.faults.Rate, p.faults.At)
}
