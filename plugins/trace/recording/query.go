package recording

import (
	"errors"
	"fmt"
	"slices"

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
