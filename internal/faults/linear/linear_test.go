package linear_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/linear"
)

// What clients of a store observe fits one order of their calls.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, kind := range linear.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			f, err := kind.Run(t.Context(), t.TempDir(), 3, linear.Plan{Seed: 1, Clients: 8, Threads: 4, Operations: 600})
			require.NoError(t, err)
			t.Log(f)
			require.NoError(t, f.Err())
			require.Greater(t, f.Operations, 1000)
			require.Greater(t, f.Won, 200)
			require.Greater(t, f.Refused, 200)
			switch kind.Name {
			case "memstore":
				require.Zero(t, f.Unknown)
			case "bolt": // some, where a context ends in the middle of a commit
			default:
				require.Positive(t, f.Unknown, "of unknown outcome")
			}
		})
	}
}

// A store that breaks a promise now and then is found out.
func TestBrokenStoresAreFound(t *testing.T) {
	t.Parallel()
	for _, kind := range linear.Broken() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			f, err := kind.Run(t.Context(), t.TempDir(), 1, linear.Plan{Seed: 1, Clients: 4, Threads: 2, Operations: 2000})
			require.NoError(t, err)
			require.Equal(t, 1, f.Illegal)
			require.ErrorContains(t, f.Err(), "1 of 1 histories are illegal")
		})
	}
}
