package recording

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// Errors of queries.
var (
	// ErrUnknown reports a run, thread, key, entry, revision or call that the recording
	// does not have.
	ErrUnknown = errors.New("recording: unknown")
	// ErrAmbiguous reports a key that several threads have.
	ErrAmbiguous = errors.New("recording: ambiguous")
)

// Query asks who wrote a key.
type Query struct {
	Thread   string // may be left out if one thread only has the key, or with Run
	Run      string // a run on the thread: its last revision is the newest one then
	Key      string
	Entry    string // of a table or set; "" for the key as a whole
	Revision uint64 // the last write at or before it is explained; 0 for the newest
}

// Explanation says who wrote a key. Its text tells it in sentences.
type Explanation struct {
	Thread, Key, Entry string
	Asked              uint64      // revision that was asked about
	Value              Value       // at that revision
	Revision           uint64      // of the last write; 0 if none is known
	Before             Value       // that the write found
	Writers            []Writer    // of the commit, in order: several for what merges
	Entries            []string    // that the commit changed, if the query has none
	Overwrote          *Writer     // the write before
	Losers             []Loser     // of conflicts about it
	Next               *Writer     // the write after
	Found              uint64      // revision at which a run found the value, if that is all that is known
	Untold             []Revisions // between the write and what was asked about, of which the recording knows nothing
	Notes              []string    // what else is not known, in sentences

	write   *commit
	added   *Change // of a list
	several bool    // there are other threads
}

// Value is a value at some moment.
type Value struct {
	JSON   inference.JSON
	Known  bool // else nobody told
	Set    bool // else there is none: the key has its initial value, or the entry is gone
	Hidden bool // the trace does not show it
	Cut    int  // bytes of a value that was too long: JSON is a string with its beginning
}

// Writer is somebody who wrote a key, and where.
type Writer struct {
	Revision  uint64
	Run       string
	Plugin    string // "engine" for the engine itself; "" for the command of a tool call
	Hook      string
	Action    string // that was handled, in place of a hook
	Scheduled string // plugin that had scheduled it
	Instead   bool   // it is the plugin of a gate, which replaced the action
	Call      string // tool call whose command it is, by the model's id
	Tool      string
	Step      int
	Phase     string // "" outside phases
	Round     int    // of actions; 0 for none
	Retry     bool   // it was called again after a conflict, and committed alone
	Op        string
	Value     inference.JSON // argument of the update

	merged  bool
	aside   bool // nobody called it: the command came from outside
	key     string
	outside bool
}

// Loser is somebody who lost a conflict.
type Loser struct {
	Loser  string // plugin, or "call" and the id of a tool call
	Hook   string // or action
	Winner string
	Key    string // that was fought over, which need not be the one that was asked about
	Entry  string
	Wanted []Write // to what was asked about
	Retry  *Writer // what its retry wrote there
	Fate   string  // what became of it, as the end of a sentence about it
	how    string
}

// State is the state of a thread at a revision, as far as it is known.
type State struct {
	Thread   string
	Revision uint64
	Keys     map[string]KeyState // without those that have no value
	Untold   []Revisions         // of which the recording knows nothing: it may be wrong for what they changed
}

// KeyState is the value of a key, or its entries.
type KeyState struct {
	Value   Value
	Entries map[string]Value // of a table or set, else nil
}

// State returns the values that a thread's keys have at the query's revision. Its Key
// and Entry are not used. The error matches ErrUnknown or ErrAmbiguous.
func (r *Recording) State(q Query) (State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, newest, err := r.threadOfQuery(q)
	if err != nil {
		return State{}, err
	}
	rev, err := t.revision(q.Revision, newest)
	if err != nil {
		return State{}, err
	}
	return t.state(rev), nil
}

// threadOfQuery returns the thread that the query is about and its newest revision.
func (r *Recording) threadOfQuery(q Query) (*thread, uint64, error) {
	if q.Run != "" {
		for _, x := range r.runs {
			if x.ID == q.Run && (q.Thread == "" || q.Thread == x.Thread) {
				return x.thread, x.rev, nil
			}
		}
		return nil, 0, unknown("run", q.Run, names(r.runs, func(x *run) string { return x.ID }))
	}
	ids := names(r.order, func(t *thread) string { return t.id })
	if q.Thread != "" {
		if i := slices.Index(ids, q.Thread); i >= 0 {
			return r.order[i], r.order[i].newest, nil
		}
		return nil, 0, unknown("thread", q.Thread, ids)
	}
	var those []*thread
	for _, t := range r.order {
		if q.Key == "" || t.has(q.Key) {
			those = append(those, t)
		}
	}
	switch {
	case len(those) == 1:
		return those[0], those[0].newest, nil
	case len(those) > 1:
		return nil, 0, fmt.Errorf("%w: say which thread is meant: %s", ErrAmbiguous, some(names(those, func(t *thread) string { return t.id })))
	case len(r.order) == 0:
		return nil, 0, fmt.Errorf("%w: there is no run in the recording", ErrUnknown)
	}
	known := map[string]bool{}
	for _, t := range r.order {
		t.names(known)
	}
	return nil, 0, unknown("key", q.Key, sortedKeys(known, nil))
}

func names[T any](of []T, name func(T) string) []string {
	out := make([]string, len(of))
	for i, one := range of {
		out[i] = name(one)
	}
	return out
}

// unknown is the error about a name that is not known, with the ones that are.
func unknown(what, name string, known []string) error {
	hint := "; the recording has none"
	if near := jsonpos.Nearest(name, known); near != "" {
		hint = "; did you mean “" + clip(near, shortText) + "”?"
	} else if len(known) > 0 {
		hint = "; there is " + some(known)
		if len(known) > 1 {
			hint = "; there are " + some(known)
		}
	}
	return fmt.Errorf("%w %s %s%s", ErrUnknown, what, quoted(name, shortText), hint)
}

// some lists a few names.
func some(list []string) string {
	const most = 8
	shown := make([]string, 0, most)
	for _, name := range list[:min(most, len(list))] {
		shown = append(shown, clip(name, shortText))
	}
	if more := len(list) - most; more > 0 {
		shown = append(shown, count(more, "other"))
	}
	return listed(shown)
}

// names adds the keys that are known of the thread.
func (t *thread) names(to map[string]bool) {
	for name := range t.keys {
		to[name] = true
	}
	for _, b := range t.bases {
		for _, c := range b.changes {
			to[c.Key] = true
		}
	}
}

func (t *thread) has(key string) bool {
	return t.keys[key] != nil || slices.ContainsFunc(t.bases, func(b *baseline) bool { return len(b.of(key)) > 0 })
}

// revision checks a revision that was asked about.
func (t *thread) revision(asked, newest uint64) (uint64, error) {
	oldest := t.newest
	if len(t.commits) > 0 {
		oldest = t.commits[0].Rev
	}
	if len(t.bases) > 0 {
		oldest = min(oldest, t.bases[0].rev)
	}
	switch {
	case asked == 0:
		return newest, nil
	case asked > t.newest:
		return 0, fmt.Errorf("%w revision %d: the newest of thread %s is %d", ErrUnknown, asked, clip(t.id, shortText), t.newest)
	case asked < oldest:
		return 0, fmt.Errorf("%w revision %d: the recording of thread %s begins with revision %d", ErrUnknown, asked, clip(t.id, shortText), oldest)
	}
	return asked, nil
}

// Explain says who wrote a key or an entry last, at or before a revision. The error
// matches ErrUnknown or ErrAmbiguous and names what there is.
func (r *Recording) Explain(q Query) (Explanation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, newest, err := r.threadOfQuery(q)
	if err != nil {
		return Explanation{}, err
	}
	rev, err := t.revision(q.Revision, newest)
	if err != nil {
		return Explanation{}, err
	}
	if !t.has(q.Key) {
		known := map[string]bool{}
		t.names(known)
		return Explanation{}, unknown("key", q.Key, sortedKeys(known, nil))
	}
	if err := t.checkEntry(q.Key, q.Entry); err != nil {
		return Explanation{}, err
	}
	return r.explain(t, q.Key, q.Entry, rev), nil
}

// checkEntry refuses an entry that the key never had.
func (t *thread) checkEntry(key, entry string) error {
	if entry == "" {
		return nil
	}
	known := map[string]bool{}
	for _, b := range t.bases {
		for _, c := range b.of(key) {
			if c.Entry != "" {
				known[c.Entry] = true
			}
		}
	}
	if k := t.keys[key]; k != nil {
		for name := range k.entries {
			known[name] = true
		}
	}
	switch {
	case known[entry]:
		return nil
	case len(known) == 0:
		return fmt.Errorf("%w entry %s: key %s has no entries", ErrUnknown, quoted(entry, shortText), clip(key, shortText))
	}
	return unknown("entry", entry, sortedKeys(known, nil))
}

func (r *Recording) explain(t *thread, key, entry string, rev uint64) Explanation {
	x := Explanation{Thread: t.id, Key: key, Entry: entry, Asked: rev, Value: t.value(key, entry, rev), several: len(r.order) > 1}
	k := t.keys[key]
	if k == nil {
		k = &keyLog{}
	}
	at, ok := k.before(entry, rev+1)
	// What a run found says more than a write before it, if it is not what that wrote.
	base := t.baseAt(rev)
	if ok && at.c.Rev < base.rev && len(t.untold(at.c.Rev, base.rev)) > 0 && !same(t.value(key, entry, at.c.Rev), t.value(key, entry, base.rev)) {
		x.Notes = append(x.Notes, fmt.Sprintf("somebody changed it in %s, of which the recording knows nothing", ranges(t.untold(at.c.Rev, base.rev))))
		ok = false
	}
	if !ok {
		if x.Value.Set {
			x.Found = base.rev
		}
		x.Untold = t.untold(base.rev, rev)
		if next, ok := k.after(entry, rev); ok {
			x.Next = next.c.writer(key, entry)
		}
		return x
	}
	c := at.c
	x.write, x.Revision = c, c.Rev
	x.Before = t.value(key, entry, c.Rev-min(c.Rev, 1))
	x.Writers = c.writers(key, entry)
	for i := range c.Changes {
		if ch := &c.Changes[i]; ch.Key == key && ch.Entry != "" && entry == "" {
			x.Entries = append(x.Entries, ch.Entry)
		} else if ch.Key == key && ch.At != nil {
			x.added = ch
		}
	}
	if former, ok := k.before(entry, c.Rev); ok {
		x.Overwrote = former.c.writer(key, entry)
	}
	for _, l := range c.conflicts {
		if lost := l.about(key, entry); l.covers(key, entry) || len(lost) > 0 {
			x.Losers = append(x.Losers, l.loser(lost, key, entry))
		}
	}
	if next, ok := k.after(entry, c.Rev); ok {
		x.Next = next.c.writer(key, entry)
	}
	x.Untold = t.untold(c.Rev, rev)
	if gaps := t.untold(t.baseAt(c.Rev-1).rev, c.Rev-1); len(gaps) > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("what it was before may be wrong: the recording knows nothing of %s", ranges(gaps)))
	}
	return x
}

func same(a, b Value) bool { return a.Set == b.Set && a.JSON == b.JSON && a.Cut == b.Cut }

// ranges lists revisions, the first few of them.
func ranges(gaps []Revisions) string {
	return some(names(gaps, Revisions.String))
}

// before returns the last touch of the key or entry before a revision.
func (k *keyLog) before(entry string, rev uint64) (touch, bool) {
	last := func(list []touch) (touch, bool) {
		i := sort.Search(len(list), func(i int) bool { return list[i].c.Rev >= rev })
		if i == 0 {
			return touch{}, false
		}
		return list[i-1], true
	}
	if entry == "" {
		return last(k.all)
	}
	whole, ok := last(k.whole)
	if own := k.entries[entry]; own != nil {
		if one, is := last(*own); is && (!ok || one.c.Rev >= whole.c.Rev) {
			return one, true
		}
	}
	return whole, ok
}

// after returns the first touch of the key or entry after a revision.
func (k *keyLog) after(entry string, rev uint64) (touch, bool) {
	first := func(list []touch) (touch, bool) {
		i := sort.Search(len(list), func(i int) bool { return list[i].c.Rev > rev })
		if i == len(list) {
			return touch{}, false
		}
		return list[i], true
	}
	if entry == "" {
		return first(k.all)
	}
	whole, ok := first(k.whole)
	if own := k.entries[entry]; own != nil {
		if one, is := first(*own); is && (!ok || one.c.Rev <= whole.c.Rev) {
			return one, true
		}
	}
	return whole, ok
}

// value returns the value of a key or entry at a revision.
func (t *thread) value(key, entry string, rev uint64) Value {
	base := t.baseAt(rev)
	b := newBuilder(base.of(key))
	known := base.found || len(t.untold(0, rev)) == 0
	if k := t.keys[key]; k != nil {
		i := sort.Search(len(k.all), func(i int) bool { return k.all[i].c.Rev > base.rev })
		silent := true
		for ; i < len(k.all) && k.all[i].c.Rev <= rev; i++ {
			if k.all[i].change < 0 {
				continue
			}
			silent = false
			for _, ch := range k.all[i].c.Changes {
				if ch.Key == key {
					known = true
					b.add(ch)
				}
			}
		}
		if silent && len(base.of(key)) == 0 && k.mute() {
			known = false
		}
	}
	have := b.done().Keys[key]
	v := have.Value
	if entry != "" {
		v = have.Entries[entry]
	} else if have.Entries != nil {
		v = Value{Set: true}
	}
	v.Known = known || v.Set
	return v
}

// mute reports that a key is written and never changes: its values are kept from every
// export.
func (k *keyLog) mute() bool {
	return len(k.all) > 0 && !slices.ContainsFunc(k.all, func(t touch) bool { return t.change >= 0 })
}

// covers reports whether the conflict is over the key or entry.
func (l *conflict) covers(key, entry string) bool {
	return l.Key == key && (l.Entry == "" || entry == "" || l.Entry == entry)
}

// about returns what the loser wanted to write to the key or entry.
func (l *conflict) about(key, entry string) (out []Write) {
	for _, w := range l.Lost {
		if w.Key == key && (w.Entry == "" || entry == "" || w.Entry == entry) {
			out = append(out, w)
		}
	}
	return out
}

// writers returns who wrote the key or entry in the commit, in order.
func (c *commit) writers(key, entry string) (out []Writer) {
	for i := range c.Writes {
		if w := &c.Writes[i]; w.Key == key && w.touches(entry) {
			out = append(out, c.writerOf(w))
		}
	}
	return out
}

// touches reports whether the write is to an entry, or to the key as a whole.
func (w *Write) touches(entry string) bool {
	if entry == "" || w.Entry == "" || w.Entry == entry {
		return true
	}
	return w.several() && strings.Contains(" "+w.Entry[1:len(w.Entry)-1]+" ", " "+entry+" ")
}

// several reports whether the entry stands for several elements of a set.
func (w *Write) several() bool {
	return kindOf(w.Op) == setKind && strings.HasPrefix(w.Entry, "[") && strings.HasSuffix(w.Entry, "]")
}

// writer is the last who wrote the key or entry in the commit.
func (c *commit) writer(key, entry string) *Writer {
	if all := c.writers(key, entry); len(all) > 0 {
		return &all[len(all)-1]
	}
	w := c.writerOf(&Write{Key: key, Entry: entry})
	if c.reset {
		w.Plugin, w.Op = engineName, "reset"
	}
	return &w
}

func (c *commit) writerOf(w *Write) Writer {
	out := Writer{Revision: c.Rev, Run: c.Run, Plugin: w.Plugin, Hook: w.Hook, Step: c.Step, Phase: c.Phase, Round: c.Round,
		Retry: c.Retry, Op: w.Op, Value: w.Value, key: w.Key, merged: c.merges(), outside: c.run.alone}
	switch id, is := strings.CutPrefix(w.Plugin, callOwner); {
	case is:
		out.Plugin, out.Call = "", id
		for _, b := range c.bodies {
			if b.Call.Call == id {
				out.Tool = b.Tool
			}
		}
	case c.Round > 0 && w.Hook != "":
		out.Action, out.Hook, out.Instead = w.Hook, "", c.instead == w.Plugin && c.instead != ""
		if len(c.schedules) == 1 {
			out.Scheduled = c.schedules[0]
		}
	case w.Hook == "" && w.Plugin != engineName:
		out.aside = len(c.Writes) > 0 && c.Writes[0].Plugin != engineName
	}
	return out
}

// merges reports whether the commit has commands of several hooks.
func (c *commit) merges() bool {
	for i := range c.Writes {
		if c.Writes[i].Hook != c.Writes[0].Hook {
			return true
		}
	}
	return false
}

// loser says what became of who lost.
func (l *conflict) loser(wanted []Write, key, entry string) Loser {
	out := Loser{Loser: l.Loser, Hook: l.Hook, Winner: l.Winner, Key: l.Key, Entry: l.Entry, Wanted: wanted, how: l.inWords()}
	last := l
	for n := 0; last.again != nil && n < mostTries; n++ {
		last = last.again
	}
	lead := "its retry"
	if last != l {
		lead = "its retry lost too; the last one"
	}
	switch {
	case l.Fate == "refused":
		out.Fate = "all its changes were refused"
	case last.retry != nil:
		if ws := last.retry.writers(key, entry); len(ws) > 0 {
			out.Retry = &ws[len(ws)-1]
			out.Fate = fmt.Sprintf("%s %s at revision %d%s", lead, verb(out.Retry.Op), last.retry.Rev, argument(out.Retry.Op, out.Retry.Value))
		} else {
			out.Fate = fmt.Sprintf("%s committed revision %d without writing it", lead, last.retry.Rev)
		}
	case last.status == "retried" || last.status == "done":
		out.Fate = lead + " wrote nothing"
	case last.status == "dead_lettered":
		out.Fate = lead + " failed, and the action became a dead letter" + then(": ", last.err)
	case last.status == "skipped":
		out.Fate = lead + " failed and was skipped" + then(": ", last.err)
	case last.status == "failed":
		out.Fate = lead + " failed" + then(": ", last.err)
	case last.over:
		out.Fate = lead + " ended as " + clip(last.status, shortText)
	default:
		out.Fate = "what its retry did is not in the recording"
	}
	return out
}
