package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// meeting is the active hooks that run on one snapshot, which are those of one tier of
// a phase, in registration order.
type meeting struct {
	phase    phase.Phase
	tier     int
	hooks    []*hook
	contests []*contest // by key
}

// hook is an active hook and what was seen of it.
type hook struct {
	engine.HookManifest
	order int // of registration
	seen  ObservedHook
}

// contest is a key that hooks of a meeting write or read, in registration order.
type contest struct {
	key              string
	merge            state.MergeStrategy
	writers, readers []*hook
}

// meetings returns all meetings in the order in which they happen, and the hooks that
// were seen but are in none of them.
func meetings(m engine.Manifest, seen *Observed) (all []*meeting, strangers []string) {
	sightings := map[string]ObservedHook{}
	if seen != nil {
		for h := range seen.Hooks() {
			sightings[h.Hook] = h
		}
	}
	for _, p := range m.Plugins {
		if !p.Active {
			continue
		}
		for _, h := range p.Hooks {
			i, found := slices.BinarySearchFunc(all, h, func(at *meeting, h engine.HookManifest) int {
				return cmp.Or(cmp.Compare(at.phase, h.Phase), cmp.Compare(at.tier, h.Tier))
			})
			if !found {
				all = slices.Insert(all, i, &meeting{phase: h.Phase, tier: h.Tier})
			}
			at := all[i]
			at.hooks = append(at.hooks, &hook{h, len(at.hooks), sightings[h.ID]})
			delete(sightings, h.ID)
		}
	}
	merges := mergeStrategies(m)
	for _, at := range all {
		at.meet(merges)
	}
	return all, slices.Sorted(maps.Keys(sightings))
}

// String names the meeting.
func (at *meeting) String() string { return fmt.Sprintf("%s, tier %d", at.phase, at.tier) }

// meet finds the keys.
func (at *meeting) meet(merges map[string]state.MergeStrategy) {
	found := map[string]*contest{}
	on := func(key string) *contest {
		c := found[key]
		if c == nil {
			c = &contest{key: key, merge: merges[key]}
			found[key] = c
			at.contests = append(at.contests, c)
		}
		return c
	}
	for _, h := range at.hooks {
		writes := slices.Clone(h.Writes)
		for _, w := range h.seen.Writes {
			if !slices.Contains(writes, w.Key) && !bookkeeping(w.Key) {
				writes = append(writes, w.Key)
			}
		}
		for _, key := range writes {
			on(key).writers = append(on(key).writers, h)
		}
		for _, key := range h.Reads {
			on(key).readers = append(on(key).readers, h)
		}
	}
	slices.SortFunc(at.contests, func(a, b *contest) int { return cmp.Compare(a.key, b.key) })
}

// mergeStrategies returns those of all keys that are known.
func mergeStrategies(m engine.Manifest) map[string]state.MergeStrategy {
	merges := map[string]state.MergeStrategy{}
	for _, k := range []state.AnyKey{engine.Transcript, engine.Usage, engine.ToolCalls, phase.RunLifecycle} {
		merges[k.Name()] = k.Merge()
	}
	for _, c := range m.Conflicts {
		merges[c.Key] = c.Merge
	}
	for _, p := range m.Plugins {
		for _, k := range p.Keys {
			merges[k.Name] = k.Merge
		}
	}
	return merges
}

// bookkeeping reports whether a key is one in which the engine itself notes what a
// command schedules and emits.
func bookkeeping(key string) bool {
	switch key {
	case "fixpoint.queue", "fixpoint.last_id", "fixpoint.effects":
		return true
	}
	return false
}

// unknown reports whether the hook declares nothing.
func (h *hook) unknown() bool { return len(h.Writes) == 0 && !h.Silent }

// observed returns what the hook was seen to write to the key, or nil.
func (h *hook) observed(key string) *ObservedWrite {
	i := slices.IndexFunc(h.seen.Writes, func(w ObservedWrite) bool { return w.Key == key })
	if i < 0 {
		return nil
	}
	return &h.seen.Writes[i]
}

// possible reports whether there are two hooks of which one could make the other run
// again on account of the key, or did.
func (c *contest) possible() bool {
	isRead := func(w *hook) bool {
		return slices.ContainsFunc(c.readers, func(r *hook) bool { return r != w })
	}
	return c.fights() || slices.ContainsFunc(c.writers, isRead)
}

// fights reports whether hooks that write the key could conflict: not if all that is
// known of one of them is that it wrote other entries.
func (c *contest) fights() bool {
	return c.merge == state.Exclusive && c.anyPair(func(a, b *hook) bool {
		declared := slices.Contains(a.Writes, c.key) && slices.Contains(b.Writes, c.key)
		return declared || c.met(a, b)
	})
}

// apart reports whether all hooks that write the key were seen to write other entries.
func (c *contest) apart() bool { return !c.anyPair(c.met) }

// met reports whether two hooks touch the same, as far as is known.
func (c *contest) met(a, b *hook) bool {
	x, y := a.observed(c.key), b.observed(c.key)
	return x == nil || y == nil || x.meets(y)
}

func (c *contest) anyPair(holds func(a, b *hook) bool) bool {
	for i, a := range c.writers {
		for _, b := range c.writers[:i] {
			if holds(a, b) {
				return true
			}
		}
	}
	return false
}

// readersByOrder parts the readers: the late ones come after a hook that writes the
// key, and so run again when it did.
func (c *contest) readersByOrder() (early, late []*hook) {
	for _, r := range c.readers {
		if slices.ContainsFunc(c.writers, func(w *hook) bool { return w.order < r.order }) {
			late = append(late, r)
		} else if slices.ContainsFunc(c.writers, func(w *hook) bool { return w != r }) {
			early = append(early, r)
		}
	}
	return early, late
}

// alone returns the hooks that were seen to want the key for themselves.
func (c *contest) alone() (all []*hook) {
	for _, w := range c.writers {
		if seen := w.observed(c.key); seen != nil && seen.Alone {
			all = append(all, w)
		}
	}
	return all
}

// all returns writers and readers once each, in registration order.
func (c *contest) all() []*hook {
	all := slices.Concat(c.writers, c.readers)
	slices.SortFunc(all, func(a, b *hook) int { return cmp.Compare(a.order, b.order) })
	return slices.Compact(all)
}

func names(hooks []*hook) string {
	ids := make([]string, len(hooks))
	for i, h := range hooks {
		ids[i] = h.ID
	}
	return strings.Join(ids, ", ")
}
