package writer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/store/storetest"
)

func TestMain(m *testing.M) {
	child.Main(writer.Part)
	os.Exit(m.Run())
}

// A writer tells what it wrote, and each strike ends it in its own way.
func TestStrikes(t *testing.T) {
	t.Parallel()
	for strike, says := range map[writer.Strike]string{
		writer.Nothing:      "^$",
		writer.SyncFails:    "input/output error|invalid argument",
		writer.WritesVanish: "open it again",
		writer.DiskFull:     "no space left|invalid argument",
		writer.DieAtData:    "^$",
		writer.DieAtMeta:    "^$",
		writer.DieAtSync:    "^$",
		writer.DieAtResize:  "^$",
		writer.DieAtAnswer:  "^$",
	} {
		t.Run(string(strike), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "threads.db")
			work := storetest.Work{Threads: []string{"a", "b"}, Writers: 2, Commits: 20, Seed: 1, MaxSize: 20_000}
			result, err := writer.Do(t.Context(), writer.Order{Path: path, Work: work, Strike: strike, After: 10})
			require.NoError(t, err)
			require.Equal(t, strike == writer.Nothing, result.Failed == nil, "%v %s", result.Failed, result.Said)
			require.Regexp(t, says, result.Said)
			require.False(t, result.Accepted())
			require.GreaterOrEqual(t, len(result.Acks), 10)
			if strike == writer.Nothing {
				require.Len(t, result.Acks, 40)
			} else {
				require.Less(t, len(result.Acks), 40)
			}
			require.NoError(t, writer.Check(t.Context(), path, result.Acks))
			require.Zero(t, writer.Lost(t.Context(), path, result.Acks))
			missing := append(result.Acks, storetest.Ack{Thread: "a", Revision: 1000})
			require.Error(t, writer.Check(t.Context(), path, missing))
			require.Equal(t, 1, writer.Lost(t.Context(), path, missing))
		})
	}
}
