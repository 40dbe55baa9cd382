package bolt_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/bolt"
)

// Values are read without a panic, whatever is in them, and a changed one is not taken.
func FuzzValue(f *testing.F) {
	f.Add([]byte("key"), []byte("payload"), "thread", uint64(1), 3)
	f.Add(bolt.NameKey("t"), make([]byte, 60), "t", uint64(7), 25)
	f.Add(append(bolt.NameKey("t"), 0, 0, 0, 0, 0, 0, 0, 1), make([]byte, 28), "t", uint64(1), 0)
	f.Add(append(bolt.NameKey("t"), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0), append([]byte{1}, make([]byte, 60)...), "t", uint64(1), 40)
	f.Fuzz(func(t *testing.T, key, payload []byte, thread string, revision uint64, at int) {
		bolt.DecodeAny(key, payload)
		if len(thread) > bolt.MaxName {
			return
		}
		for _, value := range bolt.SealAny(key, payload, thread, revision) {
			bolt.DecodeAny(key, value)
			changed := bytes.Clone(value)
			changed[uint(at)%uint(len(changed))] ^= 1 << (uint(at) % 8)
			require.Zero(t, bolt.DecodeAny(key, changed), "a changed value")
			require.Zero(t, bolt.DecodeAny(append(key, 0), value), "a value under another key")
			require.Zero(t, bolt.DecodeAny(key, value[:len(value)-1]), "a value that was cut")
		}
	})
}

// Names in keys sort as they do by themselves, and come back.
func FuzzNameKey(f *testing.F) {
	f.Add("a", "b", []byte{1})
	f.Add("", "\x00", []byte{})
	f.Add("a\x00", "a\x00\x01", []byte{0xff})
	f.Add("a\xff", "a", []byte{0})
	f.Fuzz(func(t *testing.T, a, b string, rest []byte) {
		ka, kb := bolt.NameKey(a), bolt.NameKey(b)
		require.Equal(t, strings.Compare(a, b), bytes.Compare(ka, kb))
		require.Equal(t, a != b, !bytes.HasPrefix(ka, kb))
		name, tail, ok := bolt.CutName(append(ka, rest...))
		require.True(t, ok)
		require.Equal(t, a, name)
		require.True(t, bytes.Equal(rest, tail))
		bolt.CutName(rest)
	})
}
