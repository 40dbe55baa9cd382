package postgres

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// MaxName is the largest number of bytes of a thread id, a lane, an owner or a topic. Two
// of them fit in one entry of an index.
const MaxName = 1024

func checkName(what, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("postgres: a %s of %d bytes; the limit is %d", what, len(name), MaxName)
	}
	return nil
}

// quote makes an identifier of any text that is valid as one.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal makes a text constant.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) + "'"
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kinds of what a sum is made of.
const (
	sumRecord byte = iota + 1
	sumSnapshot
	sumEffect
)

// sumOf makes the checksum of a row, which covers where the row belongs besides what is in
// it. Servers check their pages only if they were set up to.
func sumOf(kind byte, thread string, revision, index uint64, id [16]byte, at time.Time, lane string, body []byte) int32 {
	head := make([]byte, 0, 64+len(thread)+len(lane))
	head = append(head, kind)
	head = binary.BigEndian.AppendUint64(head, revision)
	head = binary.BigEndian.AppendUint64(head, index)
	head = append(head, id[:]...)
	head = binary.BigEndian.AppendUint64(head, uint64(at.Unix()))
	head = binary.BigEndian.AppendUint32(head, uint32(at.Nanosecond()))
	head = binary.BigEndian.AppendUint32(head, uint32(len(thread)))
	head = append(append(head, thread...), lane...)
	return int32(crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body))
}

// timeOf reads what a row keeps of a time, to the nanosecond.
func timeOf(seconds int64, nanos int32) time.Time { return time.Unix(seconds, int64(nanos)).UTC() }

// The times that the server can compare; others are as good as the nearest of them.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// dueOf makes a time that the server compares with its clock, which knows microseconds:
// never one that is earlier. The zero time, which is always due, is nil.
func dueOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	switch {
	case t.Before(earliest):
		t = earliest
	case t.After(latest):
		t = latest
	}
	if up := t.Truncate(time.Microsecond); !up.Equal(t) {
		t = up.Add(time.Microsecond)
	}
	t = t.UTC().Round(0)
	return &t
}

// microseconds rounds a time to live up.
func microseconds(d time.Duration) int64 {
	us := d / time.Microsecond
	if d > us*time.Microsecond {
		us++
	}
	return int64(us)
}

// CorruptError says what is damaged and where. It is of the kind store.ErrCorrupt.
type CorruptError struct {
	Schema   string
	Table    string
	Thread   string // "" where no thread is concerned or known
	Revision uint64 // 0 where none is concerned or known
	Index    uint32 // of an effect
	Reason   string
}

// Error implements error.
func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "postgres: %s.%s is damaged", e.Schema, e.Table)
	if e.Thread != "" {
		fmt.Fprintf(&b, ", thread %q", e.Thread)
	}
	if e.Revision > 0 {
		fmt.Fprintf(&b, ", revision %d", e.Revision)
	}
	if e.Table == "effects" {
		fmt.Fprintf(&b, ", index %d", e.Index)
	}
	fmt.Fprintf(&b, ": %s; restore the database from a copy", e.Reason)
	return b.String()
}

// Is reports whether target is store.ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == store.ErrCorrupt }
