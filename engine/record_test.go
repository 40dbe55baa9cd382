package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// duImage is a journal that has one image to show, now and at any earlier revision.
type duImage struct {
	engine.Journal
	image engine.JournalImage
}

func (j duImage) Load(context.Context, string, uint64) (engine.JournalImage, error) {
	return j.image, nil
}

func (j duImage) LoadAt(_ context.Context, _ string, revision uint64) (engine.JournalImage, error) {
	image := j.image
	image.Revision = revision
	return image, nil
}

// duRecords is the image of a thread with a run that waits, without and with a snapshot.
func duRecords(t testing.TB) (all, some engine.JournalImage) {
	t.Helper()
	store := duNewStore(memstore.Options{})
	th, err := newPeShop().engine(t, store).NewThread("t")
	require.NoError(t, err)
	_, err = th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
	require.NoError(t, err)
	_, err = th.Submit(t.Context(), "x", phase.Command{})
	require.NoError(t, err)
	some, err = store.LoadAt(t.Context(), "t", 8)
	require.NoError(t, err)
	require.NotNil(t, some.Snapshot)
	require.NotEmpty(t, some.Tail)
	all = engine.JournalImage{Revision: 3}
	for i, c := range store.commits[:3] {
		all.Tail = append(all.Tail, engine.JournalRecord{Revision: uint64(i + 1), ID: c.ID, Time: c.Time, Record: c.Record})
	}
	return all, some
}

// duOpen opens a thread from an image.
func duOpen(t testing.TB, image engine.JournalImage) (*engine.Thread, error) {
	t.Helper()
	return newPeShop().engine(t, duImage{memstore.New(memstore.Options{}), image}).OpenThread(t.Context(), "t")
}

// Capability A18. Fault B35. A record or snapshot of a newer format, or of none, or that
// is not whole, is refused with its position; so is a record that does not follow the
// one before it, and a tail that ends too early.
func TestRecordIsReadStrictly(t *testing.T) {
	all, some := duRecords(t)
	for _, image := range []engine.JournalImage{all, some} {
		_, err := duOpen(t, image)
		require.NoError(t, err)
	}
	spoilt := func(image engine.JournalImage, spoil func(image *engine.JournalImage)) engine.JournalImage {
		image.Tail = append([]engine.JournalRecord(nil), image.Tail...)
		spoil(&image)
		return image
	}
	record := func(change func(raw []byte) []byte) func(*engine.JournalImage) {
		return func(i *engine.JournalImage) { i.Tail[1].Record = change(bytes.Clone(i.Tail[1].Record)) }
	}
	for name, tt := range map[string]struct {
		image engine.JournalImage
		want  error
		text  string
	}{
		"newer record":     {spoilt(all, record(func(b []byte) []byte { b[0] = 2; return b })), engine.ErrRecord, "record 2: engine: unreadable record in the journal: format 2"},
		"no format":        {spoilt(all, record(func(b []byte) []byte { return b[1:] })), engine.ErrRecord, "record 2"},
		"cut":              {spoilt(all, record(func(b []byte) []byte { return b[:len(b)-1] })), engine.ErrRecord, "record 2"},
		"two in one":       {spoilt(all, record(func(b []byte) []byte { return append(b, b[1:]...) })), engine.ErrRecord, "record 2"},
		"unknown field":    {spoilt(all, record(func([]byte) []byte { return []byte("\x01" + `{"revision":2,"entries":[],"more":1}`) })), engine.ErrRecord, "record 2"},
		"null":             {spoilt(all, record(func([]byte) []byte { return []byte("\x01null") })), engine.ErrRecord, "record 2"},
		"another revision": {spoilt(all, record(func([]byte) []byte { return []byte("\x01" + `{"revision":7,"entries":[]}`) })), engine.ErrRecord, "record 2"},
		"the same again":   {spoilt(all, func(i *engine.JournalImage) { i.Tail[1].Record = i.Tail[0].Record }), engine.ErrRecord, "record 2"},
		"lost record":      {spoilt(all, func(i *engine.JournalImage) { i.Tail = append(i.Tail[:1], i.Tail[2:]...) }), engine.ErrCorrupt, "record 3 stands where 2 belongs"},
		"lost end":         {spoilt(all, func(i *engine.JournalImage) { i.Tail = i.Tail[:2] }), engine.ErrCorrupt, "end at 2, the thread at 3"},
		"lost everything":  {spoilt(all, func(i *engine.JournalImage) { i.Tail = nil }), engine.ErrCorrupt, "end at 0"},
		"newer snapshot":   {spoilt(some, func(i *engine.JournalImage) { i.Snapshot = append([]byte{7}, i.Snapshot[1:]...) }), engine.ErrRecord, "snapshot at revision"},
		"empty snapshot":   {spoilt(some, func(i *engine.JournalImage) { i.Snapshot = []byte{} }), engine.ErrRecord, "snapshot at revision"},
		"cut snapshot":     {spoilt(some, func(i *engine.JournalImage) { i.Snapshot = i.Snapshot[:100] }), engine.ErrRecord, "snapshot at revision"},
		"snapshot is lost": {spoilt(some, func(i *engine.JournalImage) { i.Snapshot = nil }), engine.ErrRecord, "record"},
		"a part of nothing": {spoilt(all, record(func([]byte) []byte {
			return []byte("\x01" + `{"revision":2,"entries":[{"name":"gone.log","scope":"thread","version":0,"raw":[1],"part":"append"}]}`)
		})), nil, "record 2"},
		"unknown part": {spoilt(all, record(func([]byte) []byte {
			return []byte("\x01" + `{"revision":2,"entries":[{"name":"gone.log","scope":"thread","version":0,"raw":[1],"part":"some"}]}`)
		})), nil, "record 2"},
		"a key twice": {spoilt(all, record(func([]byte) []byte {
			return []byte("\x01" + `{"revision":2,"entries":[{"name":"gone","scope":"thread","version":0,"raw":1},{"name":"gone","scope":"thread","version":0,"raw":2}]}`)
		})), state.ErrDuplicateKey, "record 2"},
		"a value that is missing": {spoilt(all, record(func([]byte) []byte {
			return []byte("\x01" + `{"revision":2,"entries":[{"name":"gone","scope":"thread","version":0}]}`)
		})), nil, "record 2"},
	} {
		t.Run(name, func(t *testing.T) {
			th, err := duOpen(t, tt.image)
			require.Nil(t, th)
			require.ErrorContains(t, err, "engine: thread t: ")
			require.ErrorContains(t, err, tt.text)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
		})
	}
}

// Capability B3. A record that cannot be read ends the history there, with its position
// as the error, and what came before it can still be looked at.
func TestRecordThatIsSpoiltInTheMiddle(t *testing.T) {
	store := duNewStore(memstore.Options{})
	duRun(t, store)
	image, err := store.Load(t.Context(), "t", 0)
	require.NoError(t, err)
	image, err = store.LoadAt(t.Context(), "t", image.SnapshotAt-1)
	require.NoError(t, err)
	middle := len(image.Tail) / 2
	image.Tail[middle].Record[0] = 9
	bad := duBadPast{store, image}
	c := newPeShop().config(bad)
	c.Limits.History = 1
	th, err := duEngine(t, c).OpenThread(t.Context(), "t")
	require.NoError(t, err)
	var list []engine.Revision
	for r, err := range th.History(t.Context()) {
		if err != nil {
			require.ErrorIs(t, err, engine.ErrRecord)
			require.ErrorContains(t, err, "record")
			require.ErrorContains(t, err, "format 9")
			continue
		}
		list = append(list, r)
	}
	require.Len(t, list, 1, "only what is newer")
	_, err = th.Past(t.Context(), list[0].Revision-2)
	require.ErrorIs(t, err, engine.ErrRecord)
	first := list[0].Revision - uint64(len(image.Tail)) + uint64(middle) - 1
	past, err := th.Past(t.Context(), first)
	require.NoError(t, err, "before the spoilt one")
	require.Equal(t, first, past.Revision())
}

type duBadPast struct {
	*duStore
	image engine.JournalImage
}

func (j duBadPast) LoadAt(context.Context, string, uint64) (engine.JournalImage, error) {
	return j.image, nil
}

// FuzzRecord opens a thread from records and snapshots that somebody tampered with:
// never a panic, and what opens is a whole state that can be saved and opened again.
func FuzzRecord(f *testing.F) {
	all, some := duRecords(f)
	for _, image := range []engine.JournalImage{all, some} {
		f.Add(image.Snapshot, image.Tail[0].Record, image.Tail[1].Record)
	}
	f.Add([]byte(nil), []byte("\x01"+`{"revision":1,"entries":[{"name":"gone.log","scope":"thread","version":0,"raw":[1]}]}`),
		[]byte("\x01"+`{"revision":2,"entries":[{"name":"gone.log","scope":"thread","version":0,"raw":[2],"part":"append"}]}`))
	f.Add([]byte(nil), []byte("\x01"+`{"revision":1,"entries":[{"name":"gone.map","scope":"run","version":0,"raw":[["a",1]]}]}`),
		[]byte("\x01"+`{"revision":2,"entries":[{"name":"gone.map","scope":"run","version":0,"raw":[["a",2]],"part":"entries","gone":["b"]}]}`))
	f.Fuzz(func(t *testing.T, snapshot, first, second []byte) {
		image := engine.JournalImage{}
		if len(snapshot) > 0 {
			image.Snapshot, image.SnapshotAt = snapshot, 5
		}
		image.Tail = []engine.JournalRecord{
			{Revision: image.SnapshotAt + 1, Record: first}, {Revision: image.SnapshotAt + 2, Record: second},
		}
		image.Revision = image.SnapshotAt + 2
		th, err := duOpen(t, image)
		if err != nil {
			require.Nil(t, th)
			require.True(t, strings.HasPrefix(err.Error(), "engine: thread t"))
			return
		}
		dump, err := th.Export()
		require.NoError(t, err)
		_ = th.Tickets()
		for _, err := range th.History(t.Context()) {
			if err != nil {
				break
			}
		}
		text, err := json.Marshal(dump)
		require.NoError(t, err)
		again, err := duOpen(t, engine.JournalImage{Revision: 1, SnapshotAt: 1, Snapshot: append([]byte{1}, text...)})
		require.NoError(t, err)
		back, err := again.Export()
		require.NoError(t, err)
		text2, err := json.Marshal(back)
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(text2))
	})
}

// Capability A18. Fault B35. Values of keys that no plugin registers go through runs of
// a program without them, with parts that an earlier program added, and what that
// program's run scope drops stays dropped.
func TestRecordKeepsUnknownKeys(t *testing.T) {
	store := memstore.New(memstore.Options{})
	marks := state.NewLog("gone.marks", state.Options[string]{Scope: state.ScopeThread, Version: 1})
	table := state.NewTable[string]("gone.table", state.Options[int]{Scope: state.ScopeThread})
	passing := state.NewCell("gone.passing", state.Options[string]{}) // of one run
	open := func(with bool) *engine.Thread {
		c := engine.Config{Journal: store}
		if with {
			c.Plugins = []engine.Plugin{gaKeys(marks, table, passing)}
		}
		th, err := duEngine(t, c).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		return th
	}
	th := open(true)
	for i, name := range []string{"a", "b", "c"} {
		_, err := th.Submit(t.Context(), "x", gaUpdates(marks.Append("m"+name), table.Put(name, i), passing.With(name)))
		require.NoError(t, err)
	}
	_, err := th.Submit(t.Context(), "x", gaUpdates(table.Delete("b")))
	require.NoError(t, err)

	gaRun(t, open(false)) // knows none of them
	th = open(true)
	require.Equal(t, []string{"ma", "mb", "mc"}, marks.Get(th.Snapshot()).Slice())
	require.Equal(t, 2, table.Len(th.Snapshot()))
	require.Empty(t, passing.Get(th.Snapshot()), "it was of a former run")
	for r, err := range th.History(t.Context()) {
		require.NoError(t, err)
		past, err := th.Past(t.Context(), r.Revision)
		require.NoError(t, err)
		require.Equal(t, r.Revision < 5, passing.Get(past) != "", "revision %d", r.Revision)
	}
}

// Without an outbox, and without a journal, a durable effect costs what any other does.
func TestDurableEffectsCostNothingWithoutAnOutbox(t *testing.T) {
	cost := func(journal engine.Journal, spec effects.Spec[string]) float64 {
		th, err := duEngine(t, engine.Config{Journal: journal, NewID: func() string { return "id" },
			Plugins: []engine.Plugin{gaPlugin("p", func(r *engine.Registrar) {
				r.Effect(spec.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
			})}}).NewThread("t")
		require.NoError(t, err)
		var cmd phase.Command
		cmd.Emit(spec.New("x"))
		return testing.AllocsPerRun(200, func() {
			if _, err := th.Submit(t.Context(), "x", cmd); err != nil {
				t.Fatal(err)
			}
		})
	}
	require.InDelta(t, cost(nil, duPing), cost(nil, duMail), 1)
	require.InDelta(t, cost(onlyJournal{memstore.New(memstore.Options{})}, duPing), cost(onlyJournal{memstore.New(memstore.Options{})}, duMail), 3)
}
