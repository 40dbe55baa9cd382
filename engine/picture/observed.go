package picture

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// Observed collects from the events of runs what hooks did, which may be more than
// they declare. Let it observe an engine, or feed it the events of a trace. The zero
// Observed has seen nothing and is ready. It must not be copied, and is safe for
// concurrent use. Its size depends on the number of hooks and keys, not on that of
// events.
type Observed struct {
	mu        sync.Mutex
	hooks     map[string]*ObservedHook
	elsewhere map[elsewhere]int
}

// ObservedHook is what a hook did.
type ObservedHook struct {
	Hook   string          // id, as in the manifest
	Runs   int             // in how many phases it ran; running again after a conflict is no further run
	Writes []ObservedWrite // sorted by key
	Lost   []ObservedLoss  // sorted by key and winner
}

// ObservedWrite is what a hook wrote to a key, or wanted to write when it lost it.
type ObservedWrite struct {
	Key     string
	Commits int // that have a write to the key
	// Entries are those of a table or set that were written, sorted, at most 100: if
	// there are more, Whole is set, as it is when the key was written as a whole.
	Entries []string
	Whole   bool
	// Alone says that a write wants the key or entry for itself even if the key is
	// Commutative: a reset, a removal, a replaced log or an entry that was put.
	Alone bool
}

// ObservedLoss is how often a hook lost a key to a plugin and had to run again.
type ObservedLoss struct {
	Key    string
	Winner string // plugin
	Times  int
}

// elsewhere is where a command that is no hook's lost a key.
type elsewhere struct {
	phase phase.Phase
	key   string
	loser string // plugin
}

// loss is how often that happened.
type loss struct {
	elsewhere
	times int
}

const entriesKept = 100

// Observe takes note of an event. It implements engine.Observer.
func (o *Observed) Observe(e engine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := e.(type) {
	case engine.HookFinished:
		o.hook(e.Hook).Runs++
	case engine.Committed:
		o.commit(e)
	case engine.Conflict:
		if e.Hook == "" || e.Round > 0 {
			if o.elsewhere == nil {
				o.elsewhere = map[elsewhere]int{}
			}
			o.elsewhere[elsewhere{e.Phase, e.Key, e.Loser}]++
			return
		}
		h := o.hook(e.Hook)
		h.lose(e.Key, e.Winner)
		for _, w := range e.Lost {
			h.write(w.Key).add(w)
		}
	}
}

func (o *Observed) commit(e engine.Committed) {
	if e.Round > 0 {
		return // action handlers wrote it
	}
	type pair struct{ hook, key string }
	counted := map[pair]bool{}
	for _, w := range e.Writes {
		if w.Hook == "" {
			continue
		}
		seen, at := o.hook(w.Hook).write(w.Key), pair{w.Hook, w.Key}
		seen.add(w)
		if !counted[at] {
			counted[at] = true
			seen.Commits++
		}
	}
}

// Hooks returns what each hook that was seen did, by id. What it yields is the
// caller's.
func (o *Observed) Hooks() iter.Seq[ObservedHook] {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []ObservedHook
	for _, id := range slices.Sorted(maps.Keys(o.hooks)) {
		h := *o.hooks[id]
		h.Writes, h.Lost = slices.Clone(h.Writes), slices.Clone(h.Lost)
		for i := range h.Writes {
			h.Writes[i].Entries = slices.Clone(h.Writes[i].Entries)
		}
		all = append(all, h)
	}
	return slices.Values(all)
}

// others returns the conflicts of commands that are no hook's, in order.
func (o *Observed) others() (all []loss) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, n := range o.elsewhere {
		all = append(all, loss{at, n})
	}
	slices.SortFunc(all, func(a, b loss) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.key, b.key), cmp.Compare(a.loser, b.loser))
	})
	return all
}

func (o *Observed) hook(id string) *ObservedHook {
	h := o.hooks[id]
	if h == nil {
		if o.hooks == nil {
			o.hooks = map[string]*ObservedHook{}
		}
		h = &ObservedHook{Hook: id}
		o.hooks[id] = h
	}
	return h
}

func (h *ObservedHook) write(key string) *ObservedWrite {
	i, found := slices.BinarySearchFunc(h.Writes, key, func(w ObservedWrite, key string) int { return cmp.Compare(w.Key, key) })
	if !found {
		h.Writes = slices.Insert(h.Writes, i, ObservedWrite{Key: key})
	}
	return &h.Writes[i]
}

func (h *ObservedHook) lose(key, winner string) {
	i, found := slices.BinarySearchFunc(h.Lost, ObservedLoss{Key: key, Winner: winner}, func(a, b ObservedLoss) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Winner, b.Winner))
	})
	if !found {
		h.Lost = slices.Insert(h.Lost, i, ObservedLoss{Key: key, Winner: winner})
	}
	h.Lost[i].Times++
}

func (w *ObservedWrite) add(one engine.Write) {
	switch one.Op {
	case "append", "add", "apply":
	default:
		w.Alone = true
	}
	i, found := slices.BinarySearch(w.Entries, one.Entry)
	switch {
	case one.Entry == "" || !found && len(w.Entries) == entriesKept:
		w.Whole = true
	case !found:
		w.Entries = slices.Insert(w.Entries, i, one.Entry)
	}
}

// meets reports whether both touched the same, as far as is known.
func (w *ObservedWrite) meets(other *ObservedWrite) bool {
	return w.Whole || other.Whole || slices.ContainsFunc(w.Entries, func(entry string) bool {
		_, found := slices.BinarySearch(other.Entries, entry)
		return found
	})
}
