package bolt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// clock is a clock that is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t testing.TB, path string, o bolt.Options) *bolt.Journal {
	t.Helper()
	j, err := bolt.Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "threads.db") }

// Capability B6, B7: the embedded store.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		c, path := newClock(), newPath(t)
		o := bolt.Options{Now: c.Now, MaxBytes: 1 << 20}
		current := open(t, path, o)
		return storetest.Fixture{
			Journal: current,
			Advance: c.Advance,
			Reopen: func(t *testing.T) engine.Journal {
				_ = current.Close()
				_, err := bolt.Verify(path, o)
				require.NoError(t, err)
				current = open(t, path, o)
				return current
			},
		}
	})
}

// With the real clock, and with what is found whole after every test.
func TestConformanceIsVerified(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		path := newPath(t)
		j := open(t, path, bolt.Options{NoSync: true})
		t.Cleanup(func() {
			_ = j.Close()
			_, err := bolt.Verify(path, bolt.Options{})
			require.NoError(t, err)
		})
		return storetest.Fixture{Journal: j}
	})
}

func TestCaps(t *testing.T) {
	t.Parallel()
	j := open(t, newPath(t), bolt.Options{})
	require.Equal(t, engine.JournalCaps{Synced: true, Replicas: 1, MaxBytes: 64 << 20}, j.Caps())
	require.False(t, open(t, newPath(t), bolt.Options{NoSync: true}).Caps().Synced)
}

func TestOpenElsewhere(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path, bolt.Options{})
	_, err := bolt.Open(path, bolt.Options{Timeout: time.Millisecond})
	require.ErrorIs(t, err, bolt.ErrLocked)
	_, err = bolt.Verify(path, bolt.Options{Timeout: time.Millisecond})
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.NoError(t, j.Close())
	open(t, path, bolt.Options{Timeout: time.Millisecond})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := bolt.Open(filepath.Join(folder, "no", "such", "folder"), bolt.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = bolt.Open(filepath.Join(folder, "x"), bolt.Options{MaxBytes: -1})
	require.ErrorContains(t, err, "MaxBytes")
	_, err = bolt.Verify(filepath.Join(folder, "x"), bolt.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	for name, content := range map[string]string{"empty": "", "text": "this is no store", "long": string(make([]byte, 1<<16))} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err = bolt.Open(path, bolt.Options{})
		require.ErrorIs(t, err, engine.ErrCorrupt, name)
		_, err = bolt.Verify(path, bolt.Options{})
		require.ErrorIs(t, err, engine.ErrCorrupt, name)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(after), "nothing was written")
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 3, "nothing is left behind")
}

// Several that make the same store at once all get that one.
func TestCreateRace(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var group sync.WaitGroup
	failures := make([]error, 8)
	for n := range failures {
		group.Go(func() {
			j, err := bolt.Open(path, bolt.Options{Timeout: time.Minute})
			if err == nil {
				_, err = j.Append(t.Context(), engine.JournalCommit{ID: [16]byte{byte(n + 1)}, Thread: string(rune('a' + n))})
				_ = j.Close()
			}
			failures[n] = err
		})
	}
	group.Wait()
	for _, err := range failures {
		require.NoError(t, err)
	}
	ids, err := open(t, path, bolt.Options{}).Threads(t.Context(), "", 100)
	require.NoError(t, err)
	require.Len(t, ids, len(failures))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// A file that is trusted is still not cut off, and its values are checked when read.
func TestTrustFile(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path, bolt.Options{})
	marks := map[string]string{"a": "the record of a", "b": "the record of b"}
	for thread, mark := range marks {
		_, err := j.Append(t.Context(), engine.JournalCommit{ID: [16]byte{1}, Thread: thread, Record: []byte(mark)})
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	file, err := os.ReadFile(path)
	require.NoError(t, err)

	damaged := bytes.ReplaceAll(file, []byte(marks["a"]), []byte("the record of X"))
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	for _, trust := range []bool{true, false} {
		j = open(t, path, bolt.Options{TrustFile: trust})
		_, err = j.Load(t.Context(), "a", 0)
		var where *bolt.CorruptError
		require.ErrorAs(t, err, &where)
		require.Equal(t, bolt.CorruptError{Path: path, Bucket: "records", Thread: "a", Revision: 1, Offset: -1, Reason: where.Reason}, *where)
		_, err = j.Append(t.Context(), engine.JournalCommit{ID: [16]byte{2}, Thread: "a", Base: 1, Record: []byte("next")})
		require.NoError(t, err, "the damage is not in what an append needs")
		image, err := j.Load(t.Context(), "b", 0)
		require.NoError(t, err)
		require.Equal(t, marks["b"], string(image.Tail[0].Record))
		require.NoError(t, j.Delete(t.Context(), "a"), "a damaged thread can be dropped")
		_, err = j.Load(t.Context(), "a", 0)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
	}
	report, err := bolt.Verify(path, bolt.Options{})
	require.ErrorIs(t, err, engine.ErrCorrupt)
	require.Len(t, report.Faults, 1)
	require.Contains(t, string(damaged[report.Faults[0].Offset:][:100]), "the record of X", "the position is that of the value")

	require.NoError(t, os.WriteFile(path, file[:len(file)/2], 0o600))
	_, err = bolt.Open(path, bolt.Options{TrustFile: true})
	require.ErrorIs(t, err, engine.ErrCorrupt)
}
