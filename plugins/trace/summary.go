package trace

import (
	"fmt"
	"strings"
	"time"
)

// summary writes what a run's time went into, as a tree: spans of one kind and name
// below the same parent are one line.
func (t *Trace) summary(c *course) {
	if t.text == nil || t.opts.Show == TimelineOnly {
		return
	}
	root := c.run.sum
	var out strings.Builder
	fmt.Fprintf(&out, "summary of run %s: %s", clip(c.id), length(root.busy))
	if waited := root.waited + c.run.waits.length(); waited > 0 {
		fmt.Fprintf(&out, " and %s waiting for people", length(waited))
	}
	fmt.Fprintf(&out, "\n%10s %10s %6s  %s\n", "time", "self", "share", "what")
	root.write(&out, 0, root.busy)
	t.text.put([]byte(out.String()))
}

func (s *sum) write(out *strings.Builder, depth int, whole time.Duration) {
	if s.kind == waitKind && s.waited == 0 {
		return // asked, and left open when the run was suspended
	}
	share := ""
	if whole > 0 && s.kind != waitKind {
		share = fmt.Sprintf("%.1f%%", 100*float64(s.busy)/float64(whole))
	}
	busy, self := length(s.busy), length(s.self)
	if s.kind == waitKind {
		busy, self = "("+length(s.waited)+")", ""
	}
	fmt.Fprintf(out, "%10s %10s %6s  %s%s", busy, self, share, strings.Repeat("  ", depth), s.label())
	if s.n > 1 {
		fmt.Fprintf(out, " ×%d", s.n)
	}
	if s.failed > 0 {
		fmt.Fprintf(out, ", %d failed", s.failed)
	}
	out.WriteByte('\n')
	for _, p := range s.parts {
		p.write(out, depth+1, whole)
	}
}

// label is what the line is about. Phases and bodies need no kind.
func (s *sum) label() string {
	switch s.kind {
	case phaseKind, stepKind, bodyKind:
		return clip(s.name)
	case waitKind:
		return "waiting for an answer"
	}
	return strings.TrimRight(string(s.kind)+" "+clip(s.name), " ")
}
