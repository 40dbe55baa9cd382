package exechook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
)

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]exechook.Options{
		"has no command":       {Settings: exechook.Settings{Rules: []exechook.Rule{{Event: exechook.Stop}}}},
		"is no event":          {Settings: exechook.Settings{Rules: []exechook.Rule{{Event: "PreCompact", Command: "x"}}}},
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
