//go:build unix

package postgrestest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
)

func TestNoBinaries(t *testing.T) {
	t.Parallel()
	_, err := postgrestest.Start(t.Context(), postgrestest.Options{Binaries: t.TempDir()})
	require.Error(t, err)
}

func TestNoSuchUser(t *testing.T) {
	t.Parallel()
	_, err := postgrestest.Start(t.Context(), postgrestest.Options{Binaries: t.TempDir(), User: "nobody of that name"})
	require.Error(t, err) // for root because of the user, for others because of the programs
}
