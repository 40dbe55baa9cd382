package storetest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

func TestServe(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	work := storetest.Work{Threads: []string{"a b", "c"}, Writers: 3, Commits: 10, Seed: 5, MaxSize: 50, Every: 4}
	var out bytes.Buffer
	require.NoError(t, storetest.Serve(t.Context(), store, strings.NewReader(work.Job()), &out))
	acks, err := storetest.ReadAcks(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	require.Len(t, acks, 30)
	require.NoError(t, storetest.Check(t.Context(), store, acks))

	cut, err := storetest.ReadAcks(bytes.NewReader(out.Bytes()[:out.Len()-3]))
	require.NoError(t, err)
	require.Equal(t, acks[:29], cut, "a line that was cut off is none")
	_, err = storetest.ReadAcks(strings.NewReader("nonsense\n"))
	require.ErrorContains(t, err, "nonsense")
	require.ErrorContains(t, storetest.Serve(t.Context(), store, strings.NewReader("nonsense\n"), &out), "nonsense")
}

// Check finds commits that are lost, forked or changed.
func TestCheck(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	var acks []storetest.Ack
	work := storetest.Work{Threads: []string{"t"}, Writers: 1, Commits: 5, Seed: 5}
	require.NoError(t, work.Run(t.Context(), store, func(a storetest.Ack) { acks = append(acks, a) }))
	require.NoError(t, storetest.Check(t.Context(), store, acks))

	lost := append(acks[:5:5], storetest.Ack{Thread: "t", Revision: 6, ID: [16]byte{1}}, storetest.Ack{Thread: "gone", Revision: 1})
	require.ErrorContains(t, storetest.Check(t.Context(), store, lost), "lost: revision 6")
	require.ErrorContains(t, storetest.Check(t.Context(), store, lost), "lost: revision 1 of gone")
	fork := append(acks[:5:5], storetest.Ack{Thread: "t", Revision: 2, ID: [16]byte{1}})
	require.ErrorContains(t, storetest.Check(t.Context(), store, fork), "fork: revision 2")
	_, err := store.Append(t.Context(), engine.JournalCommit{ID: [16]byte{7}, Thread: "t", Base: 5, Record: []byte("short")})
	require.NoError(t, err)
	require.ErrorContains(t, storetest.Check(t.Context(), store, acks), "of another commit")
}
