package state

// stamp says when something was last changed, and by whom. Everything one
// batch writes shares one stamp; its revision is filled in when the commit is
// published, and nothing of it changes afterwards.
type stamp struct {
	rev   uint64
	owner string
}

// revision is 0 for something that never changed.
func (s *stamp) revision() uint64 {
	if s == nil {
		return 0
	}
	return s.rev
}

// cell is what a slot of the state holds: a *box, a *blank or an *entries. A
// cell is mutable while one draft owns it and frozen once published. A nil
// cell is a key that was never touched.
type cell interface{ mark() *stamp }

// box holds a value. It also keeps a value's own Copy method out of sight of
// btree, which would call it in silence.
type box[V any] struct {
	at    *stamp
	value V
}

func (b *box[V]) mark() *stamp { return b.at }

// blank is a key after a reset: no value, but a last change.
type blank struct{ at *stamp }

func (b *blank) mark() *stamp { return b.at }

// changedAt is the revision of a cell's last change.
func changedAt(c cell) uint64 {
	if c == nil {
		return 0
	}
	return c.mark().revision()
}
