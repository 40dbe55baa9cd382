//go:build unix

package crew

import (
	"errors"
	"fmt"
	"time"
)

// watch reads the outside as it grows, and finds what must not happen. It is for one
// goroutine until finish.
type watch struct {
	calls   map[string]*callFacts // by thread and call
	threads map[string]*threadFacts
	over    func(thread string, seq uint64) // is told what is over

	bodies, results, repeated, delivered, duplicates int
	meanwhile                                        int           // bodies that a worker began while it was cut off
	off                                              string        // the worker that is cut off
	zombie                                           string        // the same, also when it is back
	undead                                           int           // bodies that it began after another worker had committed the result
	takenUp                                          int           // runs that another process went on with after a kill
	orphaned                                         time.Duration // longest time from a kill to that
	lease                                            time.Duration
	orphans                                          []time.Duration
	late                                             int           // of those taken up, later than a lease after the kill
	waited                                           time.Duration // longest time from a submission to the run's begin
	faults                                           []string
	count                                            int
}

type callFacts struct {
	bodies    int
	committed bool
	effect    string // id of its effect, once delivered
}

type threadFacts struct {
	owner     string // the last worker that gave a sign of life
	running   bool
	submitted int64 // when, if the run did not begin yet
	orphan    int64 // since when its worker is dead
}

const mostFaults = 20

func newWatch(lease time.Duration) *watch {
	return &watch{lease: lease, calls: map[string]*callFacts{}, threads: map[string]*threadFacts{}, over: func(string, uint64) {}}
}

func (w *watch) fault(format string, args ...any) {
	if w.count++; len(w.faults) < mostFaults {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

func (w *watch) err() error {
	if w.count == 0 {
		return nil
	}
	errs := []error{fmt.Errorf("crew: %d faults", w.count)}
	for _, f := range w.faults {
		errs = append(errs, errors.New(f))
	}
	return errors.Join(errs...)
}

func (w *watch) call(l line) *callFacts {
	name := l.Thread + "/" + l.Call
	c := w.calls[name]
	if c == nil {
		c = &callFacts{}
		w.calls[name] = c
	}
	return c
}

func (w *watch) thread(id string) *threadFacts {
	t := w.threads[id]
	if t == nil {
		t = &threadFacts{}
		w.threads[id] = t
	}
	return t
}

// see takes down a line.
func (w *watch) see(l line) {
	switch l.Kind {
	case lineBody:
		w.bodies++
		if l.Worker == w.off {
			w.meanwhile++
		}
		c := w.call(l)
		c.bodies++
		switch {
		case c.committed && l.Worker == w.zombie:
			w.undead++
		case c.committed:
			w.repeated++
			w.fault("%s: call %s ran again on %s although its result was committed", l.Thread, l.Call, l.Worker)
		}
	case lineResult:
		if c := w.call(l); !c.committed {
			c.committed = true
			w.results++
		}
	case lineEffect:
		w.delivered++
		switch c := w.call(l); c.effect {
		case "":
			c.effect = l.ID
		case l.ID:
			w.duplicates++
		default:
			w.fault("%s: the effect of call %s came as %s and as %s", l.Thread, l.Call, c.effect, l.ID)
		}
		return // by whoever delivers
	case lineSubmit:
		w.thread(l.Thread).submitted = l.Time
		return
	case lineOver:
		t := w.thread(l.Thread)
		t.running, t.orphan = false, 0
		w.over(l.Thread, l.Seq)
		return
	case lineCut, lineKilled:
		if l.Kind == lineCut {
			w.off, w.zombie = l.Worker, l.Worker
		}
		for _, t := range w.threads {
			if t.running && t.owner == l.Worker && t.orphan == 0 {
				t.orphan = l.Time
			}
		}
		return
	case lineHealed:
		w.off = ""
		return
	}
	w.alive(l)
}

// alive takes down that a worker gave a sign of life about a thread.
func (w *watch) alive(l line) {
	t := w.thread(l.Thread)
	if t.submitted != 0 {
		w.waited = max(w.waited, time.Duration(l.Time-t.submitted))
		t.submitted = 0
	}
	if t.orphan != 0 && l.Worker != t.owner {
		w.takenUp++
		after := time.Duration(l.Time - t.orphan)
		w.orphaned = max(w.orphaned, after)
		w.orphans = append(w.orphans, after)
		if after > w.lease {
			w.late++
		}
		t.orphan = 0
	}
	t.owner, t.running = l.Worker, true
}
