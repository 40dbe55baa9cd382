package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
)

// Whatever stands in the records of an inbox, it is read or refused; and what was read and
// is written as a snapshot comes back the same.
func FuzzInbox(f *testing.F) {
	f.Add([]byte(nil), []byte("\x01{}"), []byte("\x01{}"))
	f.Add([]byte("\x01"+`{"inbox":"a","pending":[{"id":"b","time":"2030-01-02T03:04:05Z","kind":"input","seq":1}]}`),
		[]byte("\x01"+`{"failed":{"seq":1,"error":"no","dead":true}}`), []byte("\x01"+`{"drop":[1]}`))
	f.Add([]byte(nil), []byte("\x01"+`{"submit":{"id":"b","time":"2030-01-02T03:04:05Z","kind":"decide","decisions":[{"answer":{"ticket":"t","approved":true}}]}}`),
		[]byte("\x01"+`{"done":[{"seq":1,"kind":"decide","fate":"applied"}]}`))
	f.Add([]byte("\x02{}"), []byte("\x01{} x"), []byte("\x01[]"))
	f.Fuzz(func(t *testing.T, snapshot, first, second []byte) {
		image := store.Image{Revision: 2, Tail: []store.Record{{Revision: 1, Record: first}, {Revision: 2, Record: second}}}
		if snapshot != nil {
			image = store.Image{Revision: 3, Snapshot: snapshot, SnapshotAt: 1, Tail: []store.Record{{Revision: 2, Record: first}, {Revision: 3, Record: second}}}
		}
		b, err := open(image)
		if err != nil {
			return
		}
		whole, err := encode(b)
		require.NoError(t, err)
		again, err := open(store.Image{Revision: image.Revision, Snapshot: whole, SnapshotAt: image.Revision})
		require.NoError(t, err)
		text, err := encode(again)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(text))
	})
}

// Turns are in proportion to weights, and who comes late has saved none up.
func TestTurns(t *testing.T) {
	var turns turns[string]
	had := map[string]int{}
	take := func(n int, of ...string) {
		for range n {
			k := turns.next(of)
			turns.took(k, map[string]int{"a": 3}[k])
			had[k]++
		}
	}
	take(40, "a", "b")
	require.Equal(t, map[string]int{"a": 30, "b": 10}, had)
	clear(had)
	take(1000, "a")
	clear(had)
	take(40, "a", "b", "c")
	require.InDelta(t, 24, had["a"], 1)
	require.InDelta(t, 8, had["b"], 1)
	require.InDelta(t, 8, had["c"], 1)
	require.Less(t, len(turns.used), 4)
}

// A position knows what is applied, whatever the order.
func FuzzPosition(f *testing.F) {
	f.Add([]byte{1, 3, 2})
	f.Add([]byte{9, 1, 5, 1})
	f.Fuzz(func(t *testing.T, order []byte) {
		b := &box{}
		for seq := range uint64(16) {
			b.Pending = append(b.Pending, entry{Seq: seq + 1})
		}
		p, applied := Position{Next: 1}, map[uint64]bool{}
		for _, o := range order {
			seq := uint64(o)%16 + 1
			if !p.applied(seq) {
				p = p.apply(b, seq)
				applied[seq] = true
			}
			for seq := range uint64(20) {
				require.Equal(t, applied[seq+1], p.applied(seq+1), "%d after %v", seq+1, order)
			}
		}
	})
}
