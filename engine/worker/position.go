package worker

import (
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the name of the plugin that the engines of workers have.
const Name = "worker"

// Position is what a thread's own state knows of its inbox. It commits together with the
// start of the run that an activation makes, or with its decisions, which is why each is
// applied exactly once.
type Position struct {
	Inbox string   `json:"inbox"`           // the inbox that the numbers are of
	Next  uint64   `json:"next"`            // activations from here on are new
	Open  []uint64 `json:"open,omitempty"`  // activations before Next that are not applied yet, sorted
	Seq   uint64   `json:"seq"`             // the activation that started the last run
	Run   string   `json:"run"`             // that run
	Agent string   `json:"agent"`           // that it was started for
	Tries int      `json:"tries,omitempty"` // how often the run was taken up after a worker had failed
	Moved bool     `json:"moved,omitempty"` // a worker that shut down left it to others: the next time is no failure
}

// Place is the key that holds a thread's position. Only workers write it.
var Place = state.NewCell("worker.position", state.Options[Position]{
	Scope: state.ScopeThread,
	Clone: func(p Position) Position { p.Open = slices.Clone(p.Open); return p },
})

// Plugin returns the plugin that registers Place. Config.Engine gets it with its
// configuration; an engine that only reads threads of workers may have it too.
func Plugin() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error { r.Key(Place); return nil })
}

// placeOf returns the position of a thread, which is new when it is about another inbox:
// that of a thread it was forked from, or one that was deleted.
func placeOf(snap *state.Snapshot, b *box) Position {
	p := Place.Get(snap)
	if p.Inbox != b.Inbox {
		p.Inbox, p.Next, p.Open, p.Seq = b.Inbox, 1, nil, 0
	}
	return p
}

func (p Position) applied(seq uint64) bool {
	_, open := slices.BinarySearch(p.Open, seq)
	return seq < p.Next && !open
}

// apply returns the position after the activations were applied. Those that b shows as
// neither pending nor applied are done in some other way, and need no mark.
func (p Position) apply(b *box, seqs ...uint64) Position {
	next := max(p.Next, slices.Max(seqs)+1)
	var open []uint64
	for _, e := range b.Pending {
		if e.Seq < next && !p.applied(e.Seq) && !slices.Contains(seqs, e.Seq) {
			open = append(open, e.Seq)
		}
	}
	p.Next, p.Open = next, open
	return p
}
