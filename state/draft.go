package state

import (
	"fmt"
	"math"
	"runtime/debug"
)

// draft is the next version of a state while it is being built: which batches
// take part, and the new cells. It belongs to one attempt of one commit and
// is reused afterwards.
type draft struct {
	schema   *Schema
	base     *Snapshot
	slots    []slotState // by slot
	seen     []int32     // slots whose cells the outcome depends on
	places   []int32     // slot of each update, in call order
	accepted []accepted  // batches that take part
	stamps   []stamp     // one per accepted batch
	rejected []Rejection
	updates  int // of the accepted batches

	batch  int // being applied
	update int // of it
}

// accepted is a batch that takes part, and where its updates begin in places.
type accepted struct{ batch, first int32 }

// slotState is what a draft knows of a slot. Batches count from 1; 0 is none.
type slotState struct {
	seen   bool
	touch  int32  // accepted batch that touched it last
	alone  int32  // accepted batch that touched the whole key exclusively
	held   int32  // rejected batch that holds back others (ordered keys)
	claims claims // accepted batches by entry
	next   cell   // the new cell, owned by the draft
}

func (s *Schema) draft(base *Snapshot) *draft {
	d, ok := s.pool.Get().(*draft)
	if !ok {
		d = &draft{schema: s, slots: make([]slotState, len(s.defs))}
	}
	d.base = base
	return d
}

// release makes the draft ready for reuse. A draft on which user code ended
// the goroutine is not released but left to the collector.
func (d *draft) release() {
	for _, slot := range d.seen {
		d.slots[slot] = slotState{}
	}
	d.seen, d.places, d.accepted = d.seen[:0], d.places[:0], d.accepted[:0]
	d.base, d.stamps, d.rejected, d.updates = nil, nil, nil, 0
	d.schema.pool.Put(d)
}

func (d *draft) takeRejected() []Rejection {
	r := d.rejected
	d.rejected = nil
	return r
}

func (d *draft) look(k *def) (*slotState, int, bool) {
	slot, ok := d.schema.slot(k)
	if !ok {
		return nil, 0, false
	}
	s := &d.slots[slot]
	if !s.seen {
		s.seen = true
		d.seen = append(d.seen, int32(slot))
	}
	return s, slot, true
}

// decide splits the batches into accepted and rejected ones. It runs no user
// code.
func (d *draft) decide(batches []Batch) error {
	for i := range batches {
		b := &batches[i]
		since := uint64(math.MaxUint64)
		if b.Base != nil {
			if b.Base.origin != d.base.origin {
				return &BatchError{i, b.Owner, fmt.Errorf("%w: the snapshot is of another store", ErrStale)}
			}
			since = b.Base.rev
		}
		first := len(d.places)
		lost, err := d.against(b, since, batches)
		if err != nil {
			return &BatchError{i, b.Owner, err}
		}
		if lost != nil {
			d.rejected = append(d.rejected, Rejection{i, lost})
			d.holdBack(b, int32(i)+1)
			continue
		}
		d.accept(b, accepted{int32(i), int32(first)}, len(batches)-i)
	}
	return nil
}

// against returns the conflict that rejects b, if there is one.
func (d *draft) against(b *Batch, since uint64, batches []Batch) (*ConflictError, error) {
	var lost *ConflictError
	lose := func(k *def, entry any, winner string) {
		if lost == nil {
			lost = &ConflictError{Key: k.name, Entry: entryText(entry), Winner: winner, Loser: b.Owner}
		}
	}
	for _, r := range b.Reads {
		k := defOf(r)
		if k == nil {
			return nil, fmt.Errorf("%w: a declared read is a zero handle", ErrUnknownKey)
		}
		s, slot, ok := d.look(k)
		if !ok {
			return nil, unknownKey(k)
		}
		if c := d.base.at(slot); changedAt(c) > since {
			lose(k, nil, c.mark().owner)
		} else if s.touch != 0 {
			lose(k, nil, batches[s.touch-1].Owner)
		}
	}
	for i := range b.Updates {
		u := &b.Updates[i]
		if u.d == nil {
			d.places = append(d.places, 0)
			continue
		}
		s, slot, ok := d.look(u.d)
		if !ok {
			return nil, unknownKey(u.d)
		}
		d.places = append(d.places, int32(slot))
		if lost != nil {
			continue // still look for unknown keys
		}
		c := d.base.at(slot)
		switch {
		case s.alone != 0:
			lose(u.d, nil, batches[s.alone-1].Owner)
		case u.d.ordered && s.held != 0:
			lose(u.d, nil, batches[s.held-1].Owner)
		case u.kind.entries():
			touch := u.op.(entryTouch)
			if u.kind.exclusive() {
				if entry, by, changed := touch.changedSince(c, since); changed {
					lose(u.d, entry, by)
					continue
				}
			}
			if s.claims != nil {
				if entry, batch, taken := touch.taken(s.claims, u.kind.exclusive()); taken {
					lose(u.d, entry, batches[batch-1].Owner)
				}
			}
		case u.kind.exclusive():
			if changedAt(c) > since {
				lose(u.d, nil, c.mark().owner)
			} else if s.touch != 0 {
				lose(u.d, nil, batches[s.touch-1].Owner)
			}
		}
	}
	return lost, nil
}

// accept claims what b touches; left counts b and the batches after it.
func (d *draft) accept(b *Batch, a accepted, left int) {
	d.accepted = append(d.accepted, a)
	batch := a.batch + 1
	for i := range b.Updates {
		u := &b.Updates[i]
		if u.d == nil {
			continue
		}
		d.updates++
		s := &d.slots[d.places[int(a.first)+i]]
		s.touch = batch
		switch {
		case u.kind.entries():
			if left > 1 {
				s.claims = u.op.(entryTouch).claim(s.claims, batch, u.kind.exclusive(), left)
			}
		case u.kind.exclusive():
			s.alone = batch
		}
	}
}

// holdBack marks the ordered keys of a rejected batch.
func (d *draft) holdBack(b *Batch, batch int32) {
	for i := range b.Updates {
		if k := b.Updates[i].d; k != nil && k.ordered {
			if s, _, _ := d.look(k); s.held == 0 {
				s.held = batch
			}
		}
	}
}

func unknownKey(k *def) error {
	if k.name == "" {
		return fmt.Errorf("%w: an update was made by a zero handle", ErrUnknownKey)
	}
	return fmt.Errorf("%w: %q is not registered with this store", ErrUnknownKey, k.name)
}

// apply runs the updates of the accepted batches. User code runs here.
func (d *draft) apply(batches []Batch) (err error) {
	defer func() {
		if v := recover(); v != nil {
			cause, _ := v.(error)
			err = d.fault(batches, &ApplyError{Value: v, Err: cause, Stack: debug.Stack()})
		}
	}()
	d.stamps = make([]stamp, len(d.accepted))
	for j, a := range d.accepted {
		b := &batches[a.batch]
		at := &d.stamps[j]
		at.owner, d.batch = b.Owner, int(a.batch)
		for d.update = range b.Updates {
			u := &b.Updates[d.update]
			if u.d == nil {
				continue
			}
			slot := int(d.places[int(a.first)+d.update])
			s := &d.slots[slot]
			if u.kind == kindReset {
				s.next = u.d.impl.cleared(at)
				continue
			}
			cur, owned := s.next, s.next != nil
			if !owned {
				cur = d.base.at(slot)
			}
			if s.next, err = u.op.apply(cur, owned, at); err != nil {
				return d.fault(batches, &ApplyError{Err: err})
			}
		}
	}
	return nil
}

func (d *draft) fault(batches []Batch, e *ApplyError) error {
	b := &batches[d.batch]
	u := b.Updates[d.update]
	e.Key, e.Entry = u.d.name, entryText(u.Entry())
	return &BatchError{d.batch, b.Owner, e}
}

// standsOn reports whether the outcome would be the same on now: every cell
// it depends on is the one it was.
func (d *draft) standsOn(now *Snapshot) bool {
	for _, slot := range d.seen {
		if now.at(int(slot)) != d.base.at(int(slot)) {
			return false
		}
	}
	return true
}

// assemble returns from with the new cells in place. It may be called again
// for another from.
func (d *draft) assemble(from *Snapshot) *Snapshot {
	next := &Snapshot{origin: from.origin, schema: from.schema}
	next.allot(len(from.root))
	copy(next.root, from.root)
	for _, slot := range d.seen {
		if c := d.slots[slot].next; c != nil {
			at := slot >> chunkBits
			if next.root[at] == from.root[at] {
				own := *from.root[at]
				next.root[at] = &own
			}
			next.root[at][slot&chunkMask] = c
		}
	}
	return next
}
