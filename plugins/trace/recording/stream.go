package recording

import (
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// stream is the numbered events of a run and of those it delegated to. The numbers
// begin anew whenever the run is resumed.
type stream struct {
	sessions []*session
	now      *session
}

// session is one row of numbers of a stream.
type session struct {
	run     string
	began   time.Time
	next    uint64
	missing []gap // sorted
}

// gap is a row of numbers, both included.
type gap struct{ from, to uint64 }

// inSequence reports whether the event is a new one, and keeps account of those that are
// missing.
func (r *Recording) inSequence(e engine.Event, h engine.Header) bool {
	if h.Seq == 0 {
		return true // nobody numbered it
	}
	top := r.top(h)
	s := r.streams[top]
	if s == nil {
		s = &stream{}
		r.streams[top] = s
	}
	if h.Seq == 1 {
		switch e.(type) {
		case engine.RunStarted, engine.RunResumed:
			if i := slices.IndexFunc(s.sessions, func(x *session) bool { return x.began.Equal(h.Time) }); i >= 0 {
				s.now = s.sessions[i] // it is told again
			} else {
				r.session(s, top, h.Time)
			}
		}
	}
	if s.now == nil {
		r.session(s, top, h.Time)
	}
	x := s.now
	switch {
	case h.Seq == x.next:
		x.next++
		return true
	case h.Seq > x.next:
		x.missing = append(x.missing, gap{x.next, h.Seq - 1})
		x.next = h.Seq + 1
		r.viewChanged()
		return true
	}
	i, late := slices.BinarySearchFunc(x.missing, h.Seq, func(g gap, seq uint64) int {
		switch {
		case g.to < seq:
			return -1
		case g.from > seq:
			return 1
		}
		return 0
	})
	if !late {
		return false
	}
	g := x.missing[i]
	var left []gap
	if g.from < h.Seq {
		left = append(left, gap{g.from, h.Seq - 1})
	}
	if g.to > h.Seq {
		left = append(left, gap{h.Seq + 1, g.to})
	}
	x.missing = slices.Replace(x.missing, i, i+1, left...)
	r.viewChanged()
	return true
}

func (r *Recording) session(s *stream, top string, began time.Time) {
	s.now = &session{run: top, began: began, next: 1}
	s.sessions = append(s.sessions, s.now)
	r.gaps = append(r.gaps, s.now)
}

// top is the run whose numbers the event has.
func (r *Recording) top(h engine.Header) string {
	if h.Parent == "" {
		return h.Run
	}
	for _, id := range []string{h.Run, h.Parent} {
		if x := r.byRun[id]; x != nil {
			return x.top
		}
	}
	// The ids of delegates begin with that of the run at the top.
	for i, c := range h.Parent {
		if c == '/' && r.streams[h.Parent[:i]] != nil {
			return h.Parent[:i]
		}
	}
	return h.Parent
}

// missing is how many events are known to be.
func (r *Recording) missing() int {
	n := uint64(0)
	for _, s := range r.gaps {
		for _, g := range s.missing {
			n = min(n+g.to-g.from+1, most)
		}
	}
	// A trace that tells that it left events out says it beside the gap that they leave.
	return max(int(min(n, most)), r.lost)
}

// mostNotes is how many gaps the notes list.
const mostNotes = 50

// notes are what those who look at the recording must know.
func (r *Recording) notes() []string {
	notes := slices.Clone(r.said)
	n, total := 0, 0
	for _, s := range r.gaps {
		for _, g := range s.missing {
			total = int(min(uint64(total)+g.to-g.from+1, most))
			if n++; n > mostNotes {
				continue
			}
			if g.from == g.to {
				notes = append(notes, fmt.Sprintf("event %d of run %s is missing", g.from, oneLine(s.run)))
			} else {
				notes = append(notes, fmt.Sprintf("events %d to %d of run %s are missing", g.from, g.to, oneLine(s.run)))
			}
		}
	}
	if n > mostNotes {
		notes = append(notes, fmt.Sprintf("%s more of missing events", count(n-mostNotes, "row")))
	}
	if more := r.lost - total; more > 0 {
		lead := "the trace left out"
		if total > 0 {
			lead = "besides, the trace left out"
		}
		notes = append(notes, fmt.Sprintf("%s %s, and does not tell which", lead, count(more, "event")))
	}
	for _, x := range r.runs {
		if x.headless {
			notes = append(notes, fmt.Sprintf("what came before run %s was resumed is not in the recording", oneLine(x.ID)))
		}
	}
	return notes
}

// unique returns an id that no other item of the kind has.
func (r *Recording) unique(kind, id string) string {
	key := kind + id
	r.used[key]++
	if n := r.used[key]; n > 1 {
		return r.unique(kind, fmt.Sprintf("%s#%d", id, n))
	}
	return id
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
