package nats

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sampleEntries() map[string]*entry {
	first := &entry{head: head{seq: 7, kind: isCommit, revision: 1, id: [16]byte{1}, time: time.Unix(5, 6).UTC()}, record: blob{inline: []byte("one")}}
	second := &entry{head: first.next(isLease, [16]byte{2}, 2, time.Time{}), record: blob{inline: []byte{}}}
	second.seq = 1 << 40
	third := &entry{head: second.next(isCommit, [16]byte{3}, 2, time.Unix(math.MaxInt32, 999_999_999).UTC()), hasSnapshot: true}
	third.record, third.snapshot = blob{parts: 3, size: 3 << 20, sum: 9}, blob{inline: []byte("state")}
	third.seq = 1<<40 + 1
	fourth := &entry{head: third.next(isCommit, [16]byte{4}, 2, time.Unix(1, 0).UTC()), record: blob{inline: []byte{}}}
	fourth.seq = 1<<40 + 2
	gone := &entry{head: head{seq: 3, kind: isDeletion, id: [16]byte{5}, time: time.Unix(2, 0).UTC()}, record: blob{inline: []byte{}}}
	return map[string]*entry{"a": first, "b": second, "c.d": third, "": fourth, "gone": gone}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	for thread, e := range sampleEntries() {
		b := e.encode(thread)
		back, ok := decodeEntry(thread, e.seq, b)
		require.True(t, ok, thread)
		require.Equal(t, e, back, thread)
		_, ok = decodeEntry(thread+"x", e.seq, b)
		require.False(t, ok, "an entry of another thread is not believed")
		for i := range b {
			changed := append([]byte(nil), b...)
			changed[i] ^= 0x10
			_, ok := decodeEntry(thread, e.seq, changed)
			require.False(t, ok, "byte %d of %s", i, thread)
			_, ok = decodeEntry(thread, e.seq, b[:i])
			require.False(t, ok, "%d bytes of %s", i, thread)
		}
	}
}

// The trail of an entry names the messages of the revisions before it, newest first.
func TestTrail(t *testing.T) {
	t.Parallel()
	e := &entry{}
	for revision := uint64(1); revision < 3*trailLength; revision++ {
		next := &entry{head: e.next(isCommit, [16]byte{}, 0, time.Time{})}
		next.seq = revision * 10
		require.Equal(t, revision, next.revision)
		require.Len(t, next.trail, int(min(revision-1, trailLength)))
		for i, seq := range next.trail {
			require.Equal(t, (revision-uint64(i)-1)*10, seq)
		}
		e = next
	}
}

func FuzzDecode(f *testing.F) {
	for thread, e := range sampleEntries() {
		f.Add(thread, e.seq, e.encode(thread))
	}
	f.Add("t", uint64(1), lease{owner: "ann", epoch: 3, until: time.Unix(9, 0).UTC(), nonce: [16]byte{1}}.encode("t"))
	f.Add("t/1/2", uint64(1), state{kind: isClaimed, lane: "x", attempts: 3, bodySeq: 9, body: blob{parts: 1, size: 3, sum: 4}, of: 8}.encode("t/1/2"))
	f.Fuzz(func(t *testing.T, name string, seq uint64, b []byte) {
		// What is read is what would be written; a checksum is put in its place, so that
		// there is more to read than that it is wrong.
		for _, b := range [][]byte{b, seal(name, b)} {
			if e, ok := decodeEntry(name, seq, b); ok {
				again, ok := decodeEntry(name, seq, e.encode(name))
				require.True(t, ok)
				require.Equal(t, e, again)
			}
			if l, ok := decodeLease(name, b); ok {
				again, ok := decodeLease(name, l.encode(name))
				require.True(t, ok)
				require.Equal(t, l, again)
			}
			if s, ok := decodeState(name, b); ok {
				again, ok := decodeState(name, s.encode(name))
				require.True(t, ok)
				require.Equal(t, s, again)
			}
		}
	})
}
