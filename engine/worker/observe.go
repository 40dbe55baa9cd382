package worker

import (
	"sync/atomic"
	"time"
)

// Report tells that an activation is over: it has an outcome, or was put off.
type Report struct {
	Thread   string
	Outcome  Outcome
	Lane     Lane
	Attempts int           // that came to nothing before
	Waited   time.Duration // from when it was submitted, or due, until it is over
}

// Stats counts what a worker did since it was made. Running is as of now.
type Stats struct {
	Running int64 // runs under way

	Claims  int64 // wake-ups taken
	Runs    int64 // runs started or gone on with
	TakenUp int64 // of these, runs whose worker had failed or moved
	Applied int64
	Dropped int64
	Refused int64
	Dead    int64
	Retries int64 // attempts that came to nothing and will be made again

	LeaseHeld int64 // times another owner had the thread
	LeaseLost int64 // runs that lost their thread to another owner
	Faults    int64 // calls of the store that failed

	EffectsDelivered int64
	EffectsFailed    int64
	EffectsDead      int64
}

type counts struct {
	running, claims, runs, takenUp, applied, dropped, refused, dead, retries atomic.Int64
	leaseHeld, leaseLost, faults                                             atomic.Int64
	effectsDelivered, effectsFailed, effectsDead                             atomic.Int64
}

// Stats returns the counts. What waits in the lanes is told by Lanes.
func (w *Worker) Stats() Stats {
	c := &w.counts
	return Stats{
		Running: c.running.Load(), Claims: c.claims.Load(), Runs: c.runs.Load(), TakenUp: c.takenUp.Load(),
		Applied: c.applied.Load(), Dropped: c.dropped.Load(), Refused: c.refused.Load(), Dead: c.dead.Load(), Retries: c.retries.Load(),
		LeaseHeld: c.leaseHeld.Load(), LeaseLost: c.leaseLost.Load(), Faults: c.faults.Load(),
		EffectsDelivered: c.effectsDelivered.Load(), EffectsFailed: c.effectsFailed.Load(), EffectsDead: c.effectsDead.Load(),
	}
}

// over counts and tells outcomes.
func (w *Worker) over(thread string, outcomes []Outcome, before []entry) {
	for i, o := range outcomes {
		switch o.Fate {
		case Applied:
			w.counts.applied.Add(1)
		case Dropped:
			w.counts.dropped.Add(1)
		case Refused:
			w.counts.refused.Add(1)
		case Dead:
			w.counts.dead.Add(1)
		}
		if w.config.Observe != nil {
			e := before[i]
			due := e.Time
			if e.NotBefore.After(due) {
				due = e.NotBefore
			}
			w.config.Observe(Report{Thread: thread, Outcome: o, Lane: e.lane(), Attempts: e.Attempts, Waited: w.now().Sub(due)})
		}
	}
}
