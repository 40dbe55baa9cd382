package recording

import (
	"fmt"
	"slices"
	"sort"

	"github.com/ddd26017/fixpoint/inference"
)

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
