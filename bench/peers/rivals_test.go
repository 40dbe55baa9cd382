package main_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
	peers "github.com/ddd26017/fixpoint/bench/peers"
)

// TestRivalsDoTheirWork runs every rival a few times. Each checks what its steps
// left behind, and gives an error if it is not the work of the row or, where the
// note says so, not what the peer does instead.
func TestRivalsDoTheirWork(t *testing.T) {
	for _, r := range peers.Rivals() {
		t.Run(r.Row+"/"+r.ID, func(t *testing.T) {
			require.NoError(t, r.Work(func(step func(int) error) error {
				return errors.Join(step(1), step(3), step(12))
			}))
		})
	}
}

// TestRivalsHaveRows holds the list to the rows that it is shown beside.
func TestRivalsHaveRows(t *testing.T) {
	rows := map[string]bool{}
	for _, row := range bench.Rows() {
		rows[row.Key()] = true
	}
	seen := map[string]bool{}
	for _, r := range peers.Rivals() {
		require.True(t, rows[r.Row], "%s: bench has no row %s", r.ID, r.Row)
		require.False(t, seen[r.Row+"/"+r.ID], "%s is there twice in %s", r.ID, r.Row)
		seen[r.Row+"/"+r.ID] = true
		require.NotEmpty(t, r.Name)
		require.NotEmpty(t, r.Note, "a comparison says where it is unfair: %s in %s", r.ID, r.Row)
	}
}

// TestWorkEndsWithTheMeasurement returns the error of the measurement as it is.
func TestWorkEndsWithTheMeasurement(t *testing.T) {
	enough := errors.New("enough")
	for _, r := range peers.Rivals() {
		require.ErrorIs(t, r.Work(func(func(int) error) error { return enough }), enough)
	}
}
