package trace

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// exporter writes the Chrome trace-event format. Runs that nobody delegated to are
// processes, and have one thread for what happens in turn, one for each run that
// they delegate to, and as many others as things happen at the same time.
type exporter struct {
	out   *sink
	any   bool
	flows uint64        // arrows so far
	first time.Time     // that was seen
	ahead time.Duration // of first since the beginning of its day
}

// chromeEvent is an entry of traceEvents. Times are in microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   kind           `json:"cat,omitempty"`
	Ph    string         `json:"ph"`
	Ts    *micros        `json:"ts,omitempty"`
	Dur   *micros        `json:"dur,omitempty"`
	Pid   uint32         `json:"pid"`
	Tid   uint32         `json:"tid"`
	Scope string         `json:"s,omitempty"`
	ID    uint64         `json:"id,omitempty"` // of an arrow, which has two ends
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// micros is a duration as the format writes it.
type micros time.Duration

func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", m/1000, m%1000), nil
}

// lanes are the threads of a process.
type lanes struct {
	pid   uint32
	named bool
	of    map[kind][]*lane
	runs  map[string]*lane
}

// lane is a thread: what is on it nests.
type lane struct {
	tid  uint32
	open bool      // something on it has not ended
	upTo time.Time // that it is taken
}

func newLanes(run string) *lanes {
	return &lanes{pid: hash(run), of: map[kind][]*lane{}, runs: map[string]*lane{}}
}

// hash makes a number of an id that is the same in every process. It is positive as
// an int32, as viewers want it.
func hash(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id)) // which never fails
	return max(1, h.Sum32()&0x7fffffff)
}

// Where thread ids begin: the run's own, then a range for each kind of what happens
// at the same time, then the runs that it delegates to.
const (
	mainTid      = 1
	laneRange    = 1_000_000
	delegateTids = 100_000_000
)

// laneKinds are the kinds that have lanes of their own, in the order of their ids.
var laneKinds = []kind{callKind, hookKind, gateKind, actionKind, effectKind, waitKind}

// begin finds the lane of a span, which is to be closed before the next one on it is
// begun.
func (x *exporter) begin(c *course, s *span) {
	switch s.kind {
	case runKind:
		s.lane = x.run(c, s)
	case stepKind, phaseKind, modelKind:
		s.lane = c.run.lane
	case bodyKind:
		s.lane = s.parent.lane
	default:
		s.lane = x.free(c, s)
	}
}

func (x *exporter) run(c *course, s *span) *lane {
	if l := c.lanes.runs[c.id]; l != nil {
		return l
	}
	l := &lane{tid: mainTid}
	name := "run " + c.id
	if s.parent != nil {
		l.tid = delegateTids + hash(c.id)%delegateTids
	} else if !c.lanes.named {
		c.lanes.named = true
		x.write(s.start, chromeEvent{Name: "process_name", Ph: "M", Pid: c.lanes.pid, Args: map[string]any{"name": name}})
	}
	c.lanes.runs[c.id] = l
	x.thread(c, l, name, s.start)
	return l
}

// free returns the first lane of the span's kind that nothing is on.
func (x *exporter) free(c *course, s *span) *lane {
	list := c.lanes.of[s.kind]
	for _, l := range list {
		if !l.open && !s.start.Before(l.upTo) {
			l.open = true
			return l
		}
	}
	l := &lane{open: true, tid: uint32((1+slices.Index(laneKinds, s.kind))*laneRange + len(list))}
	c.lanes.of[s.kind] = append(list, l)
	x.thread(c, l, fmt.Sprintf("%ss %d", s.kind, len(list)+1), s.start)
	return l
}

func (x *exporter) thread(c *course, l *lane, name string, at time.Time) {
	x.write(at, chromeEvent{Name: "thread_name", Ph: "M", Pid: c.lanes.pid, Tid: l.tid, Args: map[string]any{"name": name}})
	x.write(at, chromeEvent{Name: "thread_sort_index", Ph: "M", Pid: c.lanes.pid, Tid: l.tid, Args: map[string]any{"sort_index": l.tid}})
}

// span writes a span that is over.
func (x *exporter) span(c *course, s *span) {
	if s.kind != bodyKind && s.lane != c.run.lane {
		s.lane.open, s.lane.upTo = false, s.end
	}
	name, args := s.name, map[string]any{}
	for _, f := range s.facts {
		args[f.name] = f.value
		if s.kind == stepKind && f.name == "step" {
			name = fmt.Sprint("step ", f.value)
		}
	}
	if waited := s.waits.length(); waited > 0 && s.kind != waitKind {
		args["waited_ms"] = float64(waited) / float64(time.Millisecond)
	}
	if s.kind == runKind || s.kind == modelKind || s.kind == callKind || name == "" {
		name = strings.TrimSpace(string(s.kind) + " " + name)
	}
	dur := micros(s.end.Sub(s.start))
	x.write(s.start, chromeEvent{Name: name, Cat: s.kind, Ph: "X", Ts: x.since(s.start), Dur: &dur, Pid: c.lanes.pid, Tid: s.lane.tid, Args: args})
}

// slept writes that a run was suspended.
func (x *exporter) slept(c *course, from, to time.Time) {
	s := &span{kind: waitKind, name: "suspended", start: from, end: to}
	s.lane = x.free(c, s)
	x.span(c, s)
}

// round writes a pass of the action loop, which lies in its phase.
func (x *exporter) round(c *course, number int, from, to time.Time, actions int) {
	s := &span{kind: roundKind, name: fmt.Sprint("round ", number), start: from, end: to, lane: c.run.lane}
	s.know("actions", actions)
	x.span(c, s)
}

// arrow writes that one span led to another. Both ends are written or none is.
func (x *exporter) arrow(c *course, name string, from, to *span) {
	x.flows++
	end := func(ph, bind string, s *span) chromeEvent {
		return chromeEvent{Name: name, Cat: "flow", Ph: ph, Ts: x.since(s.start), Pid: c.lanes.pid, Tid: s.lane.tid, ID: uint64(c.lanes.pid)<<20 + x.flows, Bind: bind}
	}
	x.write(from.start, end("s", "", from), end("f", "e", to))
}

// instant writes something that took no time.
func (x *exporter) instant(c *course, name string, at time.Time, args map[string]any) {
	x.write(at, chromeEvent{Name: name, Ph: "i", Ts: x.since(at), Pid: c.lanes.pid, Tid: c.run.lane.tid, Scope: "t", Args: args})
}

// since is a time as the file has it: from the beginning of the first day on, so that
// files of several processes fit together and the numbers stay small.
func (x *exporter) since(at time.Time) *micros {
	x.start(at)
	m := micros(max(0, x.ahead+at.Sub(x.first)))
	return &m
}

func (x *exporter) start(at time.Time) {
	if x.first.IsZero() {
		x.first = at
		x.ahead = at.Sub(at.UTC().Truncate(24 * time.Hour))
	}
}

// write writes entries, all of them or none.
func (x *exporter) write(at time.Time, entries ...chromeEvent) {
	x.start(at)
	var piece []byte
	for i, e := range entries {
		raw, err := json.Marshal(e)
		if err != nil {
			return // facts are texts, numbers and flags
		}
		if x.any || i > 0 {
			piece = append(piece, ",\n"...)
		}
		piece = append(piece, raw...)
	}
	if !x.any {
		x.any = true
		x.out.must(append(x.head(), piece...)) // what follows begins with a comma
		return
	}
	x.out.put(piece)
}

func (x *exporter) head() []byte {
	zero := ""
	if !x.first.IsZero() {
		zero = x.first.UTC().Truncate(24 * time.Hour).Format(time.RFC3339)
	}
	return fmt.Appendf(nil, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"zero\":%q},\"traceEvents\":[\n", zero)
}

// end completes the file, and says how much is missing in it.
func (x *exporter) end(events int) {
	if !x.any {
		x.out.must(x.head())
	}
	missing := ""
	if pieces := x.out.lost(); events+pieces > 0 {
		missing = fmt.Sprintf(",\"dropped\":{\"events\":%d,\"pieces\":%d}", events, pieces)
	}
	x.out.must([]byte("\n]" + missing + "}\n"))
}
