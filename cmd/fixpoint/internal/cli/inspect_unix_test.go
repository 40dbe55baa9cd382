//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// Capability B4. A process shows a run that another one is about to do, and is shown
// while it does; SIGINT ends the one that shows.
func TestInspectProcess(t *testing.T) {
	t.Parallel()
	dir, trace := garden(t), filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(trace, nil, 0o600))
	c := child(t, "", "inspect", trace)
	pipe, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	scan := bufio.NewScanner(pipe)
	require.True(t, scan.Scan())
	events, err := http.Get(scan.Text() + "events")
	require.NoError(t, err)
	defer events.Body.Close()

	got := process(t, "run", "--dir", dir, "--yes", "-q", "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	messages := bufio.NewReader(events.Body)
	spans, ended := map[string]bool{}, false
	for !ended {
		line, err := messages.ReadString('\n')
		require.NoError(t, err)
		data, found := strings.CutPrefix(line, "data: ")
		if !found {
			continue
		}
		var p recording.Patch
		require.NoError(t, json.Unmarshal([]byte(data), &p))
		for _, s := range p.Spans {
			spans[s.ID] = true
		}
		for _, r := range p.Runs {
			ended = ended || r.Status == "done"
		}
	}
	require.Greater(t, len(spans), 100)
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.Wait(), "it is no error")
	_, err = messages.ReadString(0)
	require.Error(t, err, "the page was sent away")
}

// A browser is opened at the address, and that there is none is said.
func TestInspectOpens(t *testing.T) {
	_, trace := traced(t)
	bin := t.TempDir()
	seen := filepath.Join(bin, "seen")
	t.Setenv("PATH", bin)
	got := fixpoint(t, "", "inspect", trace, "--open")
	require.Equal(t, cli.ExitError, got.code)
	require.Contains(t, got.err, "without --open")

	require.NoError(t, syscall.Mkfifo(seen, 0o600))
	for _, name := range []string{"xdg-open", "open"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho \"$1\" > "+seen+"\n"), 0o700))
	}
	c := child(t, "", "inspect", trace, "--open")
	c.Env = append(c.Env, "PATH="+bin)
	pipe, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	scan := bufio.NewScanner(pipe)
	require.True(t, scan.Scan())
	told, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.Equal(t, scan.Text()+"\n", string(told))
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.NoError(t, c.Wait())
}
