package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// Worker is the child process of Run.
var Worker = child.Part{Name: "crash worker", Run: work}

// job is what a worker is told first.
type job struct {
	Path      string `json:"path"`
	Seed      uint64 `json:"seed"`
	Start     int    `json:"start"` // how often workers were started before
	Lanes     []int  `json:"lanes"` // the number of each lane's first thread
	Forgetful bool   `json:"forgetful"`
	Last      bool   `json:"last"` // finish the threads that were begun, deliver all, and end
}

// line is what a worker tells.
type line struct {
	Kind   string `json:"k"`
	Thread string `json:"t,omitempty"`
	What   string `json:"w,omitempty"` // a call, a ticket, or an effect's content
	ID     string `json:"i,omitempty"` // of an effect; of a ticket's call
	Rev    uint64 `json:"r,omitempty"`
	// Of a commit: where the run is, and a fingerprint of the state.
	Position string `json:"p,omitempty"`
	Mark     string `json:"m,omitempty"`
}

// The kinds of lines. Each is said when, and only when, what it tells has happened.
const (
	lineReady   = "ready"   // the store is open
	lineCommit  = "commit"  // a commit was acknowledged
	lineBody    = "body"    // a tool's body begins
	lineDecided = "decided" // a ticket is about to be approved
	lineExpired = "expired" // a ticket is too late to answer
	lineKept    = "kept"    // a durable effect was delivered
	linePlain   = "plain"   // another one was
	lineFailed  = "failed"  // a durable effect's handler refused it
	lineOutbox  = "outbox"  // a pass over the outbox is over
)

// patience is how much later, on all clocks, each process is than the one before it:
// claims of the dead have run out, and failed deliveries are due.
const patience = 2 * time.Hour

func clock(start int) func() time.Time {
	shift := time.Duration(start) * patience
	return func() time.Time { return time.Now().Add(shift) }
}

type worker struct {
	job
	*keys
	say     *talk.Voice
	eng     *engine.Engine
	attempt atomic.Uint64
}

func work(ctx context.Context, _ []string) (err error) {
	w := &worker{keys: newKeys(), say: talk.NewVoice(os.Stdout)}
	if err := json.NewDecoder(os.Stdin).Decode(&w.job); err != nil {
		return fmt.Errorf("crash: read the job: %w", err)
	}
	file, err := bolt.Open(w.Path, bolt.Options{Now: clock(w.Start)})
	if err != nil {
		return err
	}
	var journal engine.Journal = file
	if w.Forgetful {
		journal = &forgetful{Journal: file, held: map[string]engine.JournalCommit{}}
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if w.eng, err = engine.New(config(w.keys, journal, w, w.Seed, w.Start)); err != nil {
		return err
	}
	w.say.Say(line{Kind: lineReady})
	ended := make(chan error, len(w.Lanes)+1)
	go func() { ended <- w.outbox(ctx) }()
	for lane := range w.Lanes {
		go func() { ended <- w.lane(ctx, lane) }()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			return err
		}
	}
	if err := w.outbox(ctx); err != nil { // what was left by the lanes
		return err
	}
	return w.eng.Close(ctx)
}

func config(k *keys, journal engine.Journal, watch watcher, seed uint64, start int) engine.Config {
	c := engine.Config{
		Plugins: []engine.Plugin{&shop{keys: k, watch: watch, seed: seed}},
		Model:   &scripts{seed: seed, made: map[string]*enginetest.Script{}},
		Journal: journal,
		Now:     clock(start),
		Limits:  engine.Limits{EffectTries: 1 << 20}, // attempts that a kill cut off count, too
	}
	if start%2 == 1 {
		c.EffectMode = effects.Background
	}
	if start%3 == 1 {
		c.Owner = fmt.Sprintf("worker %d", start) // by the clock, the leases of the one before have run out
	}
	return c
}

func (w *worker) outbox(ctx context.Context) error {
	_, err := w.eng.DeliverOutbox(ctx)
	w.say.Say(line{Kind: lineOutbox})
	return err
}

func threadName(lane, number int) string { return fmt.Sprintf("thread-%d-%d", lane, number) }

// lane runs thread after thread.
func (w *worker) lane(ctx context.Context, lane int) error {
	for number := w.Lanes[lane]; ; number++ {
		t, err := w.eng.OpenThread(ctx, threadName(lane, number))
		if err != nil {
			return err
		}
		if w.Last && t.Snapshot().Revision() == 0 {
			return nil
		}
		stop := t.Subscribe(func(c state.Commit) {
			l := phase.RunLifecycle.Get(c.Snapshot)
			w.say.Say(line{Kind: lineCommit, Thread: t.ID(), Rev: c.Revision, Mark: w.mark(c.Snapshot), Position: positionOf(l.Run, l.Step, l.Status)})
		})
		err = w.thread(ctx, lane, t)
		stop()
		if err != nil {
			return fmt.Errorf("%s: %w", t.ID(), err)
		}
		if lane == 0 && !w.Last {
			if err := w.outbox(ctx); err != nil {
				return err
			}
		}
	}
}

// thread goes on with a thread from wherever it stands until it has had all its runs.
func (w *worker) thread(ctx context.Context, lane int, t *engine.Thread) error {
	spec := specOf(lane)
	for {
		var res *engine.Result
		var err error
		runs, status := w.standing(t.Snapshot())
		switch {
		case status == phase.Waiting:
			res, err = w.decide(ctx, spec, t)
		case status == phase.Running:
			res, err = t.Resume(ctx, spec, engine.Input{})
		case runs == runsPerThread:
			return nil
		default:
			in := engine.Prompt(prompt(t.ID(), runs))
			in.RunID = fmt.Sprintf("%s.%d", t.ID(), runs) // so that the seed decides about tickets
			res, err = t.Run(ctx, spec, in)
		}
		switch {
		case err != nil:
			return err
		case res.Err != nil:
			return res.Err
		case res.Status != phase.Waiting && res.Reason != phase.ReasonNatural:
			return fmt.Errorf("the run ended with %q: %s", res.Reason, res.Detail)
		}
	}
}

// standing returns how many runs a thread has had, and the status of the last.
func (k *keys) standing(snap *state.Snapshot) (runs int, status phase.RunStatus) {
	for _, m := range engine.Transcript.Get(snap).All() {
		if m.Role == "user" {
			runs++
		}
	}
	return runs, phase.RunLifecycle.Get(snap).Status
}

// decide answers all open tickets that are not too late in one batch, and then once
// more, which must not change anything.
func (w *worker) decide(ctx context.Context, spec engine.AgentSpec, t *engine.Thread) (*engine.Result, error) {
	var ds []engine.Decision
	now := clock(w.Start)()
	for _, ticket := range t.Tickets() {
		if !ticket.Until.IsZero() && !now.Before(ticket.Until) {
			w.say.Say(line{Kind: lineExpired, Thread: t.ID(), What: ticket.ID})
			continue
		}
		ds = append(ds, engine.Decision{ID: "decision on " + ticket.ID, Answer: w.answer(ticket)})
		if ds[len(ds)-1].Answer.Approved {
			w.say.Say(line{Kind: lineDecided, Thread: t.ID(), What: ticket.ID, ID: ticket.Call})
		}
	}
	res, err := t.Resume(ctx, spec, engine.Input{}, ds...)
	if err != nil || res.Err != nil || len(ds) == 0 {
		return res, err
	}
	before := t.Snapshot().Revision()
	if _, err := t.Resume(ctx, spec, engine.Input{}, ds...); err != nil {
		return nil, fmt.Errorf("a decision repeated: %w", err)
	}
	if now := t.Snapshot().Revision(); now != before {
		return nil, fmt.Errorf("a decision repeated made revision %d of %d", now, before)
	}
	return res, nil
}

// answer is what the person says: the same to the same question, whoever asks.
func (w *worker) answer(t gate.Ticket) phase.Answer {
	a := phase.Answer{Ticket: t.ID, Approved: hash(w.Seed, t.ID)%4 != 0, Reason: "no"}
	if a.Approved && t.Kind == gate.Choice {
		a.Value = `"two"`
	}
	return a
}

func (w *worker) body(thread, call string) {
	w.say.Say(line{Kind: lineBody, Thread: thread, What: call})
}

// delivered refuses a durable effect now and then, unless this is the last process.
func (w *worker) delivered(durable bool, id effects.ID, s sent) error {
	l := line{Kind: linePlain, Thread: s.Thread, What: s.What, ID: id.String()}
	switch {
	case durable && !w.Last && w.attempt.Add(1)%23 == 0:
		l.Kind = lineFailed
		w.say.Say(l)
		return errors.New("crash: no")
	case durable:
		l.Kind = lineKept
	}
	w.say.Say(l)
	return nil
}

func positionOf(run string, step int, status phase.RunStatus) string {
	return fmt.Sprintf("%s step %d %s", run, step, status)
}

// mark is a fingerprint of all that a thread's commits change.
func (k *keys) mark(snap *state.Snapshot) string {
	ledger, last := k.ledger.Get(snap), ""
	if n := ledger.Len(); n > 0 {
		last = ledger.At(n - 1)
	}
	text := fmt.Sprintf("%d %q %d %d %d %+v", ledger.Len(), last, k.sum.Get(snap), k.slots.Len(snap),
		engine.Transcript.Get(snap).Len(), phase.RunLifecycle.Get(snap))
	for id, c := range engine.ToolCalls.All(snap) {
		text += fmt.Sprintf(" %s %s %d %d %t %t %t", id, c.Status, c.Tickets, len(c.Answers), c.Started, c.Ended, c.Settled)
	}
	return fmt.Sprintf("%016x", hash(0, text))
}
