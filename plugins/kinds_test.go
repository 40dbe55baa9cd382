//go:build unix

package plugins_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/shell"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
)

// The plugins that look after a workspace know, without being told, that a command line
// may change it.
func TestShellChangesTheWorkspace(t *testing.T) {
	dir := t.TempDir()
	sh, err := shell.New(dir, shell.Options{})
	require.NoError(t, err)
	undo := snapshots.New(snapshots.Options{Dir: dir, Store: t.TempDir()})
	config, _ := enginetest.Config(t, sh, undo, checks.New(checks.Options{Dir: dir}))
	line := func(id string) enginetest.Answer {
		return enginetest.Call(id, shell.Tool, map[string]string{"command": "echo " + id + " > file"})
	}
	config.Model = enginetest.NewScript(line("c1"), line("c2"), enginetest.Say("done"))
	th, err := enginetest.Engine(t, config).NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{"checks": `{"commands": [{"args": ["true"]}]}`}}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	taken := snapshots.List(th.Snapshot())
	require.Len(t, taken, 2, "at the start, and with what the first line wrote")
	require.Equal(t, []string{shell.Tool, "c2"}, []string{taken[1].Tool, taken[1].Call})
	require.Equal(t, 3, checks.Last.Get(th.Snapshot()).Step, "it was checked")
}
