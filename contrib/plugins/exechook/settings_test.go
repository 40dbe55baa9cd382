package exechook_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
)

func TestParse(t *testing.T) {
	s, err := exechook.Parse("user.json", []byte(`{
  "model": "any", "permissions": {"allow": ["Bash"]},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash|Edit", "description": "d", "hooks": [
        {"type": "command", "command": "a", "timeout": 1.5},
        {"type": "command", "command": "b", "args": [], "fail_open": true}]},
      {"hooks": [{"type": "command", "command": "c", "shell": "bash", "statusMessage": "checking"}]}
    ],
    "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "d"}]}],
    "PostToolUse": []
  }
}`))
	require.NoError(t, err)
	open := true
	require.Equal(t, exechook.Settings{Rules: []exechook.Rule{
		{Event: exechook.PreToolUse, Matcher: "Bash|Edit", Command: "a", Timeout: 1500 * time.Millisecond, File: "user.json", Line: 6},
		{Event: exechook.PreToolUse, Matcher: "Bash|Edit", Command: "b", Args: []string{}, FailOpen: &open, File: "user.json", Line: 7},
		{Event: exechook.PreToolUse, Command: "c", Shell: "bash", File: "user.json", Line: 8},
		{Event: exechook.Stop, Command: "d", File: "user.json", Line: 10},
	}}, s)
	for _, empty := range []string{`{}`, `{"hooks": {}}`, `{"permissions": {}}`} {
		s, err := exechook.Parse("f", []byte(empty))
		require.NoError(t, err)
		require.Empty(t, s)
	}
}

func TestParseFaults(t *testing.T) {
	hook := func(members string) string {
		return "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [\n  {" + members + "}]}]}}"
	}
	for text, want := range map[string]string{
		``:                                     `s.json:1:1: the file ends too early`,
		`{"hooks": `:                           `s.json:1:11: the file ends too early`,
		"{\n  hooks}":                          `s.json:2:3: not JSON`,
		`[]`:                                   `s.json:1:1: the settings are a list; want an object`,
		`{} {}`:                                `s.json:1:4: there is something after the settings`,
		`{"hooks": 1}`:                         `s.json:1:11: hooks is a number; want an object`,
		`{"hooks": {}, "hooks": {}}`:           `s.json:1:15: "hooks" is there twice`,
		"{\"hooks\": {\n  \"PreTool\": []}}":   `s.json:2:3: there is no event "PreTool"; use one of Notification, `,
		`{"hooks": {"pretooluse": []}}`:        `there is no event "pretooluse"; did you mean PreToolUse?`,
		`{"hooks": {"Stop": {}}}`:              `s.json:1:20: Stop is an object; want a list`,
		`{"hooks": {"Stop": [1]}}`:             `an entry of Stop is a number; want an object`,
		`{"hooks": {"Stop": [{}]}}`:            `s.json:1:21: an entry of Stop has no hooks`,
		`{"hooks": {"Stop": [{"hook": []}]}}`:  `s.json:1:22: an entry of Stop has no member "hook"; use matcher and hooks`,
		`{"hooks": {"Stop": [{"hooks": {}}]}}`: `hooks is an object; want a list`,
		`{"hooks": {"Stop": [{"hooks": ["x"]}]}}`:                                                    `a hook of Stop is a string; want an object`,
		`{"hooks": {}, "disableAllHooks": "yes"}`:                                                    `s.json:1:34: disableAllHooks is a string; want true or false`,
		`{"hooks": {"PreToolUse": [{"matcher": "^(Bash", "hooks": []}]}}`:                            `s.json:1:39: the matcher is no regular expression`,
		`{"hooks": {"PreToolUse": [{"matcher": "(?!Bash)", "hooks": []}]}}`:                          `without lookaround`,
		`{"hooks": {"PreToolUse": [{"matcher": "|", "hooks": []}]}}`:                                 `the matcher "|" names nothing`,
		`{"hooks": {"PreToolUse": [{"matcher": 1, "hooks": []}]}}`:                                   `matcher is a number; want a string`,
		hook(`"command": "x"`):                                                                       `s.json:2:3: a hook of PreToolUse has no type`,
		hook(`"type": "command"`):                                                                    `s.json:2:3: a hook of PreToolUse has no command`,
		hook(`"type": "command", "command": " "`):                                                    `has no command`,
		hook(`"type": "prompt", "prompt": "x"`):                                                      `s.json:2:12: hooks of type "prompt" are not supported`,
		hook(`"type": "command", "command": 1`):                                                      `command is a number; want a string`,
		hook(`"type": "command", "command": "x", "timeout": -1`):                                     `s.json:2:50: the timeout is -1; want seconds, more than 0`,
		hook(`"type": "command", "command": "x", "timeout": 0`):                                      `the timeout is 0`,
		hook(`"type": "command", "command": "x", "timeout": 1e99`):                                   `the timeout is 1e99`,
		hook(`"type": "command", "command": "x", "timeout": "5"`):                                    `timeout is a string; want a number`,
		hook(`"type": "command", "command": "x", "fail_open": 1`):                                    `fail_open is a number; want a bool`,
		hook(`"type": "command", "command": "x", "failopen": true`):                                  `s.json:2:39: a hook has no member "failopen"`,
		hook(`"type": "command", "command": "x", "if": "Bash(rm *)"`):                                `if is not supported`,
		hook(`"type": "command", "command": "x", "args": ["a", 1]`):                                  `an argument is a number`,
		hook(`"type": "command", "command": "x", "args": [], "shell": "sh"`):                         `leave shell out`,
		hook(`"type": "command", "command": "x", "shell": "sh -e"`):                                  `want the name of one program`,
		hook(`"type": "command", "command": "x\u0000"`):                                              `NUL`,
		`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "fail_open": true}]}]}}`: `fail_open has no meaning at Stop`,
		strings.Repeat("[", 100):                                                                     `nested deeper than 64 levels`,
	} {
		s, err := exechook.Parse("s.json", []byte(text))
		require.ErrorIs(t, err, exechook.ErrSettings, text)
		require.ErrorContains(t, err, want, text)
		require.Empty(t, s, text)
	}
	_, err := exechook.Parse("s.json", []byte("{\"hooks\": {\"A\": [],\n\"B\": []}}"))
	require.ErrorContains(t, err, `s.json:1:12: there is no event "A"`)
	require.ErrorContains(t, err, `s.json:2:1: there is no event "B"`, "all mistakes are told at once")
}

func TestParseWarnings(t *testing.T) {
	s, err := exechook.Parse("s.json", []byte(`{"hooks": {
  "PostCompact": [{"matcher": "auto", "hooks": [{"type": "command", "command": "x"}]}],
  "Stop": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x", "async": true}]}],
  "PreToolUse": [{"matcher": "mcp__memory", "hooks": [{"type": "command", "command": "y", "once": true}]}],
  "SessionStart": [{"matcher": "clear|compact", "hooks": []}, {"matcher": "startup|clear", "hooks": []}]
}}`))
	require.NoError(t, err)
	require.Len(t, s.Rules, 2)
	require.Equal(t, []string{
		`s.json:2:3: PostCompact is never fired here: its hooks do not run`,
		`s.json:3:24: Stop has nothing to match: the matcher "Bash" is not looked at`,
		`s.json:3:78: an async hook is waited for like any other; what it says decides nothing`,
		`s.json:4:30: "mcp__memory" names a server and no tool; for all of its tools write "mcp__memory__.*"`,
		`s.json:4:91: once is not supported: the command runs every time`,
		`s.json:5:32: the matcher "clear|compact" of SessionStart fits nothing that there is here: startup, resume`,
	}, s.Warnings)

	s, err = exechook.Parse("s.json", []byte(`{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`))
	require.NoError(t, err)
	require.Empty(t, s.Rules)
	require.Len(t, s.Warnings, 1)
}

func TestLoadMergesInOrder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, command string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "`+command+`"}]}]}}`), 0o600))
		return path
	}
	user, project := write("user.json", "a"), write("project.json", "b")
	s, err := exechook.Load(project, user)
	require.NoError(t, err)
	require.Len(t, s.Rules, 2)
	require.Equal(t, "b", s.Rules[0].Command)
	require.Equal(t, user, s.Rules[1].File)

	_, err = exechook.Load(user, filepath.Join(dir, "local.json"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(project, []byte(`{"hooks": {"Stp": []}}`), 0o600))
	_, err = exechook.Load(user, project)
	require.ErrorContains(t, err, project+":1:12: there is no event")
}

func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		pattern string
		name    string
		want    bool
	}{
		{"", "Bash", true}, {"*", "Bash", true}, {" ", "Bash", true},
		{"Bash", "Bash", true}, {"Bash", "BashOutput", false}, {"Bash", "bash", false},
		{"Edit|Write", "Write", true}, {"Edit | Write", "Edit", true}, {"Edit, Write", "Write", true}, {"Edit|Write", "MultiEdit", false},
		{"Edit.*", "MultiEdit", true}, {"^Edit", "MultiEdit", false}, {"^Edit$", "Edit", true},
		{"mcp__memory__.*", "mcp__memory__create", true}, {"mcp__.*__write.*", "mcp__disk__write_file", true},
		{"mcp__memory", "mcp__memory__create", false}, {"mcp__brave-search__web", "mcp__brave-search__web", true},
	} {
		got, err := exechook.Fits(c.pattern, c.name)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%q on %q", c.pattern, c.name)
	}
	both, err := exechook.Fits("write_file", "Write", "write_file")
	require.NoError(t, err)
	require.True(t, both, "the tool's own name counts too")
}

// FuzzParse feeds the settings reader anything: it gives either rules that are valid
// or errors that say where, and the same twice.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"hooks": {"PreToolUse": [{"matcher": "a|b", "hooks": [{"type": "command", "command": "x", "timeout": 3}]}]}}`,
		`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "args": ["é"]}]}], "PreCompact": 1}, "disableAllHooks": true}`,
		"{\"hooks\":\n{\"Nope\": []}}", `{"hooks": {"Stop": [{}]}} x`, "\xff", `{"a":1,}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := exechook.Parse("f", data)
		if err == nil {
			require.NoError(t, s.Validate())
			for _, r := range s.Rules {
				require.Positive(t, r.Line)
			}
		} else {
			require.ErrorIs(t, err, exechook.ErrSettings)
			require.Empty(t, s)
			var e *exechook.SettingsError
			require.ErrorAs(t, err, &e)
			require.Positive(t, e.Line)
			require.LessOrEqual(t, e.Line, 1+strings.Count(string(data), "\n"))
		}
		again, err2 := exechook.Parse("f", data)
		require.Equal(t, s, again)
		require.Equal(t, err, err2)
	})
}
