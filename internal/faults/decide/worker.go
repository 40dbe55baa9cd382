package decide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/desk"
	"github.com/ddd26017/fixpoint/internal/faults/served"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
)

// Racer is the child process of Race.
var Racer = child.Part{Name: "decide racer", Run: race}

// racerJob is what a racer is told first; orders follow.
type racerJob struct {
	Socket string `json:"socket"`
	Owner  string `json:"owner"`
}

// order is what a racer is to do next: open a thread, or decide about the one that is
// open, so often at the same time.
type order struct {
	Thread   string `json:"thread"`
	Leased   bool   `json:"leased,omitempty"` // with an owner
	Decision string `json:"decision,omitempty"`
	Times    int    `json:"times,omitempty"`
	// Pause comes before the decision, so that now the one and now the other is first.
	Pause time.Duration `json:"pause,omitempty"`
}

// line is what workers tell.
type line struct {
	Kind     string          `json:"k"`
	Thread   string          `json:"t,omitempty"`
	Call     string          `json:"c,omitempty"`
	Status   phase.RunStatus `json:"s,omitempty"`
	Won      int             `json:"won,omitempty"`      // decisions that made the run go on
	Repeated int             `json:"repeated,omitempty"` // that had been applied
	Refused  int             `json:"refused,omitempty"`  // because somebody else was first
	Revision uint64          `json:"r,omitempty"`
}

// The kinds of lines.
const (
	lineOpen  = "open"  // the thread is open
	lineBody  = "body"  // the gated tool's body begins
	lineGoes  = "goes"  // a run goes on
	lineEnd   = "end"   // the decisions came back
	lineWaits = "waits" // a run waits
	lineDone  = "done"  // a run is over
	lineIdle  = "idle"  // nothing is left to do
)

type racer struct {
	desk   *desk.Desk
	free   *engine.Engine // without an owner
	leased *engine.Engine
	say    *talk.Voice
	open   *engine.Thread
}

func race(ctx context.Context, _ []string) error {
	in := json.NewDecoder(os.Stdin)
	var j racerJob
	if err := in.Decode(&j); err != nil {
		return fmt.Errorf("decide: read the job: %w", err)
	}
	store, err := served.Dial(j.Socket, j.Owner)
	if err != nil {
		return err
	}
	r := &racer{say: talk.NewVoice(os.Stdout)}
	r.desk = newDesk(j.Owner, r.say)
	if r.free, err = engine.New(config(r.desk, store, r.say, "")); err != nil {
		return err
	}
	if r.leased, err = engine.New(config(r.desk, store, r.say, j.Owner)); err != nil {
		return err
	}
	for {
		var o order
		switch err := in.Decode(&o); {
		case errors.Is(err, io.EOF):
			return errors.Join(r.free.Close(ctx), r.leased.Close(ctx), store.Close())
		case err != nil:
			return fmt.Errorf("decide: read an order: %w", err)
		}
		if o.Decision != "" {
			err = r.decide(ctx, o)
		} else {
			err = r.look(ctx, o)
		}
		if err != nil {
			return err
		}
	}
}

func newDesk(owner string, say *talk.Voice) *desk.Desk {
	d := desk.New(owner)
	d.Body = func(thread, call string) { say.Say(line{Kind: lineBody, Thread: thread, Call: call}) }
	return d
}

// config has a model that asks for one gated call and ends.
func config(d *desk.Desk, journal engine.Journal, say *talk.Voice, owner string) engine.Config {
	return engine.Config{
		Plugins: []engine.Plugin{d}, Model: desk.Script(desk.Gated, 1, 1), Journal: journal, Owner: owner,
		Observers: []engine.Observer{engine.ObserverFunc(func(e engine.Event) {
			if e, ok := e.(engine.RunResumed); ok {
				say.Say(line{Kind: lineGoes, Thread: e.Thread})
			}
		})},
	}
}

func (r *racer) look(ctx context.Context, o order) (err error) {
	eng := r.free
	if o.Leased {
		eng = r.leased
	}
	if r.open, err = eng.OpenThread(ctx, o.Thread); err != nil {
		return err
	}
	snap := r.open.Snapshot()
	r.say.Say(line{Kind: lineOpen, Thread: o.Thread, Status: phase.RunLifecycle.Get(snap).Status, Revision: snap.Revision()})
	return nil
}

// decide delivers a decision so often at the same time.
func (r *racer) decide(ctx context.Context, o order) error {
	end := line{Kind: lineEnd, Thread: o.Thread}
	var mu sync.Mutex
	var failed error
	var deliveries sync.WaitGroup
	time.Sleep(o.Pause)
	for range o.Times {
		deliveries.Go(func() {
			res, err := r.open.Resume(ctx, desk.Spec, engine.Input{}, decision(o.Decision))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case beaten(err):
				end.Refused++
			case err != nil:
				failed = errors.Join(failed, err)
			case res.Err != nil:
				failed = errors.Join(failed, fmt.Errorf("decide: the run that went on: %w", res.Err))
			case res.Stats.ToolCalls > 0:
				end.Won++
			default:
				end.Repeated++
			}
		})
	}
	deliveries.Wait()
	if failed != nil {
		return failed
	}
	end.Revision = r.open.Snapshot().Revision()
	r.say.Say(end)
	return nil
}

// beaten reports whether an error says that somebody else decided first.
func beaten(err error) bool {
	for _, kind := range []error{engine.ErrBusy, engine.ErrLeaseHeld, engine.ErrJournalConflict, engine.ErrFenced, engine.ErrNotWaiting, engine.ErrLate} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

func decision(id string) engine.Decision {
	return engine.Decision{ID: id, Answer: phase.Answer{Approved: true}}
}
