package trace

import (
	"cmp"
	"slices"
	"time"
)

// kind says what a span is about.
type kind string

const (
	runKind    kind = "run"
	stepKind   kind = "step"
	phaseKind  kind = "phase"
	modelKind  kind = "model"
	callKind   kind = "call"
	bodyKind   kind = "body"
	hookKind   kind = "hook"
	gateKind   kind = "gate"
	roundKind  kind = "round"
	actionKind kind = "action"
	effectKind kind = "effect"
	waitKind   kind = "wait"
)

// span is a stretch of a run's time.
type span struct {
	kind       kind
	name       string
	parent     *span
	start, end time.Time
	facts      []fact
	failed     bool
	shown      bool // the timeline has told of its beginning
	beside     bool // it does not take its parent's time
	depth      int
	lane       *lane
	children   stretches // of the time
	waits      stretches // for people, in it or below it
	sum        *sum
}

// fact is something that is known about a span.
type fact struct {
	name  string
	value any
}

func (s *span) know(name string, value any) { s.facts = append(s.facts, fact{name, value}) }

// fail notes an error, if there is one.
func (s *span) fail(text string) {
	if text != "" {
		s.failed = true
		s.know("error", clip(text))
	}
}

// knowText is know for a text that may be missing or long.
func (s *span) knowText(name, text string) {
	if text != "" {
		s.know(name, clip(text))
	}
}

// close sets the end of the span and gives its time to its parent.
func (s *span) close(at time.Time) {
	if at.Before(s.start) {
		at = s.start
	}
	s.end = at
	total := s.end.Sub(s.start)
	s.sum.kind, s.sum.name, s.sum.n = s.kind, s.name, 1
	s.sum.busy = max(0, total-s.waits.length())
	s.sum.self = max(0, total-s.children.length())
	if s.kind == waitKind {
		s.sum.busy, s.sum.self, s.sum.waited = 0, 0, total
	}
	if s.failed {
		s.sum.failed = 1
	}
	p := s.parent
	if p == nil {
		return
	}
	if !s.beside {
		p.children.add(s.start.Sub(p.start), s.end.Sub(p.start))
	}
	p.sum.take(s.sum)
	if s.kind == waitKind {
		for ; p != nil; p = p.parent {
			p.waits.add(s.start.Sub(p.start), s.end.Sub(p.start))
		}
	}
}

// stretches are parts of a span's time, from its start on.
type stretches [][2]time.Duration

func (s *stretches) add(from, to time.Duration) {
	if from = max(from, 0); to > from {
		*s = append(*s, [2]time.Duration{from, to})
	}
}

// length is how much time they cover together.
func (s stretches) length() (covered time.Duration) {
	slices.SortFunc(s, func(a, b [2]time.Duration) int { return cmp.Compare(a[0], b[0]) })
	upTo := time.Duration(0)
	for _, part := range s {
		if part[1] > upTo {
			covered += part[1] - max(part[0], upTo)
			upTo = part[1]
		}
	}
	return covered
}

// sum is what spans of one kind and name, below others of the same kinds and names,
// came to together.
type sum struct {
	kind       kind
	name       string
	n, failed  int
	busy, self time.Duration
	waited     time.Duration
	parts      []*sum // in order of their first end
}

// take adds part to the sum's parts.
func (s *sum) take(part *sum) {
	i := slices.IndexFunc(s.parts, func(p *sum) bool { return p.kind == part.kind && p.name == part.name })
	if i < 0 {
		s.parts = append(s.parts, part)
		return
	}
	to := s.parts[i]
	to.n += part.n
	to.failed += part.failed
	to.busy += part.busy
	to.self += part.self
	to.waited += part.waited
	for _, p := range part.parts {
		to.take(p)
	}
}
