package state

import (
	"cmp"
	"fmt"
	"slices"
)

// draft is the next version of a state while it is being built: which batches
// take part, and the new cells. It belongs to one attempt of one commit and
// is reused afterwards.
type draft struct {
	schema   *Schema
	base     *Snapshot
	slots    []slotState // by slot
	seen     []int       // slots whose cells the outcome depends on
	steps    []step      // updates of accepted batches, in order
	stamps   []stamp     // of those of one owner, in a row
	rejected []Rejection
}

// step is an update that takes part: its place in the call, its slot, and its stamp.
type step struct{ batch, update, slot, by int }

// slotState is what a draft knows of a slot.
type slotState struct {
	claim
	seen   bool
	held   int           // rejected batch that holds back others (ordered keys)
	claims map[any]claim // by entry
	next   cell          // the new cell, owned by the draft
}

// claim says which accepted batch touched something last, and which has it
// for itself. Batches count from 1; 0 is none.
type claim struct{ last, alone int }

// claimsKept is how large a map of claims may be to be used again, as clearing
// it costs as much as it ever held.
const claimsKept = 1024

func (s *Schema) draft(base *Snapshot) *draft {
	d, ok := s.pool.Get().(*draft)
	if !ok {
		d = &draft{schema: s, slots: make([]slotState, len(s.defs))}
	}
	d.base = base
	return d
}

// release makes the draft ready for reuse.
func (d *draft) release() {
	for _, slot := range d.seen {
		claims := d.slots[slot].claims
		switch n := len(claims); {
		case n > claimsKept:
			claims = nil
		case n > 0:
			clear(claims)
		}
		d.slots[slot] = slotState{claims: claims}
	}
	d.seen, d.steps = d.seen[:0], d.steps[:0]
	d.base, d.stamps, d.rejected = nil, nil, nil
	d.schema.pool.Put(d)
}

func (d *draft) look(k *def) (int, *slotState, error) {
	slot, ok := d.schema.slot(k)
	if !ok {
		return 0, nil, fmt.Errorf("%w: %q is not registered with this store", ErrUnknownKey, cmp.Or(k.name, "a key without a name"))
	}
	s := &d.slots[slot]
	if !s.seen {
		s.seen = true
		d.seen = append(d.seen, slot)
	}
	return slot, s, nil
}

// decide splits the batches into accepted and rejected ones. It runs no user
// code.
func (d *draft) decide(batches []Batch) error {
	stamps := 0
	for i := range batches {
		b, first := &batches[i], len(d.steps)
		lost, err := d.against(i, batches)
		switch {
		case err != nil:
			return &BatchError{i, b.Owner, err}
		case lost == nil:
			if touches := len(d.steps) > first; touches && (first == 0 || batches[d.steps[first-1].batch].Owner != b.Owner) {
				stamps++
			}
			d.claim(batches, d.steps[first:], stamps-1)
			continue
		}
		if d.rejected == nil {
			d.rejected = make([]Rejection, 0, len(batches)-i)
		}
		d.rejected = append(d.rejected, Rejection{i, lost})
		for _, at := range d.steps[first:] {
			if s := &d.slots[at.slot]; s.held == 0 {
				s.held = i + 1
			}
		}
		d.steps = d.steps[:first]
	}
	d.stamps = make([]stamp, stamps)
	return nil
}

// against returns the conflict that rejects batch i, if there is one. The
// updates of the batch become steps.
func (d *draft) against(i int, batches []Batch) (lost *ConflictError, err error) {
	b, since := &batches[i], uint64(0)
	if b.Base != nil {
		if b.Base.origin != d.base.origin {
			return nil, fmt.Errorf("%w: the snapshot is of another store", ErrStale)
		}
		since = b.Base.rev
	}
	lose := func(k *def, entry any, winner string) {
		if lost == nil {
			lost = &ConflictError{Key: k.name, Entry: entryText(entry), Winner: winner, Loser: b.Owner}
		}
	}
	// read is about a whole key that must be as it was in the base.
	read := func(k *def, slot int, s *slotState) {
		if at := lastChange(d.base.at(slot)); b.Base != nil && at.revision() > since {
			lose(k, nil, at.owner)
		} else if s.last != 0 {
			lose(k, nil, batches[s.last-1].Owner)
		}
	}
	for _, r := range b.Reads {
		k := defOf(r)
		slot, s, err := d.look(k)
		if err != nil {
			return nil, err
		}
		read(k, slot, s)
	}
	d.steps = slices.Grow(d.steps, len(b.Updates))
	for n := range b.Updates {
		u := &b.Updates[n]
		if u.d == nil {
			continue
		}
		slot, s, err := d.look(u.d)
		if err != nil {
			return nil, err
		}
		d.steps = append(d.steps, step{batch: i, update: n, slot: slot})
		alone := u.alone()
		switch {
		case s.alone != 0:
			lose(u.d, nil, batches[s.alone-1].Owner)
		case s.held != 0 && u.d.ordered:
			lose(u.d, nil, batches[s.held-1].Owner)
		case u.verb >= verbAdd:
			touch := u.op.(entryOp)
			for n := range touch.count() {
				var at *stamp
				if alone && b.Base != nil {
					at = touch.changed(d.base.at(slot), n)
				}
				var held claim
				if s.last != 0 {
					held = s.claims[touch.entry(n)]
				}
				switch {
				case at.revision() > since:
					lose(u.d, touch.entry(n), at.owner)
				case held.alone != 0:
					lose(u.d, touch.entry(n), batches[held.alone-1].Owner)
				case held.last != 0 && alone:
					lose(u.d, touch.entry(n), batches[held.last-1].Owner)
				}
			}
		case alone:
			read(u.d, slot, s)
		}
	}
	return lost, nil
}

// claim marks what the steps of an accepted batch touch, and gives them their stamp.
func (d *draft) claim(batches []Batch, steps []step, stamp int) {
	for i := range steps {
		at := &steps[i]
		at.by = stamp
		u, s, by := &batches[at.batch].Updates[at.update], &d.slots[at.slot], at.batch+1
		s.last = by
		switch alone, whole := u.alone(), u.verb < verbAdd; {
		case whole && alone:
			s.alone = by
		case whole || by == len(batches): // no entries, or no batch comes after
		default:
			if s.claims == nil {
				s.claims = map[any]claim{}
			}
			touch := u.op.(entryOp)
			for n := range touch.count() {
				if e := touch.entry(n); alone {
					s.claims[e] = claim{by, by}
				} else {
					s.claims[e] = claim{by, s.claims[e].alone}
				}
			}
		}
	}
}

// apply takes the steps. User code runs here.
func (d *draft) apply(batches []Batch) (err error) {
	var at step
	fault := func(e *ApplyError) error {
		b := &batches[at.batch]
		u := b.Updates[at.update]
		e.Key, e.Entry = u.d.name, entryText(u.Entry())
		return &BatchError{at.batch, b.Owner, e}
	}
	defer func() {
		if v := recover(); v != nil {
			err = fault(panicked(v))
		}
	}()
	for _, at = range d.steps {
		b, s, by := &batches[at.batch], &d.slots[at.slot], &d.stamps[at.by]
		u := &b.Updates[at.update]
		by.owner = b.Owner
		cur, owned := s.next, s.next != nil
		switch {
		case u.verb == verbReset:
			s.next = &blank{by}
			continue
		case u.verb == verbReplace:
			cur, owned = nil, false
		case !owned:
			cur = d.base.at(at.slot)
		}
		if s.next, err = u.op.apply(cur, owned, by); err != nil {
			return fault(&ApplyError{Err: err})
		}
	}
	return nil
}

// standsOn reports whether the outcome would be the same on now: every cell
// it depends on is the one it was.
func (d *draft) standsOn(now *Snapshot) bool {
	return now == d.base || !slices.ContainsFunc(d.seen, func(slot int) bool {
		return now.at(slot) != d.base.at(slot)
	})
}

// assemble returns from with the new cells in place.
func (d *draft) assemble(from *Snapshot) *Snapshot {
	next := &Snapshot{origin: from.origin, schema: from.schema, rev: from.rev + 1, kept: from.kept}
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
