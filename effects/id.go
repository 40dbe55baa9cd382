package effects

import (
	"cmp"
	"context"
	"fmt"
	"path"
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
	// What cannot be read, or is spelt another way, does not come back as the same text.
	head, index := path.Split(text)
	run, revision := path.Split(strings.TrimSuffix(head, "/"))
	id := ID{Run: strings.TrimSuffix(run, "/")}
	id.Revision, _ = strconv.ParseUint(revision, 10, 64)
	id.Index, _ = strconv.Atoi(index)
	if id.Run == "" || id.Index < 0 || id.String() != text {
		return ID{}, fmt.Errorf("%w %q; want run/revision/index", ErrBadID, text)
	}
	return id, nil
}

// after reports whether id belongs to a later commit than other, or later into the same one.
func (id ID) after(other ID) bool {
	return id.Run == other.Run && cmp.Or(cmp.Compare(id.Revision, other.Revision), cmp.Compare(id.Index, other.Index)) > 0
}

// MarshalText writes what String returns.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what [ParseID] accepts.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// IDFrom returns the id of the effect being delivered, from the context a handler got.
func IDFrom(ctx context.Context) (ID, bool) {
	id, ok := ctx.Value(idKey{}).(ID)
	return id, ok
}

type idKey struct{}
