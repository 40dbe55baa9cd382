package state

import (
	"fmt"

	"github.com/ddd26017/fixpoint/internal/enum"
)

// Update is one pending change to one key, or to entries of a table. It is an
// immutable value: it may be kept, committed more than once and shared between
// goroutines. The zero Update changes nothing.
type Update struct {
	d    *def
	op   op // nil for a reset
	verb verb
}

// verb says what an update does; it is also an index of verbs.
type verb uint8

const (
	verbApply verb = iota
	verbAppend
	verbReplace
	verbImport
	verbReset
	verbAdd // this one and those below are about entries
	verbPut
	verbDelete
	verbRemove
)

var verbs = enum.Names{Texts: []string{"apply", "append", "replace", "import", "reset", "add", "put", "delete", "remove"}}

// op applies an update.
type op interface {
	// apply returns the cell after the update. owned says that cur belongs to
	// the draft and may be changed in place.
	apply(cur cell, owned bool, at *stamp) (cell, error)
	arg() any // for others to keep
}

// entryOp is the op of an update of entries.
type entryOp interface {
	op
	count() int
	entry(i int) any              // the key of a touched entry
	entries() any                 // all of them, for others to keep
	changed(c cell, i int) *stamp // its last change
}

// alone reports a touch that wants the key, or the entries, to itself.
func (u *Update) alone() bool {
	switch u.verb {
	case verbAppend, verbAdd:
		return false
	case verbApply:
		return u.d.merge == Exclusive
	}
	return true
}

// Key returns the key that the update changes, nil for the zero Update and for
// one of a zero handle.
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
	switch o, ok := u.op.(entryOp); {
	case !ok:
		return nil
	case o.count() == 1:
		return o.entry(0)
	default:
		return o.entries()
	}
}

// Op returns what the update does: "apply", "append", "replace", "put",
// "delete", "add", "remove", "reset" or "import"; empty for the zero Update.
func (u Update) Op() string {
	if u.d == nil {
		return ""
	}
	return verbs.Text("verb", uint8(u.verb))
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
	at, arg := "", ""
	if e := u.Entry(); e != nil {
		at = "[" + entryText(e) + "]"
	}
	if a := u.Arg(); a != nil {
		arg = fmt.Sprint(a)
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

// importOp builds a decoded cell.
type importOp func(at *stamp) cell

func (o importOp) apply(_ cell, _ bool, at *stamp) (cell, error) { return o(at), nil }
func (o importOp) arg() any                                      { return nil }
