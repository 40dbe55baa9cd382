package recording

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// commit is a Commit and what it stands in connection with.
type commit struct {
	Commit
	item
	run       *run
	thread    *thread
	phase     phase.Phase
	conflicts []*conflict
	after     *conflict // that the retry which this is of had lost
	bodies    []*call   // whose commands it has
	schedules []string  // plugins that scheduled the actions which were handled
	instead   string    // plugin whose gate replaced the action
	reset     bool      // the engine cleared what belongs to a run; nobody told of it
	untold    bool      // it stands for revisions that nobody told of
}

// conflict is a conflict and what became of the loser.
type conflict struct {
	ConflictItem
	run    *run
	on     *commit // of the winner, as far as it is known
	rev    uint64  // of the state that it was lost on, or a later one
	base   uint64  // of the state that the loser worked on, or an earlier one
	step   int
	phase  phase.Phase
	round  int
	action uint64
	held   bool      // the winner had itself lost before, and what wants the key after it waits
	retry  *commit   // what the retry committed
	again  *conflict // that the retry lost
	status string    // of the hook or action in the end, "" while that is not known
	err    string
	over   bool
}

// of reports whether it is a hook or an action that lost.
func (l *conflict) of(plugin, hook string, action uint64) bool {
	if action != 0 {
		return l.action == action
	}
	return l.Hook == hook && l.Loser == plugin
}

// read reports that the loser did not want to write what it lost, but had read it.
func (l *conflict) read() bool {
	return len(l.Lost) > 0 && !slices.ContainsFunc(l.Lost, func(w Write) bool { return w.Key == l.Key })
}

// place is the key, or the entry, that was fought over.
func (l *conflict) place() string { return placeName(l.Key, l.Entry) }

func placeName(key, entry string) string {
	if entry == "" {
		return clip(key, shortText)
	}
	return clip(key, shortText) + "/" + clip(entry, shortText)
}

// inWords says what was lost, of the loser.
func (l *conflict) inWords() string {
	winner := clip(l.Winner, shortText)
	switch {
	case l.Winner == "":
		return "it lost " + l.place()
	case l.held:
		return "it had to wait behind " + winner + ", which had lost, to keep the order of " + l.place()
	case l.read():
		return "it had read " + l.place() + ", which " + winner + " changed"
	}
	return "it lost " + l.place() + " to " + winner
}

// finished says what became of the hook or action in the end.
func (l *conflict) finished(status, err string) {
	if !l.over {
		l.status, l.err, l.over = status, err, true
	}
}

// settle has everybody hear of a conflict whose end is known.
func (r *Recording) settle(l *conflict) {
	for _, c := range []*commit{l.on, l.retry} {
		if c != nil && c.thread != nil { // else it is on its way into the view
			r.changed(ofCommits, &c.item)
		}
	}
}

// actionOf returns the id of the action whose handling the writes are of, 0 for none.
func actionOf(writes []Write) uint64 {
	for _, w := range writes {
		if w.Key == queueKey && w.Op == "delete" {
			if key, err := strconv.ParseUint(w.Entry, 10, 64); err == nil {
				return key & (1<<phaseShift - 1)
			}
		}
	}
	return 0
}

// The engine keeps queued actions in a table, by phase and then id.
const (
	queueKey   = "fixpoint.queue"
	phaseShift = 56
)

// writesOf are writes as the view has them.
func writesOf(from []engine.Write) []Write {
	out := make([]Write, len(from))
	for i := range from {
		w := &from[i]
		out[i] = Write{Plugin: w.Plugin, Hook: w.Hook, Key: w.Key, Entry: w.Entry, Op: w.Op, Value: sound(w.Value)}
	}
	return out
}

func (r *Recording) committed(x *run, h engine.Header, e engine.Committed) {
	c := &commit{Commit: Commit{Run: x.ID, Rev: h.Revision, At: r.micros(h.Time), Step: h.Step, Phase: phaseName(h.Phase),
		Round: e.Round, Retry: e.Retry, Writes: writesOf(e.Writes), Changes: make([]Change, 0, len(e.Changes))}, run: x, phase: h.Phase}
	var bodies []string // of tool calls, whose commands it has
	for _, w := range c.Writes {
		r.learn(w.Key, w.Op)
		if w.Key == queueKey && w.Op == "delete" && w.Hook != "" && e.Round > 0 {
			if id := actionOf([]Write{w}); id != 0 {
				x.thread.actions[id] = c
			}
		}
		if id, is := strings.CutPrefix(w.Plugin, callOwner); is && !slices.Contains(bodies, id) {
			bodies = append(bodies, id)
		}
	}
	for _, d := range e.Changes {
		if gone := emptied(d, c.Writes); gone != nil {
			c.Changes = append(c.Changes, gone...)
		} else {
			c.Changes = flatten(c.Changes, d, r.kinds[d.Name])
		}
	}
	if e.Call != "" && len(bodies) == 0 {
		bodies = []string{e.Call}
	}
	for _, id := range bodies {
		about := r.callOf(x, h, id, "")
		c.bodies = append(c.bodies, about)
		about.commits = append(about.commits, c)
		r.committedAbout(about, c)
		if len(bodies) == 1 {
			c.Call = about.ID
		}
	}
	if d := x.in(h.Phase); d != nil && d.call == e.Call {
		c.PhaseSpan = d.span.ID
		r.joinPhase(x, h, d, c)
	}
	if x.begins && h.Phase == 0 && len(c.Writes) > 0 && c.Writes[0].Plugin == engineName {
		r.clear(x, c)
	}
	r.insert(x.thread, c)
}

const (
	engineName = "engine" // owner of the engine's own writes
	callOwner  = "call "  // and the id of the call, owns those of its command
)

// joinPhase notes what the commit is in its phase.
func (r *Recording) joinPhase(x *run, h engine.Header, d *during, c *commit) {
	action := uint64(0)
	if c.Round > 0 {
		r.round(x, d, c.Round, h.Time)
		action = actionOf(c.Writes)
	}
	if d.by == nil {
		d.by = map[string]*commit{}
	}
	for _, w := range c.Writes {
		if w.Hook != "" {
			d.by[w.Hook] = c
		}
	}
	if !c.Retry {
		d.merged = c
		return
	}
	if len(c.Writes) == 0 {
		return
	}
	for _, l := range d.lost {
		if l.again == nil && l.retry == nil && l.of(c.Writes[0].Plugin, c.Writes[0].Hook, action) {
			l.retry, c.after = c, l
			break
		}
	}
	for _, l := range d.lost { // also of those that it had lost before
		if l.of(c.Writes[0].Plugin, c.Writes[0].Hook, action) {
			r.settle(l)
		}
	}
}

// handled notes what is told of an action that the commit handled. It returns the plugin
// that did it.
func (c *commit) handled(e engine.ActionFinished) (plugin string) {
	if !slices.Contains(c.schedules, e.Plugin) {
		c.schedules = append(c.schedules, e.Plugin)
	}
	if e.By != "" {
		c.instead = e.By
	}
	for _, w := range c.Writes {
		if w.Hook == e.Action {
			return w.Plugin
		}
	}
	return ""
}

func (r *Recording) conflicted(x *run, h engine.Header, e engine.Conflict) {
	l := &conflict{
		ConflictItem: ConflictItem{Key: e.Key, Entry: e.Entry, Winner: e.Winner, Loser: e.Loser, Hook: e.Hook, Fate: e.Fate, Lost: writesOf(e.Lost)},
		run:          x, rev: h.Revision, step: h.Step, phase: h.Phase, round: e.Round,
	}
	x.Conflicts++
	r.changed(ofRuns, &x.item)
	for _, w := range l.Lost {
		r.learn(w.Key, w.Op)
	}
	if e.Round > 0 {
		l.action = actionOf(l.Lost)
	}
	d := x.in(h.Phase)
	if id, is := strings.CutPrefix(e.Loser, callOwner); is {
		c := r.callOf(x, h, id, "")
		l.base = c.bodyRev
		c.refused = append(c.refused, l)
		r.changed(ofCalls, &c.item)
	} else if d != nil {
		if e.Round > 0 {
			r.round(x, d, e.Round, h.Time)
		}
		l.base = d.base
		for _, former := range d.lost {
			if former.again == nil && former.retry == nil && former.of(e.Loser, e.Hook, l.action) {
				former.again = l
				l.base = former.rev
				r.settle(former)
			}
		}
		l.held = slices.ContainsFunc(d.lost, func(other *conflict) bool { return other.Loser == l.Winner && other.retry == nil })
		d.lost = append(d.lost, l)
	}
	k := x.thread.key(e.Key)
	k.conflicts = append(k.conflicts, l)
	r.find(x.thread, d, l)
	if l.on == nil || l.on.Rev < l.rev && x.thread.at(l.rev) == nil {
		x.thread.waiting = append(x.thread.waiting, l)
	}
}

// deepest is how many commits to a key are looked through for the one that won.
const deepest = 256

// find looks for the winner's commit.
func (r *Recording) find(t *thread, d *during, l *conflict) {
	all := t.key(l.Key).all
	for i := len(all) - 1; i >= max(0, len(all)-deepest); i-- {
		c := all[i].c
		if c.Rev > l.rev {
			continue
		}
		if c.Rev <= l.base {
			break
		}
		if l.wonBy(c) {
			l.held = false
			r.on(l, c)
			return
		}
	}
	if d != nil && d.merged != nil {
		r.on(l, d.merged)
		return
	}
	for i := len(t.commits) - 1; i >= max(0, len(t.commits)-deepest); i-- {
		if t.commits[i].Rev <= l.rev {
			r.on(l, t.commits[i])
			return
		}
	}
}

// wonBy reports whether the commit has what the winner wrote.
func (l *conflict) wonBy(c *commit) bool {
	i := slices.IndexFunc(c.Writes, func(w Write) bool { return l.is(w) && w.Plugin == l.Winner })
	if i < 0 {
		return false
	}
	l.WinnerHook = c.Writes[i].Hook
	return true
}

// is reports whether a write is to what was fought over.
func (l *conflict) is(w Write) bool {
	return w.Key == l.Key && (w.Entry == "" || l.Entry == "" || w.Entry == l.Entry)
}

// on attaches the conflict to a commit.
func (r *Recording) on(l *conflict, c *commit) {
	if was := l.on; was != nil {
		was.conflicts = slices.DeleteFunc(was.conflicts, func(x *conflict) bool { return x == l })
		r.changed(ofCommits, &was.item)
	}
	l.on = c
	c.conflicts = append(c.conflicts, l)
	r.changed(ofCommits, &c.item)
}

// attach gives a commit that is new the conflicts that were told of before it.
func (r *Recording) attach(t *thread, c *commit) {
	t.waiting = slices.DeleteFunc(t.waiting, func(l *conflict) bool {
		if l.rev < c.Rev {
			return c.Rev-l.rev > deepest // it will not come
		}
		if (l.on == nil || l.on.Rev < c.Rev) && c.Rev > l.base && l.wonBy(c) {
			r.on(l, c)
		}
		return l.rev == c.Rev
	})
}

// commitView is the commit as the view has it.
func (r *Recording) commitView(c *commit) Commit {
	v := r.commitOutline(c)
	for i := range v.Changes {
		v.Changes[i].Why = c.why(&v.Changes[i])
	}
	return v
}

// commitOutline is the same without explanations.
func (r *Recording) commitOutline(c *commit) Commit {
	v := c.Commit
	v.Changes = append(make([]Change, 0, len(c.Changes)), c.Changes...)
	if len(c.conflicts) > 0 {
		v.Conflicts = make([]ConflictItem, len(c.conflicts))
		for i, l := range c.conflicts {
			v.Conflicts[i] = l.ConflictItem
		}
	}
	return v
}
