package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// MaxName is the largest number of bytes of a thread id, a lane or an owner.
const MaxName = 4096

// The buckets. All but counters hold one value a key, of the kind of the same name.
var (
	bucketCounters  = []byte("counters")  // one value: the numbers given out so far
	bucketThreads   = []byte("threads")   // thread
	bucketRecords   = []byte("records")   // thread, revision
	bucketSnapshots = []byte("snapshots") // thread, revision
	bucketEffects   = []byte("effects")   // thread, revision, index
	bucketReady     = []byte("ready")     // lane, order: effects to be handed out
	bucketWaiting   = []byte("waiting")   // lane, time, order: effects that are claimed or not due yet
	bucketDead      = []byte("dead")      // lane, order: effects that were given up
)

var buckets = [][]byte{
	bucketCounters, bucketThreads, bucketRecords, bucketSnapshots,
	bucketEffects, bucketReady, bucketWaiting, bucketDead,
}

var keyCounters = []byte("counters")

// appendName adds a text so that keys sort as their texts do and no text's key is the
// beginning of another's: a zero byte becomes 0 255, and 0 1 ends the text.
func appendName(key []byte, name string) []byte {
	for i := range len(name) {
		key = append(key, name[i])
		if name[i] == 0 {
			key = append(key, 0xff)
		}
	}
	return append(key, 0, 1)
}

// cutName takes a text off the front of a key.
func cutName(key []byte) (name string, rest []byte, ok bool) {
	var text []byte
	for i := 0; i < len(key); i++ {
		if key[i] != 0 {
			text = append(text, key[i])
			continue
		}
		if i+1 == len(key) {
			return "", nil, false
		}
		switch key[i+1] {
		case 1:
			return string(text), key[i+2:], true
		case 0xff:
			text = append(text, 0)
			i++
		default:
			return "", nil, false
		}
	}
	return "", nil, false
}

func nameKey(name string) []byte { return appendName(make([]byte, 0, len(name)+24), name) }

func revisionKey(thread string, revision uint64) []byte {
	return binary.BigEndian.AppendUint64(nameKey(thread), revision)
}

func effectKey(thread string, revision uint64, index uint32) []byte {
	return binary.BigEndian.AppendUint32(revisionKey(thread, revision), index)
}

func orderKey(lane string, order uint64) []byte {
	return binary.BigEndian.AppendUint64(nameKey(lane), order)
}

func dueKey(lane string, due time.Time, order uint64) []byte {
	return binary.BigEndian.AppendUint64(appendTime(nameKey(lane), due), order)
}

// timeSize is the length of a time in keys and values, which sort as times do.
const timeSize = 12

func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

func readTime(b []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(b)^1<<63), int64(binary.BigEndian.Uint32(b[8:]))).UTC()
}

// revisionOf returns the revision in a key of that thread; ok is false for keys of
// other threads.
func revisionOf(key, thread []byte) (revision uint64, ok bool) {
	rest, ok := bytes.CutPrefix(key, thread)
	if !ok || len(rest) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(rest), true
}

func checkName(what, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("bolt: a %s of %d bytes; the limit is %d", what, len(name), MaxName)
	}
	return nil
}
