package phase_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/phase"
)

// Capability A13. There are nine phases, in the order of the lifecycle, each with a
// snake_case name that reads back.
func TestPhasesAndTheirNames(t *testing.T) {
	names := []string{"run_start", "step_start", "before_inference", "after_inference", "tool_gate",
		"before_tool_execute", "after_tool_execute", "step_end", "run_end"}
	all := slices.Collect(phase.All())
	require.Len(t, all, phase.Count)
	require.Len(t, all, len(names))
	require.True(t, slices.IsSorted(all))
	for i, p := range all {
		require.True(t, p.Valid())
		require.Equal(t, names[i], p.String())
		back, err := phase.Parse(names[i])
		require.NoError(t, err)
		require.Equal(t, p, back)
		text, err := json.Marshal(map[phase.Phase]phase.Phase{p: p})
		require.NoError(t, err)
		require.JSONEq(t, `{"`+names[i]+`":"`+names[i]+`"}`, string(text))
		var m map[phase.Phase]phase.Phase
		require.NoError(t, json.Unmarshal(text, &m))
		require.Equal(t, map[phase.Phase]phase.Phase{p: p}, m)
	}
	for p := range phase.All() {
		require.Equal(t, phase.RunStart, p)
		break
	}
}

// Capability A13. What is no phase is an error that says so; the zero phase is no
// phase and has an empty text.
func TestPhasesThatAreNone(t *testing.T) {
	for _, p := range []phase.Phase{0, phase.RunEnd + 1, 255} {
		require.False(t, p.Valid())
		require.Contains(t, p.String(), "phase(")
	}
	_, err := (phase.RunEnd + 1).MarshalText()
	require.ErrorIs(t, err, phase.ErrUnknownPhase)
	text, err := phase.Phase(0).MarshalText()
	require.NoError(t, err)
	require.Empty(t, text)
	p := phase.RunEnd
	require.NoError(t, p.UnmarshalText(nil))
	require.Zero(t, p)
	for _, name := range []string{"", "RunStart", "run-start", "run_start ", "phase(1)"} {
		_, err := phase.Parse(name)
		require.ErrorIs(t, err, phase.ErrUnknownPhase, name)
	}
	p = phase.StepEnd
	require.ErrorIs(t, p.UnmarshalText([]byte("lunch")), phase.ErrUnknownPhase)
	require.Equal(t, phase.StepEnd, p, "a failed read changes nothing")
}

// FuzzParse: what parses writes back to the same text.
func FuzzParse(f *testing.F) {
	for p := range phase.All() {
		f.Add(p.String())
	}
	f.Add("Run_Start")
	f.Fuzz(func(t *testing.T, name string) {
		p, err := phase.Parse(name)
		if err != nil {
			require.ErrorIs(t, err, phase.ErrUnknownPhase)
			require.Zero(t, p)
			return
		}
		require.Equal(t, name, p.String())
	})
}

// Capability A5. The error of a phase that does not converge names phase, limit and
// what was pending, and tells what to do.
func TestConvergenceError(t *testing.T) {
	err := &phase.ConvergenceError{Phase: phase.StepEnd, Rounds: 16, Pending: []string{"a", "b"}}
	require.ErrorIs(t, err, phase.ErrNotConverged)
	require.NotErrorIs(t, err, phase.ErrUnknownAction)
	for _, want := range []string{"phase: ", "step_end", "16", "a, b", "Limits.PhaseRounds"} {
		require.ErrorContains(t, err, want)
	}
}
