package cli_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/engine"
)

// Capability B10. The manifest shows which hooks could conflict.
func TestDescribe(t *testing.T) {
	got := fixpoint(t, "", "describe", agent)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "describe.txt", got.out)

	got = fixpoint(t, "", "describe", "--json")
	var m engine.Manifest
	require.NoError(t, json.Unmarshal([]byte(got.out), &m))
	require.Equal(t, "steward", m.Agent)
	require.Len(t, m.Conflicts, 1)
	require.Equal(t, "headline", m.Conflicts[0].Key)
}

func TestDescribeDraws(t *testing.T) {
	for flag, file := range map[string]string{"--mermaid": "describe.mmd", "--dot": "describe.dot", "--svg": "describe.svg"} {
		got := fixpoint(t, "", "describe", flag, agent)
		require.Equal(t, cli.ExitOK, got.code, got.err)
		golden(t, file, got.out)
		if flag == "--svg" {
			d := xml.NewDecoder(strings.NewReader(got.out))
			for {
				if _, err := d.Token(); err != nil {
					require.True(t, errors.Is(err, io.EOF), err)
					break
				}
			}
		}
	}
}

// In the drawing of all plugins together no name is cut.
func TestDescribeDrawsEveryPlugin(t *testing.T) {
	var all []struct {
		Name string `json:"name"`
	}
	require.NoError(t, json.Unmarshal([]byte(fixpoint(t, "", "plugins", "--json").out), &all))
	require.Greater(t, len(all), 20)
	spec := "id: all\nmodel_id: script:script.json\nplugin_ids:\n"
	for _, p := range all {
		spec += "  - " + p.Name + "\n"
	}
	file := specFile(t, spec, `{"answers": [{"text": "hi"}]}`)
	got := fixpoint(t, "", "describe", "--svg", file)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	require.NotContains(t, got.out, "…")

	var m engine.Manifest
	require.NoError(t, json.Unmarshal([]byte(fixpoint(t, "", "describe", "--json", file).out), &m))
	for _, p := range m.Plugins {
		require.Contains(t, got.out, ">"+p.Name+"</text>")
		for _, h := range p.Hooks {
			require.Contains(t, got.out, ">"+h.ID+"</text>")
		}
		for _, g := range p.Gates {
			require.Contains(t, got.out, ">"+g.ID+"</text>")
		}
		for _, k := range p.Keys {
			require.Contains(t, got.out, ">"+k.Name+"</text>")
		}
	}
}

// Capability B10. What hooks could fight over is told before anything runs, and afterwards
// beside what happened.
func TestDescribeConflicts(t *testing.T) {
	got := fixpoint(t, "", "describe", "--conflicts", agent)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "conflicts.txt", got.out)

	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	ran := fixpoint(t, "", "run", agent, "--dir", garden(t), "--yes", "--trace", trace)
	require.Equal(t, cli.ExitOK, ran.code, ran.err)
	got = fixpoint(t, "", "describe", "--conflicts", "--observed", trace, agent)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "observed.txt", got.out)

	twice := fixpoint(t, "", "describe", "--conflicts", "--observed", trace, "--observed", trace, agent)
	require.Contains(t, got.out, " lost it to focus 5 times\n")
	require.Contains(t, twice.out, " lost it to focus 10 times\n")
}

func TestDescribeObservedFaults(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	notes := file("notes", `{"type":"trace","version":1}`+"\n\n"+`{"type":"dropped","events":3}`)
	require.Equal(t, cli.ExitOK, fixpoint(t, "", "describe", "--conflicts", "--observed", notes).code)

	for want, args := range map[string][]string{
		"fixpoint: --observed needs --conflicts\n":             {"--observed", notes},
		"fixpoint: --observed: open " + dir:                    {"--conflicts", "--observed", filepath.Join(dir, "nope")},
		"bad:2: engine: bad event of type \"phase_fished\"":    {"--conflicts", "--observed", file("bad", `{"type":"trace"}`+"\n"+`{"type":"phase_fished"}`+"\n")},
		"want the events of a run, one on each line":           {"--conflicts", "--observed", file("text", "hello\n")},
		"[json mermaid dot svg conflicts] are set none of the": {"--conflicts", "--dot"},
	} {
		got := fixpoint(t, "", append([]string{"describe"}, args...)...)
		require.Equal(t, cli.ExitUsage, got.code, args)
		require.Contains(t, got.err, want)
		require.Empty(t, got.out)
	}
}
