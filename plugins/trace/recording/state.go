package recording

import (
	"cmp"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonarray"
)

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

func difference(key string, was, is KeyState) (out []Change) {
	change := func(entry string, was, is Value) {
		switch {
		case is.Set && (is.JSON != was.JSON || !was.Set):
			out = append(out, Change{Key: key, Entry: entry, Value: is.JSON, Cut: is.Cut, Hidden: is.Hidden})
		case was.Set && !is.Set:
			out = append(out, Change{Key: key, Entry: entry})
		}
	}
	if was.Entries == nil && is.Entries == nil {
		change("", was.Value, is.Value)
		return out
	}
	for _, e := range sortedKeys(was.Entries, is.Entries) {
		change(e, was.Entries[e], is.Entries[e])
	}
	return out
}

// state puts the state at a revision together.
func (t *thread) state(rev uint64) State {
	base := t.baseAt(rev)
	b := newBuilder(base.changes)
	i, _ := slices.BinarySearchFunc(t.commits, base.rev+1, func(c *commit, rev uint64) int { return cmp.Compare(c.Rev, rev) })
	for ; i < len(t.commits) && t.commits[i].Rev <= rev; i++ {
		for _, ch := range t.commits[i].Changes {
			b.add(ch)
		}
	}
	s := b.done()
	s.Thread, s.Revision, s.Untold = t.id, rev, t.untold(base.rev, rev)
	return s
}

// builder puts a state together from changes.
type builder struct {
	s     State
	lists map[string][][]byte
}

func newBuilder(base []Change) *builder {
	b := &builder{s: State{Keys: map[string]KeyState{}}, lists: map[string][][]byte{}}
	for _, c := range base {
		b.add(c)
	}
	return b
}

func valueOf(c Change) Value {
	return Value{JSON: c.Value, Set: c.Value != "", Hidden: c.Hidden, Cut: c.Cut}
}

func (b *builder) add(c Change) {
	switch {
	case c.Entry != "":
		k := b.s.Keys[c.Key]
		if k.Entries == nil {
			k = KeyState{Entries: map[string]Value{}}
		}
		if v := valueOf(c); v.Set {
			k.Entries[c.Entry] = v
		} else {
			delete(k.Entries, c.Entry)
		}
		if len(k.Entries) > 0 {
			b.s.Keys[c.Key] = k
		} else {
			delete(b.s.Keys, c.Key)
		}
	case c.At != nil:
		list, ok := b.lists[c.Key]
		if !ok {
			for _, p := range parts([]byte(b.s.Keys[c.Key].Value.JSON)) {
				list = append(list, p)
			}
		}
		list = list[:min(*c.At, len(list))]
		for _, p := range parts([]byte(c.Value)) {
			list = append(list, p)
		}
		b.lists[c.Key] = list
		b.s.Keys[c.Key] = KeyState{Value: Value{Set: true}}
	case c.Value == "":
		delete(b.s.Keys, c.Key)
		delete(b.lists, c.Key)
	default:
		delete(b.lists, c.Key)
		b.s.Keys[c.Key] = KeyState{Value: valueOf(c)}
	}
}

func (b *builder) done() State {
	for key, list := range b.lists {
		b.s.Keys[key] = KeyState{Value: Value{JSON: inference.JSON(jsonarray.Join(list...)), Set: true}}
	}
	return b.s
}

func sortedKeys[V any](a, b map[string]V) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
