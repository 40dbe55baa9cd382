package lineedit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
)

func all(h *lineedit.History) (lines []string) {
	for i := range h.Len() {
		lines = append(lines, h.At(i))
	}
	return lines
}

// The history outlives the program, without what was not to be kept.
func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	h, err := lineedit.OpenHistory(file)
	require.NoError(t, err)
	for _, l := range []string{"one", "", "  ", " kept out", "two\nlines", "two\nlines", strings.Repeat("x", 9000), "one"} {
		require.NoError(t, h.Add(l))
	}
	want := []string{"one", "two\nlines", "one"}
	require.Equal(t, want, all(h))
	if runtime.GOOS != "windows" {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append([]byte("not JSON\n"), text...), 0o600))
	h, err = lineedit.OpenHistory(file)
	require.NoError(t, err)
	require.Equal(t, want, all(h))
	require.Empty(t, h.At(-1)+h.At(3))

	for i := range 600 {
		require.NoError(t, h.Add(fmt.Sprint(i)))
	}
	h, err = lineedit.OpenHistory(file)
	require.NoError(t, err)
	require.Equal(t, 500, h.Len())
	require.Equal(t, "599", h.At(0))
	_, err = lineedit.OpenHistory(t.TempDir())
	require.ErrorContains(t, err, "cannot be read")
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no draft is left")
}

// Up and down go through the history and back to what was typed.
func TestRecall(t *testing.T) {
	for keys, want := range map[string]string{
		"\x10\r": "newer", "\x1b[A\x1b[A\r": "older", "\x10\x10\x10\r": "older", "draft\x10\x10\x0e\x0e\r": "draft",
		"draft\x10!\x0e\r": "draft", "\x10!\r": "newer!", "\x0e\r": "",
	} {
		bubble(t, 40, 24, func(t *testing.T, b *bench) {
			var h lineedit.History
			require.NoError(t, h.Add("older"))
			require.NoError(t, h.Add("newer"))
			got := b.ask(t.Context(), lineedit.Query{Prompt: "> ", History: &h})
			b.press(keys)
			require.Equal(t, read{text: want}, <-got, "%q", keys)
		})
	}
}
