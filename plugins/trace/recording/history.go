package recording

import (
	"cmp"
	"slices"
	"sort"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// thread is what is known of the state of a thread: its commits, and what runs found.
type thread struct {
	id      string
	commits []*commit // by revision
	bases   []*baseline
	keys    map[string]*keyLog
	actions map[uint64]*commit // that ran an action which was not told of yet
	waiting []*conflict        // for the commit that they are about
	newest  uint64
	last    *run
}

// keyLog is who touched a key.
type keyLog struct {
	all       []touch // by revision
	whole     []touch // those of the key as a whole, if it has entries
	entries   map[string]*[]touch
	conflicts []*conflict
}

// touch is a commit that has something to do with a key or an entry.
type touch struct {
	c      *commit
	change int32 // the last of its changes there; -1 for none
	length int32 // of a list after it; -1 for unknown
}

// threadOf returns the thread of a run that is new. A run that finds an older state than
// the thread has is on another thread of that id.
func (r *Recording) threadOf(h engine.Header, starts bool) *thread {
	t := r.threads[h.Thread]
	if t != nil && !(starts && h.Revision < t.newest && t.last != nil && h.Time.After(t.last.last)) {
		return t
	}
	t = &thread{id: r.unique("thread ", h.Thread), keys: map[string]*keyLog{}, actions: map[uint64]*commit{}}
	r.threads[h.Thread] = t
	r.order = append(r.order, t)
	return t
}

// base takes in the state that a run found.
func (r *Recording) base(x *run, b engine.Base, h engine.Header, starts bool) {
	x.thread.last = x
	x.BaseRev = h.Revision
	x.resets, x.begins = h.Revision, starts
	if b.Found == nil {
		return
	}
	x.BaseRev, x.resets = b.Found.Revision, b.Found.Revision
	x.baseline, x.found = r.baseOf(b.Found)
	x.Base = x.baseline.changes
	for _, f := range x.found {
		r.sorts[f.key] = append(r.sorts[f.key], x)
	}
	x.thread.found(x.baseline)
	for _, e := range b.Found.Entries {
		if starts && e.Scope == state.ScopeRun {
			x.cleared = append(x.cleared, e.Name)
		}
	}
}

func (t *thread) found(b *baseline) {
	i, _ := slices.BinarySearchFunc(t.bases, b.rev, func(b *baseline, rev uint64) int { return cmp.Compare(b.rev, rev) })
	t.bases = slices.Insert(t.bases, i, b)
	t.newest = max(t.newest, b.rev)
}

// rebase takes in what a run found that went on. If revisions are missing before it, a
// commit of nobody stands for what they changed.
func (r *Recording) rebase(x *run, b engine.Base, h engine.Header) {
	t := x.thread
	t.last = x
	if b.Found == nil || len(t.untold(t.baseAt(b.Found.Revision).rev, b.Found.Revision)) == 0 {
		return
	}
	fresh, _ := r.baseOf(b.Found)
	was := t.state(fresh.rev)
	is := newBuilder(fresh.changes).done()
	t.found(fresh)
	var changes []Change
	for _, key := range sortedKeys(was.Keys, is.Keys) {
		changes = append(changes, difference(key, was.Keys[key], is.Keys[key])...)
	}
	c := &commit{Commit: Commit{Run: x.ID, Rev: fresh.rev, At: r.micros(h.Time), Step: h.Step, Writes: []Write{}, Changes: changes}, run: x, untold: true}
	if len(changes) > 0 {
		r.insert(t, c)
	}
}

// clear adds the commit by which the engine clears what belongs to a run, if it did:
// nobody tells of it.
func (r *Recording) clear(x *run, first *commit) {
	base, cleared := x.resets, x.cleared
	x.begins, x.cleared = false, nil
	free := x.thread.untold(base, first.Rev-min(first.Rev, 1))
	if len(free) == 0 || len(cleared) == 0 && (first.Rev != base+2 || r.missing() > 0) {
		return
	}
	c := &commit{Commit: Commit{Run: x.ID, Rev: free[0].From, At: x.Start, Writes: []Write{}, Changes: []Change{}}, run: x, reset: true}
	for _, key := range cleared {
		c.Changes = append(c.Changes, Change{Key: key})
	}
	r.insert(x.thread, c)
}

// insert puts a commit into its thread's history and into the view.
func (r *Recording) insert(t *thread, c *commit) {
	c.thread, c.index = t, int32(len(r.commits))
	c.ID = r.unique("commit ", t.id+"@"+number(c.Rev))
	r.commits = append(r.commits, c)
	r.changed(ofCommits, &c.item)
	t.newest = max(t.newest, c.Rev)
	at := len(t.commits)
	if at > 0 && t.commits[at-1].Rev > c.Rev {
		at, _ = slices.BinarySearchFunc(t.commits, c.Rev+1, func(c *commit, rev uint64) int { return cmp.Compare(c.Rev, rev) })
	}
	t.commits = slices.Insert(t.commits, at, c)
	for _, w := range c.Writes {
		k := t.key(w.Key)
		has := r.kinds[w.Key].hasEntries()
		r.place(&k.all, c, -1)
		if w.several() {
			continue // several elements, of which the changes tell
		}
		if w.Entry != "" && has {
			r.place(k.entry(w.Entry), c, -1)
		} else if has || kindOf(w.Op) == unknownKind {
			r.placeWhole(k, c, -1)
		}
	}
	for i, ch := range c.Changes {
		k := t.key(ch.Key)
		r.place(&k.all, c, i)
		if ch.Entry != "" {
			r.place(k.entry(ch.Entry), c, i)
		} else if k.entries != nil || r.kinds[ch.Key].hasEntries() || ch.Value == "" {
			r.placeWhole(k, c, i)
		}
		// Of a store's journal nobody tells which keys are lists.
		if ch.Entry == "" && (ch.At != nil || r.kinds[ch.Key] == listKind || len(ch.Value) > 0 && ch.Value[0] == '[') {
			r.measure(t, ch.Key, k, c)
		}
	}
	r.attach(t, c)
}

func (t *thread) key(name string) *keyLog {
	k := t.keys[name]
	if k == nil {
		k = &keyLog{}
		t.keys[name] = k
	}
	return k
}

func (k *keyLog) entry(name string) *[]touch {
	list := k.entries[name]
	if list == nil {
		list = &[]touch{}
		if k.entries == nil {
			k.entries = map[string]*[]touch{}
		}
		k.entries[name] = list
	}
	return list
}

// placeWhole adds the commit to those that touch the key as a whole.
func (r *Recording) placeWhole(k *keyLog, c *commit, change int) {
	n := len(k.whole)
	r.place(&k.whole, c, change)
	if n < len(k.whole) && k.all[len(k.all)-1].c != c { // it comes late
		for _, list := range k.entries {
			at := sort.Search(len(*list), func(i int) bool { return (*list)[i].c.Rev > c.Rev })
			r.afterwards((*list)[at:])
		}
	}
}

// afterwards has everybody hear of the first commits of a list: somebody else is now
// known to have been before them.
func (r *Recording) afterwards(list []touch) {
	for i := 0; i < len(list) && list[i].c.Rev == list[0].c.Rev; i++ {
		r.changed(ofCommits, &list[i].c.item)
	}
}

// place adds the commit to a list, in order of revision.
func (r *Recording) place(list *[]touch, c *commit, change int) {
	l := *list
	at := len(l)
	for at > 0 && l[at-1].c.Rev > c.Rev {
		at--
	}
	if at > 0 && l[at-1].c == c {
		if change >= 0 {
			l[at-1].change = int32(change)
		}
		return
	}
	r.afterwards(l[at:])
	*list = slices.Insert(l, at, touch{c, int32(change), -1})
}

// measure finds out how long a list was before something was appended, and what follows
// from that for the commits after it.
func (r *Recording) measure(t *thread, name string, k *keyLog, c *commit) {
	i := len(k.all) - 1
	for i >= 0 && k.all[i].c != c {
		i--
	}
	for ; i >= 0 && i < len(k.all); i++ {
		at := &k.all[i]
		if at.change < 0 {
			continue
		}
		ch := &at.c.Changes[at.change]
		before := 0
		if ch.At != nil {
			before = t.lengthBefore(name, k, i)
			if *ch.At != before {
				ch.At = &before // a new one: views have the other
				r.changed(ofCommits, &at.c.item)
			}
		}
		at.length = int32(before + lengthOf(ch.Value))
	}
}

func lengthOf(j inference.JSON) int { return len(parts([]byte(j))) }

// lengthBefore is the length of a list before the i-th touch of its key.
func (t *thread) lengthBefore(name string, k *keyLog, i int) int {
	rev := k.all[i].c.Rev
	b := t.baseAt(rev - min(rev, 1))
	for i--; i >= 0; i-- {
		if at := k.all[i]; at.length >= 0 && at.c.Rev >= b.rev {
			return int(at.length)
		} else if at.length >= 0 && len(t.untold(at.c.Rev, b.rev)) == 0 {
			return int(at.length)
		}
	}
	for _, c := range b.of(name) {
		return lengthOf(c.Value)
	}
	return 0
}

// at returns the commit of a revision, or nil.
func (t *thread) at(rev uint64) *commit {
	i, ok := slices.BinarySearchFunc(t.commits, rev, func(c *commit, rev uint64) int { return cmp.Compare(c.Rev, rev) })
	if !ok {
		return nil
	}
	return t.commits[i]
}

// baseAt returns the last base that somebody found at or before a revision, an empty one
// if nobody did.
func (t *thread) baseAt(rev uint64) *baseline {
	for i := len(t.bases) - 1; i >= 0; i-- {
		if t.bases[i].rev <= rev {
			return t.bases[i]
		}
	}
	return &baseline{}
}

// Revisions are revisions in a row, both included.
type Revisions struct {
	From uint64
	To   uint64
}

// String returns "revision 3" or "revisions 3 to 5".
func (g Revisions) String() string { return revisions(g.From, g.To) }

// untold are the revisions after from, up to to, that no commit is known of.
func (t *thread) untold(from, to uint64) (out []Revisions) {
	i, _ := slices.BinarySearchFunc(t.commits, from+1, func(c *commit, rev uint64) int { return cmp.Compare(c.Rev, rev) })
	next := from + 1
	for ; i < len(t.commits) && t.commits[i].Rev <= to; i++ {
		if rev := t.commits[i].Rev; rev >= next {
			if rev > next {
				out = append(out, Revisions{next, rev - 1})
			}
			next = rev + 1
		}
	}
	if next <= to {
		out = append(out, Revisions{next, to})
	}
	return out
}
