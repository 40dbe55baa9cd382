package zombie

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/desk"
	"github.com/ddd26017/fixpoint/internal/faults/served"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
)

// Worker is the child process of Run.
var Worker = child.Part{Name: "zombie worker", Run: work}

// The script: enough that a run can be stopped in its middle.
const (
	steps = 4
	calls = 2
)

// job is what a worker is told first; orders follow.
type job struct {
	Socket string        `json:"socket"`
	Owner  string        `json:"owner"`
	Lease  time.Duration `json:"lease"`
}

// order is what a worker is to do next.
type order struct {
	Thread string `json:"thread"`
	Take   bool   `json:"take"` // wait for the lease and finish the run, instead of beginning it
	// Parallel has the calls of a step run at the same time.
	Parallel bool `json:"parallel"`
}

func (o order) spec() engine.AgentSpec {
	if o.Parallel {
		return desk.Parallel
	}
	return desk.Spec
}

// line is what a worker tells.
type line struct {
	Kind   string          `json:"k"`
	Thread string          `json:"t,omitempty"`
	Call   string          `json:"c,omitempty"`
	ID     string          `json:"i,omitempty"`
	Entry  desk.Entry      `json:"e,omitzero"`
	Status phase.RunStatus `json:"s,omitempty"`
	Error  string          `json:"x,omitempty"`
	// Of an error: whether it says that somebody took over, and whether the thread took
	// a command all the same.
	Fenced  bool `json:"f,omitempty"`
	Written bool `json:"w,omitempty"`
	Waited  int  `json:"n,omitempty"` // how often somebody else had the lease
}

// The kinds of lines.
const (
	lineBody = "body" // a tool's body begins
	lineSent = "sent" // a durable effect is delivered
	lineGoes = "goes" // the run goes on here
	lineEnd  = "end"  // the order was carried out
)

type worker struct {
	job
	desk *desk.Desk
	eng  *engine.Engine
	say  *talk.Voice
}

func work(ctx context.Context, _ []string) error {
	in := json.NewDecoder(os.Stdin)
	w := &worker{say: talk.NewVoice(os.Stdout)}
	if err := in.Decode(&w.job); err != nil {
		return fmt.Errorf("zombie: read the job: %w", err)
	}
	store, err := served.Dial(w.Socket, w.Owner)
	if err != nil {
		return err
	}
	w.desk = desk.New(w.Owner)
	w.desk.Body = func(thread, call string) { w.say.Say(line{Kind: lineBody, Thread: thread, Call: call}) }
	w.desk.Deliver = func(id effects.ID, s desk.Sent) {
		w.say.Say(line{Kind: lineSent, Thread: s.Thread, ID: id.String(), Entry: s.Entry})
		time.Sleep(300 * time.Microsecond) // a delivery takes its time
	}
	w.eng, err = engine.New(config(w.desk, store, engine.Config{
		Owner: w.Owner,
		// The effects that a zombie did not come to are due by the time of the takeover.
		Limits: engine.Limits{Lease: w.Lease, OutboxDelay: w.Lease / 2},
		Observers: []engine.Observer{engine.ObserverFunc(func(e engine.Event) {
			if e, ok := e.(engine.RunResumed); ok {
				w.say.Say(line{Kind: lineGoes, Thread: e.Thread})
			}
		})},
	}))
	if err != nil {
		return err
	}
	for {
		var o order
		switch err := in.Decode(&o); {
		case errors.Is(err, io.EOF):
			return errors.Join(w.eng.Close(ctx), store.Close())
		case err != nil:
			return fmt.Errorf("zombie: read an order: %w", err)
		}
		var end line
		if o.Take {
			end, err = w.take(ctx, o)
		} else {
			end, err = w.begin(ctx, o)
		}
		if err != nil {
			return err
		}
		end.Kind, end.Thread = lineEnd, o.Thread
		w.say.Say(end)
	}
}

func config(d *desk.Desk, journal engine.Journal, c engine.Config) engine.Config {
	c.Plugins, c.Model, c.Journal = []engine.Plugin{d}, desk.Script(desk.Work, steps, calls), journal
	return c
}

// begin runs a new thread's run, and tries to write on when it was taken over.
func (w *worker) begin(ctx context.Context, o order) (end line, err error) {
	t, err := w.eng.OpenThread(ctx, o.Thread)
	if err != nil {
		return end, err
	}
	res, err := t.Run(ctx, o.spec(), engine.Prompt("go"))
	if err != nil {
		return end, err
	}
	end = lineOf(res)
	if res.Err != nil {
		_, err := t.Submit(ctx, "zombie", w.desk.Note("written by a zombie"))
		end.Written = err == nil
	}
	return end, nil
}

// take waits until the lease can be had, then finishes the run and delivers what the
// outbox has.
func (w *worker) take(ctx context.Context, o order) (end line, err error) {
	waited := 0
	for {
		t, err := w.eng.OpenThread(ctx, o.Thread)
		if err != nil {
			return end, err
		}
		if phase.RunLifecycle.Get(t.Snapshot()).Status == phase.Done {
			return line{Status: phase.Done, Waited: waited}, nil // nothing is left to take over
		}
		res, err := t.Resume(ctx, o.spec(), engine.Input{})
		var held *engine.LeaseHeld
		switch {
		case errors.As(err, &held):
			waited++
			time.Sleep(time.Until(held.Until)) // as a real one would
			continue
		case errors.Is(err, engine.ErrJournalConflict):
			continue // the other one went on between the look and the lease
		case err != nil:
			return end, err
		}
		end = lineOf(res)
		end.Waited = waited
		_, err = w.eng.DeliverOutbox(ctx)
		return end, err
	}
}

func lineOf(res *engine.Result) line {
	l := line{Status: res.Status}
	if res.Err != nil {
		l.Error = res.Err.Error()
		l.Fenced = errors.Is(res.Err, engine.ErrFenced) || errors.Is(res.Err, engine.ErrJournalConflict)
	}
	return l
}
