package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/report"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

func write(t *testing.T, file string, args any) inference.ToolResult {
	t.Helper()
	config, rec := enginetest.Config(t, report.New(file, "out/report.md"))
	config.Model = enginetest.NewScript(enginetest.Call("c1", report.Tool, args), enginetest.Say("done"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return enginetest.Select[engine.ToolFinished](rec.Events())[0].Result
}

func TestWriteReport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.md")
	for _, text := range []string{"# One\n\ntwo\n\n\n", "# Other"} {
		r := write(t, file, map[string]string{"content": text})
		require.Equal(t, inference.OutcomeOK, r.Outcome, r.Content)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, strings.TrimRight(text, "\n")+"\n", string(got))
		var w report.Written
		require.NoError(t, r.Details.Decode(&w))
		require.Equal(t, report.Written{Path: "out/report.md", Bytes: len(got), Lines: strings.Count(string(got), "\n")}, w)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no draft is left")
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	require.Contains(t, write(t, filepath.Join(dir, "r"), map[string]string{"content": " \n"}).Content, "the report is empty")
	require.Contains(t, write(t, filepath.Join(dir, "r"), map[string]string{"content": strings.Repeat("x", 5<<20)}).Content, "too many")
	require.Contains(t, write(t, filepath.Join(dir, "r"), map[string]string{"path": "/etc/passwd"}).Content, "path")
	require.Contains(t, write(t, filepath.Join(dir, "no", "r"), map[string]string{"content": "x"}).Content, "out/report.md cannot be written")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	require.True(t, write(t, filepath.Join(dir, "folder"), map[string]string{"content": "x"}).IsError)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no draft is left")
}
