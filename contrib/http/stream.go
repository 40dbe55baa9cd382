package serve

import (
	"container/list"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// line is an event as it is told.
type line struct {
	kind string // the event's type
	data string // the event in JSON, without line breaks
	own  bool   // of the run itself, not of one that it delegated to
}

// stream is what a run's events go through: it keeps the newest of them, each under its
// position, for readers that take them at their own pace. Nothing waits for a reader.
type stream struct {
	run   string // the engine's id
	id    string // of this stream: with a position it makes the id of an event
	space string // of the run's owner
	fresh bool   // it has had all of the run's events, from the first on

	element *list.Element // in streams.settled; nil while its run is under way

	mu     sync.Mutex
	lines  []line
	first  uint64 // position of lines[0], or of what comes next; from 1
	bytes  int
	going  bool          // the run is under way
	over   bool          // and it has ended: nothing follows
	broken bool          // events are missing behind those that are there
	wake   chan struct{} // closed when there is more to know; nil when nobody waits
}

// add appends an event, and drops the oldest ones for which there is no room.
func (st *stream) add(l line, limits Limits) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lines = append(st.lines, l)
	st.bytes += len(l.data)
	for len(st.lines) > 1 && (len(st.lines) > limits.Events || st.bytes > limits.EventBytes) {
		st.bytes -= len(st.lines[0].data)
		st.lines[0] = line{}
		st.lines = st.lines[1:]
		st.first++
	}
	st.rouse()
}

func (st *stream) rouse() {
	if st.wake != nil {
		close(st.wake)
		st.wake = nil
	}
}

// begin tells that the run goes on.
func (st *stream) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.going, st.over = true, false
}

// settle tells that the run waits or, if over, ended. The engine gives up on an observer
// that takes too long, so the last event says whether all were there.
func (st *stream) settle(ran, over bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.going, st.over = false, over
	if n := len(st.lines); ran && (n == 0 || !st.lines[n-1].last()) {
		st.broken = true
	}
	st.rouse()
}

// giveUp tells that no more events will come, though the run may go on.
func (st *stream) giveUp() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.broken = !st.over
	st.rouse()
}

func (st *stream) isBroken() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.broken
}

func (l line) last() bool { return l.own && (l.kind == "run_finished" || l.kind == "run_suspended") }

// part is what a reader gets at once.
type part struct {
	lines  []line
	first  uint64 // position of lines[0]
	gap    bool   // what was asked for is not there any more
	going  bool
	over   bool
	oldest uint64          // position before that of the oldest event there is
	more   <-chan struct{} // closed when there is more than this
}

// longestPart is how many events a reader gets at once, and largestPart how many bytes,
// if one event is not more.
const longestPart, largestPart = 256, 256 << 10

// after returns what follows a position.
func (st *stream) after(position uint64) part {
	st.mu.Lock()
	defer st.mu.Unlock()
	end := st.first + uint64(len(st.lines)) // of the next event
	p := part{first: position + 1, going: st.going, over: st.over, oldest: st.first - 1}
	if position+1 < st.first || position+1 > end || position+1 == end && st.broken {
		p.gap = true
		return p
	}
	rest := st.lines[position+1-st.first:]
	for n := 0; len(p.lines) < min(len(rest), longestPart) && n < largestPart; {
		l := rest[len(p.lines)]
		p.lines = append(p.lines, l)
		n += len(l.data)
	}
	if len(rest) == 0 && !st.over {
		if st.wake == nil {
			st.wake = make(chan struct{})
		}
		p.more = st.wake
	}
	return p
}

// end returns the position of the newest event.
func (st *stream) end() uint64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.first + uint64(len(st.lines)) - 1
}

// streams are those of all runs that are under way, and the last of the others. It is
// the engine's observer.
type streams struct {
	limits Limits
	detail func(engine.Event) engine.Event // by the rules
	newID  func() string

	mu        sync.Mutex
	byRun     map[string]*stream
	delegated map[string]*stream // by the run that was delegated to
	settled   list.List          // of *stream, those of runs that are not under way, the last one in front
}

// Observe takes in an event of any run of the engine. Those of runs that were not
// started here are nobody's.
func (ss *streams) Observe(e engine.Event) {
	h := e.Head()
	ss.mu.Lock()
	st := ss.byRun[h.Run]
	own := st != nil
	if !own && h.Parent != "" {
		if st = ss.delegated[h.Run]; st == nil {
			if st = ss.byRun[h.Parent]; st == nil {
				st = ss.delegated[h.Parent]
			}
			if st != nil {
				ss.delegated[h.Run] = st
			}
		}
	}
	ss.mu.Unlock()
	if st == nil {
		return
	}
	// Encoding takes time, and is done by the run's own goroutine for events: those of
	// other runs do not wait for it.
	text, err := engine.MarshalEvent(ss.detail(e))
	if err != nil { // a detailed event can be written
		text, _ = engine.MarshalEvent(engine.Warning{Message: trace.Hidden})
	}
	st.add(line{kind: e.Type(), data: caller{space: st.space}.outside(string(text)), own: own}, ss.limits)
}

// of returns a run's stream, or nil.
func (ss *streams) of(run string) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byRun[run]
}

// start returns a run's stream for the run to go on in, a new one if it has none.
func (ss *streams) start(c caller, run string, fresh bool) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st := ss.byRun[run]
	if st != nil && st.isBroken() {
		ss.drop(st)
		st = nil
	}
	if st == nil {
		st = ss.make(c, run, fresh)
	}
	if st.element != nil {
		ss.settled.Remove(st.element)
		st.element = nil
	}
	st.begin()
	return st
}

// open returns the stream of a run that is not under way, and makes one if there is none:
// for readers that wait for what the run will do.
func (ss *streams) open(c caller, run string) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st := ss.byRun[run]
	if st == nil {
		st = ss.make(c, run, false)
		ss.keep(st)
	}
	return st
}

func (ss *streams) make(c caller, run string, fresh bool) *stream {
	st := &stream{run: run, id: ss.newID(), space: c.space, fresh: fresh, first: 1}
	ss.byRun[run] = st
	return st
}

// keep counts a stream among those of runs that are not under way, of which only so
// many are kept.
func (ss *streams) keep(st *stream) {
	st.element = ss.settled.PushFront(st)
	for ss.settled.Len() > ss.limits.Kept {
		ss.drop(ss.leastMissed())
	}
}

// leastMissed is the oldest stream of the principal who has most of those that are kept,
// so that nobody can push out what is another's.
func (ss *streams) leastMissed() *stream {
	count := map[string]int{}
	for e := ss.settled.Front(); e != nil; e = e.Next() {
		count[e.Value.(*stream).space]++
	}
	least := ss.settled.Back().Value.(*stream)
	for e := ss.settled.Back(); e != nil; e = e.Prev() {
		if st := e.Value.(*stream); count[st.space] > count[least.space] {
			least = st
		}
	}
	return least
}

// drop forgets a stream. Readers that have it take what is there, and hear that what
// the run does later is not.
func (ss *streams) drop(st *stream) {
	st.giveUp()
	if st.element != nil {
		ss.settled.Remove(st.element)
		st.element = nil
	}
	delete(ss.byRun, st.run)
}

// stop tells that a run is not under way any more.
func (ss *streams) stop(st *stream, ran, over bool) {
	st.settle(ran, over)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for run, of := range ss.delegated {
		if of == st {
			delete(ss.delegated, run)
		}
	}
	if ss.byRun[st.run] == st && st.element == nil {
		ss.keep(st)
	}
}

// forget drops the streams of runs.
func (ss *streams) forget(runs []string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, run := range runs {
		if st := ss.byRun[run]; st != nil {
			ss.drop(st)
		}
	}
}
