package nats

import (
	"container/heap"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// index is what a process knows of the outbox: where each effect is and since when, but
// not its body. It may be behind or wrong; every claim is checked by the stream. It is
// guarded by the lock of the outbox that it belongs to.
type index struct {
	effects map[store.EffectRef]*item
	lanes   map[string]*lane
	// Effects that are gone, until the feed has passed the message that says so: older
	// messages about them may still come.
	gone    map[store.EffectRef]uint64
	goneLog []goneAt
	passed  uint64 // the last message that the feed has brought
	age     uint64 // of the feed that fills the index
	seed    maphash.Seed
}

type goneAt struct {
	ref store.EffectRef
	seq uint64
}

// item is an effect that is not settled.
type item struct {
	ref      store.EffectRef
	kind     byte
	lane     *lane
	seq      uint64 // of its newest message
	order    uint64 // of the message that has its body
	due      time.Time
	attempts int
	parts    int    // of its body
	age      uint64 // of the feed that has seen it
	taken    bool   // by a claim of this process that is under way

	in *queue // nil: in none
	at int    // position there
}

// lane holds the items of a lane: those that are due in the order of their commits, those
// that wait or are claimed by the time at which they are due, and those that are dead.
type lane struct {
	name                 string
	ready, waiting, dead queue
	taken                int
	// spread is how many processes seem to claim from the lane at once. Each then looks at its
	// share of the threads first.
	spread uint64
}

func (l *lane) live() int { return l.ready.Len() + l.waiting.Len() + l.taken }

// queue is a heap of items that knows where each one is.
type queue struct {
	items []*item
	byDue bool // and not in the order of the commits
}

func (q *queue) Len() int { return len(q.items) }
func (q *queue) Less(i, k int) bool {
	a, b := q.items[i], q.items[k]
	if q.byDue && !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	return before(a, b)
}
func (q *queue) Swap(i, k int) {
	q.items[i], q.items[k] = q.items[k], q.items[i]
	q.items[i].at, q.items[k].at = i, k
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*item)
	e.in, e.at = q, len(q.items)
	q.items = append(q.items, e)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(q.items) - 1
	e := q.items[last]
	q.items[last] = nil
	q.items = q.items[:last]
	e.in = nil
	return e
}

// before reports whether a was emitted before b.
func before(a, b *item) bool {
	if a.order != b.order {
		return a.order < b.order
	}
	return a.ref.Index < b.ref.Index
}

func newIndex() *index {
	return &index{
		effects: map[store.EffectRef]*item{},
		lanes:   map[string]*lane{},
		gone:    map[store.EffectRef]uint64{},
		seed:    maphash.MakeSeed(),
	}
}

func (x *index) lane(name string) *lane {
	l := x.lanes[name]
	if l == nil {
		l = &lane{name: strings.Clone(name), waiting: queue{byDue: true}, spread: 1}
		x.lanes[l.name] = l
	}
	return l
}

// learn notes what the message seq says of an effect, unless something newer is known.
// What does not come from the feed may come late: when the feed has passed it and there is no
// such effect, the effect is gone.
func (x *index) learn(ref store.EffectRef, s state, seq uint64, fed bool, now time.Time) {
	e := x.effects[ref]
	if seq <= x.gone[ref] || e == nil && !fed && seq <= x.passed {
		return
	}
	if e != nil && (seq < e.seq || seq == e.seq && s.kind != isGone) {
		e.age = x.age
		return
	}
	if s.kind == isGone {
		x.remove(e)
		if seq > x.passed {
			x.gone[ref] = seq
			x.goneLog = append(x.goneLog, goneAt{ref, seq})
		}
		return
	}
	if e != nil && e.lane.name != s.lane {
		x.remove(e)
		e = nil
	}
	if e == nil {
		ref.Thread = strings.Clone(ref.Thread)
		e = &item{ref: ref, lane: x.lane(s.lane)}
		x.effects[ref] = e
	}
	e.kind, e.seq, e.due, e.attempts, e.parts, e.age = s.kind, seq, s.due, s.attempts, s.body.parts, x.age
	if e.order = s.bodySeq; e.order == 0 {
		e.order = seq
	}
	x.place(e, now)
}

// place puts an item into the queue where it belongs.
func (x *index) place(e *item, now time.Time) {
	if e.in != nil {
		heap.Remove(e.in, e.at)
	}
	switch {
	case e.taken:
	case e.kind == isDead:
		heap.Push(&e.lane.dead, e)
	case e.due.After(now):
		heap.Push(&e.lane.waiting, e)
	default:
		heap.Push(&e.lane.ready, e)
	}
}

func (x *index) remove(e *item) {
	if e == nil || x.effects[e.ref] != e {
		return
	}
	if e.in != nil {
		heap.Remove(e.in, e.at)
	}
	if e.taken {
		e.taken = false
		e.lane.taken--
	}
	delete(x.effects, e.ref)
	x.dropLane(e.lane)
}

func (x *index) dropLane(l *lane) {
	if l.live()+l.dead.Len() == 0 {
		delete(x.lanes, l.name)
	}
}

// forget drops the effects of a thread that are older than a message.
func (x *index) forget(thread string, before uint64) {
	for ref, e := range x.effects {
		if ref.Thread == thread && e.seq < before {
			x.remove(e)
			x.gone[ref] = max(x.gone[ref], before)
			x.goneLog = append(x.goneLog, goneAt{ref, before})
		}
	}
}

// pass notes how far the feed has come.
func (x *index) pass(seq uint64) {
	x.passed = max(x.passed, seq)
	n := 0
	for n < len(x.goneLog) && x.goneLog[n].seq <= x.passed {
		if g := x.goneLog[n]; x.gone[g.ref] <= x.passed {
			delete(x.gone, g.ref)
		}
		n++
	}
	x.goneLog = slices.Delete(x.goneLog, 0, n)
}

// sweep drops what a new feed has not seen: it was settled while nobody listened.
func (x *index) sweep() {
	for _, e := range x.effects {
		if e.age < x.age {
			x.remove(e)
		}
	}
}

// promote moves what has become due to the ready ones.
func (x *index) promote(l *lane, now time.Time) {
	for l.waiting.Len() > 0 && !l.waiting.items[0].due.After(now) {
		heap.Push(&l.ready, heap.Pop(&l.waiting))
	}
}

// take returns at most n items that are due, in the order of their commits, and not those
// in skip. They are out of reach for other calls until put back or removed.
func (x *index) take(name string, n int, now time.Time, skip map[store.EffectRef]bool) []*item {
	l := x.lanes[name]
	if l == nil {
		return nil
	}
	x.promote(l, now)
	var taken, others []*item
	// Of a thread either all or none are in the share, so their order stays.
	for len(taken) < n && l.ready.Len() > 0 && len(others) < 100*n {
		e := heap.Pop(&l.ready).(*item)
		if !skip[e.ref] && (l.spread <= 1 || maphash.String(x.seed, e.ref.Thread)%l.spread == 0) {
			taken = append(taken, e)
		} else {
			others = append(others, e)
		}
	}
	if len(taken) == 0 && len(others) > 0 {
		l.spread = max(1, l.spread/2)
		more := others[:0]
		for _, e := range others {
			if len(taken) < n && !skip[e.ref] {
				taken = append(taken, e)
			} else {
				more = append(more, e)
			}
		}
		others = more
	}
	for _, e := range others {
		heap.Push(&l.ready, e)
	}
	for _, e := range taken {
		e.taken = true
		l.taken++
	}
	return taken
}

// putBack ends what take began.
func (x *index) putBack(e *item, now time.Time) {
	if !e.taken || x.effects[e.ref] != e {
		return
	}
	e.taken = false
	e.lane.taken--
	x.place(e, now)
}

// contended notes how a round of claims on a lane went.
func (x *index) contended(name string, won, lost int) {
	l := x.lanes[name]
	switch {
	case l == nil:
	case lost > won:
		l.spread = min(64, max(2, l.spread*2))
	case lost == 0 && l.spread > 1:
		l.spread--
	}
}
