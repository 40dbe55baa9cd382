package exechook_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/files"
	"github.com/ddd26017/fixpoint/plugins/shell"
)

// A guard that is written for the tools of agents sees every first-party tool that does
// the same, under the names that it knows.
func TestFirstPartyTools(t *testing.T) {
	editor, err := files.Open(t.TempDir(), files.Options{})
	require.NoError(t, err)
	sh, err := shell.New(t.TempDir(), shell.Options{})
	require.NoError(t, err)
	config, _ := enginetest.Config(t, editor, sh)
	model := enginetest.NewScript(enginetest.Say("done"))
	config.Model = model
	_, err = enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	names := map[string]string{}
	for _, tool := range model.Requests()[0].Tools {
		theirs := exechook.DefaultTools()[tool.Name]
		args := map[string]bool{}
		var schema struct {
			Properties map[string]any `json:"properties"`
		}
		require.NoError(t, json.Unmarshal([]byte(tool.Schema), &schema))
		for arg := range schema.Properties {
			args[arg] = true
		}
		for own := range theirs.Args {
			require.True(t, args[own], "%s has no argument %s", tool.Name, own)
		}
		names[tool.Name] = theirs.Name
	}
	require.Equal(t, map[string]string{"shell": "Bash", "read_file": "Read", "write_file": "Write", "edit_file": "Edit", "list_files": "Glob", "search_text": "Grep"}, names)
	_, input, err := exechook.DefaultTools()["edit_file"].There(inference.ToolCall{Args: `{"path":"a","old":"b","new":"c"}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"file_path":"a","old_string":"b","new_string":"c"}`, string(input))
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]exechook.Options{
		"has no command":       {Settings: exechook.Settings{Rules: []exechook.Rule{{Event: exechook.Stop}}}},
		"is no event":          {Settings: exechook.Settings{Rules: []exechook.Rule{{Event: "PostCompact", Command: "x"}}}},
		"settings: the matche": {Settings: exechook.Settings{Rules: []exechook.Rule{{Event: exechook.PreToolUse, Command: "x", Matcher: "("}}}},
		"must not be negative": {Timeout: -1},
		"Shell is empty":       {Shell: []string{}},
		"both become":          {Tools: map[string]exechook.ToolName{"t": {Args: map[string]string{"a": "x", "b": "x"}}}},
		"name is empty":        {Tools: map[string]exechook.ToolName{"t": {Args: map[string]string{"": "x"}}}},
	} {
		_, err := engine.New(engine.Config{Plugins: []engine.Plugin{exechook.New(o)}})
		require.ErrorIs(t, err, engine.ErrRegistration, want)
		require.ErrorContains(t, err, want)
	}
}
