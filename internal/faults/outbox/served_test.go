//go:build servers

package outbox_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/outbox"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
)

func init() { served = append(served, outbox.ServedDispatcher) }

// Capability A18. The same on a server; each lane hands out what a thread emitted in the
// order of its commits.
func TestServedDispatcherDies(t *testing.T) {
	effects := 2000
	if text := os.Getenv("FIXPOINT_OUTBOX_EFFECTS"); text != "" {
		var err error
		effects, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for _, kind := range servers.Kinds {
		t.Run(kind, func(t *testing.T) {
			server, err := servers.Start(t.Context(), kind, t.TempDir(), 1)
			require.NoError(t, err)
			t.Cleanup(func() { _ = server.Close() })
			f, err := outbox.RunServed(t.Context(), server, outbox.Plan{Store: kind, Effects: effects, Every: effects / 16, Seed: 1})
			t.Log(f)
			require.NoError(t, err)
			require.NoError(t, f.Err())
		})
	}
}
