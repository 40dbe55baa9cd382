package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

// The page is never written over what it is made of, nor in the place of a device.
func TestInspectHTMLSparesWhatItReads(t *testing.T) {
	dir, trace := garden(t), filepath.Join(t.TempDir(), "trace.jsonl")
	folder := filepath.Join(t.TempDir(), "runs")
	got := fixpoint(t, "", "run", agent, "--dir", dir, "--trace", trace, "--store", folder, "-q", "--yes")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	kept, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range kept {
		if file := filepath.Join(folder, e.Name()); e.Type().IsRegular() && e.Name() != ".gitignore" {
			got := fixpoint(t, "", "inspect", "--store", folder, "--html", file)
			require.Equal(t, cli.ExitUsage, got.code, file)
			require.Contains(t, got.err, "is what is to be shown; name another file")
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(trace, link))
	before, err := os.ReadFile(trace)
	require.NoError(t, err)
	for _, file := range []string{trace, link} {
		got := fixpoint(t, "", "inspect", trace, "--html", file)
		require.Equal(t, cli.ExitUsage, got.code, file)
		require.Contains(t, got.err, "is what is to be shown; name another file")
	}
	after, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))

	null := filepath.Join(t.TempDir(), "null")
	require.NoError(t, os.Symlink(os.DevNull, null))
	got = fixpoint(t, "", "inspect", trace, "--html", null)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	info, err := os.Lstat(null)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "it is still what it was")
	folder = t.TempDir()
	got = fixpoint(t, "", "inspect", trace, "--html", folder)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "is a folder; name a file")
}

// What is no trace by its looks is told as what it is, whoever reads it.
func TestFilesThatAreNoTraces(t *testing.T) {
	folder := t.TempDir()
	packed := filepath.Join(folder, "trace.jsonl.gz")
	require.NoError(t, os.WriteFile(packed, []byte("\x1f\x8b\x08\x00\x00\x00"), 0o600))
	for file, says := range map[string]string{
		packed: "is compressed; uncompress it first",
		folder: "is a folder; name the file of a trace, or a store with --store",
	} {
		for _, args := range [][]string{{"inspect", file}, {"inspect", file, "--html", "-"}, {"explain", file, "key"}, {"why", file, "call"}} {
			got := fixpoint(t, "", args...)
			require.Equal(t, cli.ExitUsage, got.code, "%v", args)
			require.Contains(t, got.err, says, "%v", args)
			require.Empty(t, got.out)
		}
	}
}

// A file without a line is no answer to what happened; but one that is to be followed may
// be about to be written.
func TestEmptyTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, args := range [][]string{{"inspect", file, "--html", "-"}, {"explain", file, "key"}, {"why", file, "call"}} {
		got := fixpoint(t, "", args...)
		require.Equal(t, cli.ExitUsage, got.code, "%v", args)
		require.Contains(t, got.err, file+" is no trace: it is empty, and nothing was recorded in it", "%v", args)
		require.Empty(t, got.out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := told(func(p []byte) (int, error) {
		cancel() // it is served
		return len(p), nil
	})
	var errs bytes.Buffer
	code := cli.Run(ctx, []string{"inspect", file}, cli.IO{In: strings.NewReader(""), Out: out, Err: &errs})
	require.Equal(t, cli.ExitOK, code, errs.String())
	require.Contains(t, errs.String(), "note: "+file+" is empty so far")
}

type told func([]byte) (int, error)

func (w told) Write(p []byte) (int, error) { return w(p) }

// A trace is for those who may read what the model read.
func TestTraceFilesAreTheirOwnersAlone(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	got := fixpoint(t, "", "run", agent, "--dir", garden(t), "--trace", trace, "-q", "--yes")
	require.Equal(t, cli.ExitOK, got.code, got.err)
	info, err := os.Stat(trace)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}
