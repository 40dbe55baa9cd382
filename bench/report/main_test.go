package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/bench/report"
)

// quick makes the report of one cheap row.
func quick(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := report.Main(t.Context(), append([]string{"-rows", "P7/read=key", "-rounds", "2", "-slice", "1ms"}, args...), &out)
	return out.String(), err
}

func TestMainWritesWhatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	out, err := quick(t, "-svg", file("table.svg"), "-json", file("table.json"), "-cpuprofile", file("cpu"), "-memprofile", file("mem"))
	require.NoError(t, err)
	require.Contains(t, out, "read a registered key")
	require.Contains(t, out, "GOMAXPROCS")
	require.Contains(t, out, "2 pairs of slices of 1ms")
	require.NotContains(t, out, "take a snapshot", "that row was not asked for")
	for _, name := range []string{"table.svg", "table.json", "cpu", "mem"} {
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		require.NotEmpty(t, text, name)
	}
}

func TestMainRunsOneSide(t *testing.T) {
	for _, side := range []string{"work", "base"} {
		out, err := quick(t, "-only", side)
		require.NoError(t, err)
		require.Contains(t, out, "ns/op")
		require.NotContains(t, out, "verdict")
	}
	_, err := quick(t, "-rows", "P11/state=active", "-only", "base")
	require.ErrorContains(t, err, "no baseline")
}

// With -strict the table is the same, and a missed target an error.
func TestMainIsStrict(t *testing.T) {
	out, err := quick(t, "-rows", "P7/read=snapshot,P7/read=key", "-strict")
	if strings.Contains(out, "missed") {
		require.ErrorIs(t, err, report.ErrMissed)
		return
	}
	require.NoError(t, err)
	require.Contains(t, out, "2 of 2 targets met")
}

func TestMainRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown row":  {"-rows", "P1,P99"},
		"unknown flag": {"-fast"},
		"more words":   {"now"},
		"unknown side": {"-only", "both"},
		"no rounds":    {"-rounds", "0"},
		"no time":      {"-slice", "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := quick(t, args...)
			require.ErrorContains(t, err, "report: ")
			require.Empty(t, out)
		})
	}
	err := report.Main(t.Context(), []string{"-rows", "P7"}, &strings.Builder{}, bench.Rival{ID: "lost", Row: "P7"})
	require.ErrorContains(t, err, `rival lost: there is no row "P7"`)
}

func TestMainExplainsItself(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report.Main(t.Context(), []string{"-h"}, &out))
	require.Contains(t, out.String(), "-svg")
}
