package state

import "fmt"

// Update is one pending change to one key, or to entries of a table. It is an
// immutable value: it may be kept, committed more than once and shared between
// goroutines. The zero Update changes nothing.
type Update struct {
	d    *def
	op   op
	kind kind
}

// kind says what an update touches, and how.
type kind uint8

const (
	kindShared         kind = iota // the whole key, beside others
	kindExclusive                  // the whole key, alone
	kindReset                      // the whole key, alone; op is nil
	kindEntry                      // entries, beside others
	kindEntryExclusive             // entries, alone
)

func (k kind) entries() bool   { return k >= kindEntry }
func (k kind) exclusive() bool { return k != kindShared && k != kindEntry }

// op applies an update.
type op interface {
	// apply returns the cell after the update. owned says that cur belongs to
	// the draft and may be changed in place.
	apply(cur cell, owned bool, at *stamp) (cell, error)
	name() string
	arg() any // for others to keep
	entry() any
}

// Key returns the key that the update changes, nil for the zero Update.
func (u Update) Key() AnyKey {
	if u.d == nil {
		return nil
	}
	return u.d.handle
}

// Entry returns the table key or the set element that the update touches, a
// slice of them when a set update has more than one, and nil when it touches
// the whole key.
func (u Update) Entry() any {
	if u.op == nil {
		return nil
	}
	return u.op.entry()
}

// Op returns what the update does: "apply", "append", "replace", "put",
// "delete", "add", "remove", "reset" or "import"; empty for the zero Update.
func (u Update) Op() string {
	switch {
	case u.d == nil:
		return ""
	case u.op == nil:
		return "reset"
	}
	return u.op.name()
}

// Arg returns the argument for a log or a trace: a copy if the key has a way
// to copy it. It is nil for updates without one.
func (u Update) Arg() any {
	if u.op == nil {
		return nil
	}
	return u.op.arg()
}

// String returns a short text form, such as `calls[c1].put(running)`.
func (u Update) String() string {
	if u.d == nil {
		return "no update"
	}
	at := ""
	if e := u.Entry(); e != nil {
		at = "[" + entryText(e) + "]"
	}
	arg := ""
	if a := u.Arg(); a != nil {
		arg = fmt.Sprintf("%v", a)
	}
	return fmt.Sprintf("%s%s.%s(%s)", u.d.name, at, u.Op(), arg)
}

func entryText(e any) string {
	if e == nil {
		return ""
	}
	if text := fmt.Sprint(e); text != "" {
		return text
	}
	return `""` // the empty text means the whole key
}

func resetUpdate(d *def) Update {
	if d == nil {
		return unregistered()
	}
	return Update{d: d, kind: kindReset}
}

// unregistered is an update of a zero handle. It belongs to a key that no
// store knows, so that committing it is an error and not silence.
func unregistered() Update {
	d := &keyDef[struct{}, struct{}]{apply: lastWrite[struct{}]}
	return d.handleAs(d).Reset()
}

type applyOp[V, U any] struct {
	d *keyDef[V, U]
	u U
}

func (o *applyOp[V, U]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	d := o.d
	next, err := o.next(cur)
	if err != nil {
		return nil, err
	}
	if d.cfg.Check != nil {
		if err := d.cfg.Check(d.current(cur), d.copied(next)); err != nil {
			return nil, err
		}
	}
	if owned {
		if b, ok := cur.(*box[V]); ok {
			b.at, b.value = at, next
			return b, nil
		}
	}
	return &box[V]{at, next}, nil
}

func (o *applyOp[V, U]) next(cur cell) (V, error) {
	d := o.d
	if d.last {
		var unused V
		return d.apply(unused, o.u)
	}
	u := o.u
	if d.cloneUp != nil && !d.tame {
		u = d.cloneUp(u) // a reducer may change it, and may run again
	}
	return d.apply(d.current(cur), u)
}

func (o *applyOp[V, U]) name() string { return o.d.verb }
func (o *applyOp[V, U]) entry() any   { return nil }

func (o *applyOp[V, U]) arg() any {
	if o.d.cloneUp != nil {
		return o.d.cloneUp(o.u)
	}
	return o.u
}

// importOp builds a decoded cell.
type importOp func(at *stamp) cell

func (o importOp) apply(_ cell, _ bool, at *stamp) (cell, error) { return o(at), nil }
func (o importOp) name() string                                  { return "import" }
func (o importOp) entry() any                                    { return nil }
func (o importOp) arg() any                                      { return nil }
