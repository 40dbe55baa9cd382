package outbox

import (
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
)

// delivery is what a receiver gets: the key, and the body, which names the effect.
type delivery struct {
	key  string
	body string
}

// receiver writes down what it was given. It is not safe for concurrent use.
type receiver struct {
	times   map[string]int    // by key
	bodies  map[string]string // by key
	settled map[string]bool   // by key, told after Settle had returned
	faults  []error
}

func newReceiver() *receiver {
	return &receiver{times: map[string]int{}, bodies: map[string]string{}, settled: map[string]bool{}}
}

func (r *receiver) fault(format string, args ...any) {
	if len(r.faults) < 20 {
		r.faults = append(r.faults, fmt.Errorf("outbox: "+format, args...))
	}
}

func (r *receiver) deliver(d delivery) {
	if _, err := engine.ParseEffectRef(d.key); err != nil {
		r.fault("delivered with a key that is none: %w", err)
	}
	if body, known := r.bodies[d.key]; known && body != d.body {
		r.fault("key %s came with %q and with %q", d.key, body, d.body)
	}
	if r.settled[d.key] {
		r.fault("%s was delivered again after it was settled", d.key)
	}
	r.bodies[d.key] = d.body
	r.times[d.key]++
}

func (r *receiver) settle(key string) { r.settled[key] = true }

// tally compares what came with what was emitted, key by body.
func (r *receiver) tally(emitted map[string]string, f *Figures) {
	for body, key := range emitted {
		switch {
		case r.times[key] == 0:
			f.Missing++
		case r.bodies[key] != body:
			r.fault("%q came under the key of %q", body, r.bodies[key])
		}
		f.Duplicates += max(0, r.times[key]-1)
	}
	if extra := len(r.times) - (len(emitted) - f.Missing); extra != 0 {
		r.fault("%d keys came that nobody emitted", extra)
	}
}
