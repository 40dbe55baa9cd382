package sim

import (
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
)

// settled checks that nothing leaves the outbox undelivered.
func (l *ledger) settled(ref engine.EffectRef) {
	token, ok := l.entry[ref]
	switch {
	case !ok:
		l.wrong("effect %s is settled, and there is none", ref)
	case len(l.delivered[token]) == 0:
		l.wrong("effect %s (%s) is settled, and nobody delivered it", ref, token)
	}
}

// delivers notes what the receiver of effects got.
func (l *ledger) delivers(token string, id effects.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Delivered++
	if !l.landed[token] {
		l.wrong("effect %s (%s) is delivered, and its commit did not land", token, id)
	}
	if l.delivered[token] == nil {
		l.delivered[token] = map[string]int{}
	}
	l.delivered[token][id.String()]++
	if len(l.delivered[token]) > 1 {
		l.wrong("effect %s is delivered under several ids: %v", token, slices.Sorted(maps.Keys(l.delivered[token])))
	}
	if n := l.delivered[token][id.String()]; n > 1 {
		l.stats.Duplicates++
	}
}

// undelivered returns the tokens of durable effects that are still owed.
func (l *ledger) undelivered() (owed []string) {
	for t := range l.owed {
		if len(l.delivered[t]) == 0 {
			owed = append(owed, t)
		}
	}
	slices.Sort(owed)
	return owed
}
