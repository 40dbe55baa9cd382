package picture

import (
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/state"
)

// Conflicts returns a report of what the active hooks can fight over, for people: by
// phase and tier each key, who writes and who reads it, and what happens then; keys on
// which writes merge; and the hooks that declare nothing, so that anything could happen.
//
// It goes by what hooks declare with engine.Writes and engine.Reads. seen, which may be
// nil, adds what they were observed to do: each hook of the report is then marked as
// declared, observed or both, and the conflicts that really happened are counted.
//
// The report is about hooks. Not in it, since only running tells, are keys that a command
// itself declares to read, commands of tools and those that are submitted from outside.
// Left out are keys in which the engine notes what a command schedules and emits: hooks
// never fight over them.
func Conflicts(m engine.Manifest, seen *Observed) string {
	var o outline
	if m.Agent != "" {
		o.head("agent " + m.Agent)
	}
	all, strangers := meetings(m, seen)
	found := false
	for _, at := range all {
		headed := false
		for _, c := range at.contests {
			if !c.possible() {
				continue
			}
			if !headed {
				o.head(at.String())
				headed, found = true, true
			}
			c.describe(&o, seen != nil)
		}
	}
	if !found {
		o.head("no two hooks declare " + when(seen != nil, "or were seen to write ") + "a key that they could fight over")
	}
	describeMerging(&o, all, seen != nil)
	describeUnknown(&o, all, seen != nil)
	describeActions(&o, m)
	if seen != nil {
		describeElsewhere(&o, seen)
		if len(strangers) > 0 {
			o.head("observed, but no active hook of this agent")
			o.lines("", strangers)
		}
	}
	return o.String()
}

// describe writes who meets over the key and what happens.
func (c *contest) describe(o *outline, observed bool) {
	o.line(c.merge.String() + " key " + c.key)
	c.parties(o, observed)
	if c.fights() {
		o.more(c.outcome())
	}
	if early, late := c.readersByOrder(); len(c.readers) > 0 && len(c.writers) > 0 {
		if len(late) > 0 {
			o.more("when a hook before it wrote the key, the reader runs again: " + names(late))
		}
		if len(early) > 0 {
			o.more("comes before whoever writes the key, so keeps what it read: " + names(early))
		}
	}
	if observed {
		o.more(c.losses())
	}
}

func (c *contest) parties(o *outline, observed bool) {
	for _, w := range c.writers {
		o.more("written by " + w.ID + when(observed, w.mark(c.key)))
	}
	for _, r := range c.readers {
		o.more("read by " + r.ID)
	}
}

// mark says how it is known that the hook writes the key.
func (h *hook) mark(key string) string {
	declared, n := slices.Contains(h.Writes, key), 0
	if w := h.observed(key); w != nil {
		n = w.Commits
	}
	commits := "observed in " + count(n, "commit")
	switch {
	case !declared && n == 0:
		return " (observed to want it)"
	case !declared:
		return " (" + commits + ")"
	case n == 0:
		return " (declared)"
	}
	return " (declared, " + commits + ")"
}

// outcome says what happens when several write the key.
func (c *contest) outcome() string {
	first, rest := c.writers[0].ID, c.writers[1:]
	text := "the first of those that write it commits, the later ones run again one by one, in this order"
	if len(rest) == 1 {
		text = "when both write it, " + rest[0].ID + " runs again on what " + first + " wrote"
	}
	if c.apart() {
		text += "; so far they wrote different entries, which is no conflict"
	}
	return text
}

// losses says how often there was a conflict.
func (c *contest) losses() string {
	text := ""
	for _, h := range c.all() {
		for _, l := range h.seen.Lost {
			if l.Key == c.key {
				text += when(text != "", ", ") + fmt.Sprintf("%s lost it to %s %s", h.ID, l.Winner, times(l.Times))
			}
		}
	}
	if text == "" {
		return "no conflict was observed"
	}
	return "observed: " + text
}

// describeMerging lists the keys that several hooks write and that merge.
func describeMerging(o *outline, all []*meeting, observed bool) {
	headed := false
	for _, at := range all {
		for _, c := range at.contests {
			if c.merge != state.Commutative || len(c.writers) < 2 {
				continue
			}
			if !headed {
				o.head("merge, unless a hook resets the key or removes from it; what is put in order waits behind a hook that has to run again")
				headed = true
			}
			o.line(at.String() + ": " + c.key)
			c.parties(o, observed)
			if alone := c.alone(); len(alone) > 0 {
				o.more("was reset or removed from by " + names(alone))
			}
			if observed && !c.possible() {
				o.more(c.losses())
			}
		}
	}
}

// describeUnknown lists the hooks that declare nothing.
func describeUnknown(o *outline, all []*meeting, observed bool) {
	headed := false
	for _, at := range all {
		for _, h := range at.hooks {
			if !h.unknown() {
				continue
			}
			if !headed {
				o.head("declare no writes, so could conflict with any hook of their phase and tier that reads or writes")
				headed = true
			}
			beside := names(slices.DeleteFunc(slices.Clone(at.hooks), func(other *hook) bool {
				return other == h || other.Silent && len(other.Reads) == 0
			}))
			o.line(at.String()+": "+h.ID, when(beside == "", "no such hook is beside it"), list("beside ", beside))
			if observed {
				o.more(h.sighting())
			}
		}
	}
}

// sighting says what was seen of a hook that declares nothing.
func (h *hook) sighting() string {
	if h.seen.Runs == 0 && len(h.seen.Writes) == 0 {
		return "was not observed to run"
	}
	ran := "observed to run " + times(h.seen.Runs)
	text := ""
	for _, w := range h.seen.Writes {
		if !bookkeeping(w.Key) {
			text += when(text != "", ", ") + w.Key + " in " + count(w.Commits, "commit")
		}
	}
	if text == "" {
		return ran + " and to write nothing"
	}
	return ran + " and to write " + text
}

// describeActions lists the handlers that run in parallel.
func describeActions(o *outline, m engine.Manifest) {
	headed := false
	for _, p := range m.Plugins {
		for _, a := range p.Actions {
			if !a.ReplaySafe {
				continue
			}
			if !headed {
				o.head("action handlers that run in parallel, under the same rule; what they write is not declared")
				headed = true
			}
			o.line(a.Phase.String() + ": " + a.Name + " of " + p.Name)
		}
	}
}

// describeElsewhere lists the observed conflicts of commands that are no hook's.
func describeElsewhere(o *outline, seen *Observed) {
	for i, c := range seen.others() {
		if i == 0 {
			o.head("observed conflicts of action handlers, tools and others")
		}
		o.line(fmt.Sprintf("%s: %s lost key %s %s", c.phase, c.loser, c.key, times(c.times)))
	}
}

func count(n int, word string) string { return fmt.Sprint(n, " ", word) + when(n != 1, "s") }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
