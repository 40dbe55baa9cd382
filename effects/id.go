package effects

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// ID identifies one delivery of one effect for ever: the run that emitted it, the revision its commit made, and its
// position among that commit's effects. A receiver or an outbox that remembers ids can drop repeats.
type ID struct {
	Run      string
	Revision uint64
	Index    int
}

// String returns "run/revision/index".
func (id ID) String() string {
	return id.Run + "/" + strconv.FormatUint(id.Revision, 10) + "/" + strconv.Itoa(id.Index)
}

// ParseID reads what String writes. The run may contain slashes but must not be empty. It accepts no other spelling of
// an id, so two texts that parse are equal exactly when their ids are. The error matches [ErrBadID].
func ParseID(text string) (ID, error) {
	head, index, ok1 := cutLast(text)
	run, revision, ok2 := cutLast(head)
	if ok1 && ok2 && run != "" {
		rev, err1 := strconv.ParseUint(revision, 10, 64)
		i, err2 := strconv.Atoi(index)
		id := ID{Run: run, Revision: rev, Index: i}
		if err1 == nil && err2 == nil && i >= 0 && id.String() == text {
			return id, nil
		}
	}
	return ID{}, fmt.Errorf("%w %q; want run/revision/index", ErrBadID, text)
}

// MarshalText writes what String returns.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what [ParseID] accepts.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// IDFrom returns the id of the effect being delivered, from the context a handler got.
func IDFrom(ctx context.Context) (ID, bool) {
	d, ok := ctx.Value(deliveringKey{}).(*delivering)
	if !ok {
		return ID{}, false
	}
	return d.id, true
}

type deliveringKey struct{}

// delivering is what a handler's context knows. The parent is the delivery that the dispatching code itself ran in.
type delivering struct {
	id     ID
	by     *Dispatcher
	parent *delivering
}

func withDelivering(ctx context.Context, d *Dispatcher, id ID) context.Context {
	parent, _ := ctx.Value(deliveringKey{}).(*delivering)
	return context.WithValue(ctx, deliveringKey{}, &delivering{id: id, by: d, parent: parent})
}

func inside(ctx context.Context, d *Dispatcher) bool {
	at, _ := ctx.Value(deliveringKey{}).(*delivering)
	for ; at != nil; at = at.parent {
		if at.by == d {
			return true
		}
	}
	return false
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
