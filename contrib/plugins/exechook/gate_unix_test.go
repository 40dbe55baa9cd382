//go:build unix

package exechook_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// A program that exits with 2 blocks the call, and the model reads why.
//
// Capability M9. Capability M1. Report 4.
func TestExitCode2Blocks(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "Bash", s.script("guard.sh", `
		case "$(cat)" in *"rm -rf"*) echo "no deleting" >&2; exit 2;; esac`))
	res := s.play(bash("bad", "rm -rf /"), bash("good", "ls"))
	require.NoError(t, res.Err)
	require.Equal(t, []string{`shell{"command":"ls"}`}, s.ran)
	require.Equal(t, "blocked: no deleting", s.result("bad").Content)
	v := s.resolved("bad")
	require.Equal(t, gate.Decided, v.Cause)
	require.Equal(t, exechook.Name, v.Plugin)
	require.Empty(t, s.notices)
}

// A program that does not get to decide blocks the call as well, unless its rule says
// otherwise, and it is told what went wrong: a missing program, a missing script and a
// no are three things.
//
// Capability M9. Report 5.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		args    []string
		shell   string
		files   map[string]string
		cause   exechook.Cause
		says    string
	}{
		"status":    {command: "echo oops >&2; exit 1", cause: exechook.Exited, says: "status 1"},
		"no such":   {command: "./ghost --x", cause: exechook.NotFound, says: "ghost"},
		"no such 2": {command: "ghost-program", args: []string{}, cause: exechook.NotFound, says: "ghost-program"},
		"forbidden": {command: "./plain.sh", files: map[string]string{"plain.sh": "exit 0"}, cause: exechook.NotExecutable, says: "126"},
		"folder":    {command: "./", args: []string{}, cause: exechook.NotExecutable, says: "permission denied"},
		"signal":    {command: "kill -9 $$", cause: exechook.Crashed, says: "killed"},
		"timeout":   {command: "read x < pipe", cause: exechook.TimedOut, says: "within 50ms"},
		"bad json":  {command: `echo '{"decision": "blo'`, cause: exechook.BadOutput, says: "JSON"},
		"bad word":  {command: `echo '{"decision": "maybe"}'`, cause: exechook.BadOutput, says: "maybe"},
		"too long":  {command: `printf '{"reason": "%09999d"}' 1`, cause: exechook.BadOutput, says: "of which 4096 count"},
		"too late":  {command: `printf '%9999s{"decision":"block"}' ''`, cause: exechook.BadOutput, says: "of which 4096 count"},
		// What an interpreter says and exits with when its script is not there.
		"no script": {
			command: `sh "$CLAUDE_PROJECT_DIR"/run/python3 ./gone.py`, cause: exechook.Exited, says: "status 1",
			files: map[string]string{"run/python3": "exit 1"},
		},
		"no script 2": {
			command: `run/python3 ./gone.py`, cause: exechook.NoScript, says: "gone.py could not be opened",
			files: map[string]string{"run/python3": "#!/bin/sh\necho \"python3: can't open file '$1': [Errno 2] No such file or directory\" >&2\nexit 2"},
		},
		"no script 3": {
			command: `"$CLAUDE_PROJECT_DIR/run/python3" -u "$CLAUDE_PROJECT_DIR/gone.py" --strict`, cause: exechook.NoScript, says: "gone.py could not be opened",
			files: map[string]string{"run/python3": "#!/bin/sh\necho \"python3: can't open file '$2'\" >&2\nexit 2"},
		},
		"no script 4": {
			command: `cd "$CLAUDE_PROJECT_DIR"/run && ./python3 gone.py`, cause: exechook.NoScript, says: "gone.py could not be opened",
			files: map[string]string{"gone.py": "", "run/python3": "#!/bin/sh\necho \"python3: can't open file '$PWD/$1'\" >&2\nexit 2"},
		},
		"no folder": {
			// What dash says and exits with.
			command: `cd gone && run/python3 x.py`, cause: exechook.NoScript, says: "gone could not be opened",
			files: map[string]string{"run/sh": "#!/bin/sh\necho \"sh: 1: cd: can't cd to gone\" >&2\nexit 2"},
			shell: "run/sh",
		},
		"bad script": {
			command: `run/bash ./broken.sh`, cause: exechook.BadScript, says: "could not parse",
			files: map[string]string{"run/bash": "#!/bin/sh\necho \"$1: line 3: syntax error: unexpected end of file\" >&2\nexit 2", "broken.sh": "if"},
		},
	} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fail_open=%v", name, open), func(t *testing.T) {
				s := newStage(t)
				s.options.MaxOutput = 4096
				s.fifo("pipe")
				for file, body := range c.files {
					path := filepath.Join(s.dir, file)
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
					require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
					if strings.HasPrefix(file, "run/") {
						require.NoError(t, os.Chmod(path, 0o700))
					}
				}
				limit := time.Minute
				if c.cause == exechook.TimedOut {
					limit = 50 * time.Millisecond
				}
				s.on(exechook.PreToolUse, "", c.command, failOpen(open), timeout(limit), func(r *exechook.Rule) { r.Args, r.Shell = c.args, c.shell })
				s.play(bash("c", "ls"))
				require.Len(t, s.notices, 1)
				n := s.notices[0]
				require.Equal(t, exechook.FailureNotice, n.Kind)
				require.Equal(t, c.cause, n.Cause, n.Text)
				require.Equal(t, []string{c.command, "s.json:1", "c"}, []string{n.Command, n.Place, n.Call})
				require.Contains(t, n.Text, c.says)
				if open {
					require.Len(t, s.ran, 1)
					return
				}
				require.Empty(t, s.ran)
				require.Equal(t, gate.GateFailed, s.resolved("c").Cause)
				require.Equal(t, "blocked: the policy of exechook could not be checked", s.result("c").Content)
				require.Equal(t, n.Text, enginetest.Select[engine.GateVoted](s.rec.Events())[0].Error)
			})
		}
	}
}

// A no stays a no, whatever its text looks like, while the script is there.
//
// Report 5.
func TestNoIsNotTakenForAMissingScript(t *testing.T) {
	for name, body := range map[string]string{
		"names itself": "echo \"guard.sh says no\" >&2; exit 2",
		"removes":      "rm guard.sh; echo \"guard.sh: cannot open\" >&2; exit 2",
		"linter":       "echo \"other.sh: line 3: syntax error\" >&2; exit 2",
		"silent":       "exit 2",
		// What it tells about may be what the model wrote.
		"shell":      "echo \"sh: 1: Syntax error: not this\" >&2; exit 2",
		"shell line": "echo \"denied:\nsh: line 1: syntax error\" >&2; exit 2",
		"itself":     "echo \"$0: line 3: syntax error\" >&2; exit 2",
		"itself 2":   "echo \"$0: 3: Syntax error\" >&2; exit 2",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.on(exechook.PreToolUse, "", s.script("guard.sh", body), failOpen(true))
			s.play(bash("c", "ls"))
			require.Empty(t, s.ran)
			require.Equal(t, gate.Decided, s.resolved("c").Cause)
		})
	}
}

// A missing file that the interpreter does not complain about is no evidence: it may be
// the value of an option.
//
// Report 5.
func TestNoIsNotTakenForAMissingOptionValue(t *testing.T) {
	s := newStage(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "perl"), []byte("#!/bin/sh\necho never >&2\nexit 2\n"), 0o700))
	s.on(exechook.PreToolUse, "", `./perl -I ./nolib ./guard.pl`, failOpen(true))
	s.play(bash("c", "ls"))
	require.Empty(t, s.ran)
	require.Equal(t, "blocked: never", s.result("c").Content)

	s = newStage(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "python3"), []byte("#!/bin/sh\necho 'no exfiltration, and no x' >&2\nexit 2\n"), 0o700))
	s.on(exechook.PreToolUse, "", `./python3 -X pycache_prefix=/none/x ./guard.py`, failOpen(true))
	s.play(bash("c", "ls"))
	require.Empty(t, s.ran)
	require.Equal(t, "blocked: no exfiltration, and no x", s.result("c").Content)
}

// A program that reads an argument by its name must not see another one than the tool: a
// call that has one twice, in whatever case, or one that is only nearly the tool's, does
// not get by.
func TestAmbiguousArguments(t *testing.T) {
	for args, runs := range map[string]bool{
		`{"command":"ls"}`:                              true,
		`{"command":"ls","Command":"rm -rf /"}`:         false,
		`{"command":"rm -rf /","command":"ls"}`:         false,
		`{"Command":"rm -rf /"}`:                        false,
		`{"command":"ls","more":{"a":[{"b":1}]}}`:       true,
		`{"command":"ls","more":{"a":[{"b":1,"B":2}]}}`: false,
		`{"command":"ls","more":[{"a":1},{"a":2}]}`:     true,
	} {
		s := newStage(t)
		s.on(exechook.PreToolUse, "Bash", s.script("guard.sh", `case "$(cat)" in *'"command":"rm'*) echo no >&2; exit 2;; esac`), failOpen(true))
		s.play(enginetest.Call("c", "shell", inference.JSON(args)))
		require.Equal(t, runs, len(s.ran) == 1, "%s: %s", args, s.result("c").Content)
	}
}

// What programs read: the names that agents use, for the tool and its arguments.
//
// Capability M9.
func TestStdin(t *testing.T) {
	s := newStage(t)
	s.options.PermissionMode = "plan"
	s.options.TranscriptPath = func(thread string) string { return "/t/" + thread }
	s.options.Env = map[string]string{"MARK": "set"}
	t.Setenv("EXECHOOK_SECRET", "hush")
	s.on(exechook.PreToolUse, "Write", `cat > pre.json; env > env.txt`)
	s.on(exechook.PostToolUse, "write_file", `cat > post.json`)
	s.on(exechook.PostToolUseFailure, "fail", `cat > failure.json`)
	s.on(exechook.PreToolUse, "mcp__disk__.*", `cat > mcp.json`)
	s.play(enginetest.Call("w", "write_file", map[string]string{"path": "x", "content": "<y>"}),
		enginetest.Call("f", "fail", nil), enginetest.Call("m", "mcp__disk__wipe", nil))
	thread := enginetest.Select[engine.RunFinished](s.rec.Events())[0].Thread
	common := fmt.Sprintf(`"session_id": %q, "transcript_path": "/t/%[1]s", "cwd": %[2]q, "permission_mode": "plan"`, thread, s.dir)
	call := `"tool_name": "Write", "tool_use_id": "w", "tool_input": {"file_path": "x", "content": "<y>"}`
	require.JSONEq(t, `{`+common+`, "hook_event_name": "PreToolUse", `+call+`}`, s.file("pre.json"))
	require.JSONEq(t, `{`+common+`, "hook_event_name": "PostToolUse", `+call+`,
		"tool_response": {"content": "did write_file", "details": {"code": 0}, "success": true}}`, s.file("post.json"))
	require.JSONEq(t, `{`+common+`, "hook_event_name": "PostToolUseFailure", "tool_name": "fail", "tool_use_id": "f", "tool_input": {},
		"error": "it broke", "is_interrupt": false}`, s.file("failure.json"))
	require.Contains(t, s.file("mcp.json"), `"mcp__disk__wipe"`)
	require.Contains(t, s.file("env.txt"), "CLAUDE_PROJECT_DIR="+s.dir)
	require.Contains(t, s.file("env.txt"), "MARK=set")
	require.NotContains(t, s.file("env.txt"), "hush", "what is not on the list is not inherited")
}

// A program rewrites the arguments under its own names; the tool and the programs
// check the new ones.
//
// Capability M9. Capability M2.
func TestRewrite(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "Write", `cat >> seen; echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse",
		"permissionDecision": "allow", "updatedInput": {"file_path": "safe", "content": "y"}}}'`)
	s.play(enginetest.Call("w", "write_file", map[string]string{"path": "x", "content": "y"}))
	require.Equal(t, []string{`write_file{"content":"y","path":"safe"}`}, s.ran)
	seen := strings.Split(strings.TrimSpace(s.file("seen")), "\n")
	require.Len(t, seen, 2, "once for each form of the arguments")
	require.Contains(t, seen[1], `"file_path":"safe"`)
	edits := enginetest.Select[engine.CallEdited](s.rec.Events())
	require.Len(t, edits, 1)
	require.Equal(t, exechook.Name, edits[0].Plugin)
}

// A rewrite into what another program forbids is caught.
func TestRewriteIntoTheForbidden(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `case "$(cat)" in *evil*) echo forbidden >&2; exit 2;; esac`)
	s.on(exechook.PreToolUse, "", `echo '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "evil"}}}'`)
	s.play(bash("c", "good"))
	require.Empty(t, s.ran)
	require.Equal(t, "blocked: forbidden", s.result("c").Content)
}

// A program that adds something to whatever it sees is not asked to add it for ever,
// and its approval goes with what it wrote.
func TestRewriterThatAlwaysRewrites(t *testing.T) {
	s := newStage(t)
	s.change = func(c *engine.Config) { c.GateDefault = engine.DefaultDeny }
	s.on(exechook.PreToolUse, "", s.script("limit.sh", `
		command=$(sed 's/.*"command":"\([^"]*\)".*/\1/')
		echo x >> count
		case "$command" in "timeout 9 "*) [ "$1" ] || exit 0;; esac
		echo '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "timeout 9 '"$command"'"}}}'`)+" always")
	s.play(bash("c", "ls"))
	require.Equal(t, []string{`shell{"command":"timeout 9 ls"}`}, s.ran)
	require.Equal(t, "x\nx\n", s.file("count"))
}

// Two programs that undo each other's rewrite are stopped, and named.
func TestRewritersThatFight(t *testing.T) {
	s := newStage(t)
	swap := func(from, to string) string {
		return fmt.Sprintf(`case "$(cat)" in *%s*) echo '{"hookSpecificOutput": {"updatedInput": {"command": "%s"}}}';; esac # %[1]s`, from, to)
	}
	s.on(exechook.PreToolUse, "", swap("cats", "dogs"))
	s.on(exechook.PreToolUse, "", swap("dogs", "cats"))
	s.play(bash("c", "cats"))
	require.Empty(t, s.ran)
	require.Contains(t, s.result("c").Content, "rewrite each other's arguments without end")
	require.Contains(t, s.result("c").Content, "# cats")
	require.Contains(t, s.result("c").Content, "# dogs")
}

// Of two different rewrites the one of the first rule counts, whichever program is
// faster, and the conflict is told.
//
// Report 1.
func TestOrderOfRulesDecides(t *testing.T) {
	s := newStage(t)
	s.fifo("gun")
	// The one that is to be second waits until the first has said its word.
	racer := func(name string) string {
		return s.script(name+".sh", `
			case "$(cat)" in *start*) ;; *) exit 0;; esac
			say() { echo '{"reason": "`+name+`", "hookSpecificOutput": {"updatedInput": {"command": "by `+name+`"}}}'; }
			if [ "$FIRST" = `+name+` ]; then say; echo > gun; else read x < gun; say; fi`)
	}
	s.on(exechook.PreToolUse, "", racer("a"))
	s.on(exechook.PreToolUse, "", racer("b"))
	for i := range 100 {
		s.ran, s.notices = nil, nil
		s.options.Env = map[string]string{"FIRST": []string{"a", "b"}[i%2]}
		s.play(bash("c", "start"))
		require.Equal(t, []string{`shell{"command":"by a"}`}, s.ran)
		require.Len(t, s.notices, 1)
		require.Equal(t, exechook.ConflictNotice, s.notices[0].Kind)
		require.Contains(t, s.notices[0].Text, `"sh ./a.sh" (s.json:1) and "sh ./b.sh" (s.json:2)`)
	}
}

// A program without an opinion erases nobody's rewrite, before or after it.
//
// Report 2.
func TestSilentProgramErasesNothing(t *testing.T) {
	for _, silent := range []string{`true`, `echo '{}'`, `echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse"}}'`} {
		for _, first := range []bool{true, false} {
			s := newStage(t)
			if first {
				s.on(exechook.PreToolUse, "", silent)
			}
			s.on(exechook.PreToolUse, "", `echo '{"hookSpecificOutput": {"updatedInput": {"command": "new"}}}'`)
			if !first {
				s.on(exechook.PreToolUse, "", silent)
			}
			s.play(bash("c", "old"))
			require.Equal(t, []string{`shell{"command":"new"}`}, s.ran)
		}
	}
}

// A no wins over whatever else is said, by programs and by other plugins, in any order.
//
// Report 3.
func TestDenyWins(t *testing.T) {
	deny := `echo "never" >&2; exit 2`
	for name, other := range map[string]string{
		"allow": `echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'`,
		"ask":   `echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'`,
		"defer": `echo '{"hookSpecificOutput": {"permissionDecision": "defer"}}'`,
		"edit":  `echo '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "x"}}}'`,
	} {
		for _, order := range [][]string{{deny, other}, {other, deny}} {
			s := newStage(t)
			for _, command := range order {
				s.on(exechook.PreToolUse, "", command)
			}
			for i, d := range []gate.Decision{gate.Approve(), gate.SetResult(inference.ToolResult{Content: "fake"}), gate.Suspend(gate.Ticket{})} {
				s.plugins = append(s.plugins, engine.NewPlugin(fmt.Sprint("other", i), func(r *engine.Registrar) error {
					r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return d, nil }))
					return nil
				}))
			}
			s.play(bash("c", "ls"))
			require.Empty(t, s.ran, name)
			require.Equal(t, "blocked: never", s.result("c").Content, name)
		}
	}
}

// Of any two opinions the stricter counts, in either order, and a failure counts as
// stricter than all but a no.
func TestStrictestOpinionCounts(t *testing.T) {
	say := func(o string) string {
		return `echo '{"hookSpecificOutput": {"permissionDecision": "` + o + `"}}'`
	}
	opinions := []struct {
		command string
		kind    gate.Kind
		cause   gate.Cause
	}{ // from the weakest to the strictest
		{"true", gate.KindAbstain, gate.ByDefault},
		{say("allow"), gate.KindApprove, gate.Decided},
		{say("ask"), gate.KindSuspend, gate.Decided},
		{say("defer"), gate.KindSuspend, gate.Decided},
		{"exit 1", gate.KindBlock, gate.GateFailed},
		{say("deny"), gate.KindBlock, gate.Decided},
	}
	for i, a := range opinions {
		for j, b := range opinions {
			s := newStage(t)
			s.on(exechook.PreToolUse, "", a.command)
			s.on(exechook.PreToolUse, "", b.command)
			s.play(bash("c", "ls"))
			want, got := opinions[max(i, j)], s.resolved("c")
			require.Equal(t, want.kind, got.Decision, "%s, %s", a.command, b.command)
			require.Equal(t, want.cause, got.Cause, "%s, %s", a.command, b.command)
		}
	}
}

// Reasons come in the order of the rules, and a command that several rules have runs
// once.
func TestReasonsInRuleOrder(t *testing.T) {
	s := newStage(t)
	slow := s.script("slow.sh", `read x < gate; echo "first" >&2; exit 2`)
	s.fifo("gate")
	s.on(exechook.PreToolUse, "Bash", slow)
	s.on(exechook.PreToolUse, "*", slow)
	s.on(exechook.PreToolUse, "Ba.*", `echo go > gate; echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "second"}}'`)
	s.on(exechook.PreToolUse, "Write", `exit 2`)
	s.on(exechook.PreToolUse, "", `exit 7`)
	s.play(bash("c", "ls"))
	content := s.result("c").Content
	require.True(t, strings.HasPrefix(content, "blocked: first\nsecond\nexechook: the PreToolUse hook \"exit 7\""), content)
	require.Equal(t, gate.Decided, s.resolved("c").Cause, "there was a deliberate no")
}

// Rules that share a command are as strict as the strictest of them.
func TestSharedCommandFailsClosed(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", "exit 1", failOpen(true))
	s.on(exechook.PreToolUse, "Bash", "exit 1")
	s.play(bash("c", "ls"))
	require.Empty(t, s.ran)
}

// "continue": false blocks the call and ends the run.
func TestContinueFalseAtTheGate(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `echo '{"continue": false, "stopReason": "enough"}'`)
	res := s.play(bash("c", "ls"))
	require.Empty(t, s.ran)
	require.Equal(t, phase.ReasonBlocked, res.Reason)
	require.Equal(t, "enough", res.Detail)
}

// What a program adds for the model and for people is passed on, once.
func TestContextAndMessageAtTheGate(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `echo '{"systemMessage": "for people", "hookSpecificOutput": {"additionalContext": "for the model"}}'`)
	model := enginetest.NewScript(bash("c", "ls"), bash("d", "ls"), enginetest.Say("done"))
	s.options.Settings.Rules[0].Matcher = "Bash"
	res := s.run(t.Context(), model)
	require.NoError(t, res.Err)
	require.Equal(t, 2, strings.Count(lastRequest(model), "system: for the model"))
	require.Len(t, s.notices, 2)
	require.Equal(t, exechook.MessageNotice, s.notices[0].Kind)
	require.Equal(t, "for people", s.notices[0].Text)
}

// An async program decides nothing.
func TestAsyncDecidesNothing(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `cat > seen; echo no >&2; exit 2`, func(r *exechook.Rule) { r.Async = true })
	s.on(exechook.PreToolUse, "", `exit 9`, func(r *exechook.Rule) { r.Async = true })
	s.play(bash("c", "ls"))
	require.Len(t, s.ran, 1)
	require.NotEmpty(t, s.file("seen"))
	require.Len(t, s.notices, 1)
}

// yes is a resolver that counts and approves.
type yes struct{ tickets []gate.Ticket }

func (y *yes) Resolve(_ context.Context, t gate.Ticket) (phase.Answer, error) {
	y.tickets = append(y.tickets, t)
	return phase.Answer{Ticket: t.ID, Approved: true}, nil
}

// "ask" asks even though another plugin approves, and once, even if the program words
// its reason differently each time.
func TestAsk(t *testing.T) {
	s := newStage(t)
	y := &yes{}
	s.resolve = y
	s.plugins = append(s.plugins, engine.NewPlugin("allow", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Approve(), nil }))
		return nil
	}))
	s.on(exechook.PreToolUse, "", `echo x >> count; echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure? '$$'"}}'`)
	s.play(bash("c", "ls"))
	require.Len(t, s.ran, 1)
	require.Len(t, y.tickets, 1)
	require.Contains(t, y.tickets[0].Message, "Allow Bash?\nsure?")
	require.Contains(t, string(y.tickets[0].Params), `{"tool":"shell","args":{"command":"ls"},"hooks":["`)
	require.Equal(t, "x\nx\n", s.file("count"), "asked again about the answered call")
}

// A yes to one program's question is none to another's that comes up later.
func TestNewQuestionIsAsked(t *testing.T) {
	s := newStage(t)
	y := &yes{}
	s.resolve = y
	ask := `echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "%s"}}'`
	s.on(exechook.PreToolUse, "", fmt.Sprintf(ask, "first?"))
	s.on(exechook.PreToolUse, "", `[ -e asked ] && `+fmt.Sprintf(ask, "second?")+` || touch asked`)
	s.play(bash("c", "ls"))
	require.Len(t, s.ran, 1)
	require.Len(t, y.tickets, 2)
	require.Equal(t, "Allow Bash?\nsecond?", y.tickets[1].Message)
}

// A policy that became stricter while the question was open is heard.
func TestStricterAfterTheQuestion(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `[ -e strict ] && exit 2; echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'`)
	eng := s.engine(enginetest.NewScript(bash("c", "ls"), enginetest.Say("done")))
	thread, err := eng.NewThread("")
	require.NoError(t, err)
	res, err := thread.Run(t.Context(), s.spec, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.Waiting, res.Status)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "strict"), nil, 0o600))
	_, err = thread.Resume(t.Context(), s.spec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
	require.NoError(t, err)
	require.Empty(t, s.ran)
	require.Contains(t, s.result("c").Content, "blocked")
}

// An approval by a program stands for a person's.
func TestAllow(t *testing.T) {
	s := newStage(t)
	s.change = func(c *engine.Config) { c.GateDefault = engine.DefaultDeny }
	s.on(exechook.PreToolUse, "", `case "$(cat)" in *ls*) echo '{"decision": "approve", "reason": "harmless"}';; esac`)
	s.play(bash("a", "ls"), bash("b", "rm"))
	require.Equal(t, []string{`shell{"command":"ls"}`}, s.ran)
	require.Equal(t, "harmless", s.resolved("a").Reason)
}

// A program runs once about a call, however often the gates are asked: here another
// plugin's question has them asked again.
func TestProgramRunsOncePerArgumentsAndAnswer(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `echo x >> count`)
	edits := 0
	s.plugins = append(s.plugins, engine.NewPlugin("editor", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			edits++
			switch edits { // there and back again
			case 1:
				return gate.Edit(`{"command":"b"}`), nil
			case 2:
				return gate.Edit(`{"command":"a"}`), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	}))
	s.play(bash("c", "a"))
	require.Equal(t, []string{`shell{"command":"a"}`}, s.ran)
	require.Equal(t, "x\nx\n", s.file("count"))
}

// What the plugin remembers about calls is bounded: it is gone with the step, and of
// many calls in one step the oldest go first.
func TestMemoryIsBounded(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PermissionRequest, "", "true") // has the gate look at every call, and runs nothing
	var calls []enginetest.Answer
	for i := range 1100 {
		calls = append(calls, bash(fmt.Sprint(i), "ls"))
	}
	most := 0
	s.plugins = append(s.plugins, engine.NewPlugin("look", func(r *engine.Registrar) error {
		r.Hook(phase.AfterToolExecute, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			most = max(most, exechook.Remembered(s.plugin))
			return cmd, nil
		}))
		return nil
	}))
	s.play(enginetest.Answer{}.And(calls...))
	require.Len(t, s.ran, 1100)
	require.Equal(t, 1024, most)
	require.Zero(t, exechook.Remembered(s.plugin))

	s = newStage(t)
	s.on(exechook.PreToolUse, "", `echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'`)
	require.Equal(t, phase.Waiting, s.play(bash("c", "ls")).Status)
	require.Equal(t, 1, exechook.Remembered(s.plugin), "the call still waits")
}

// One call fails and one is blocked: the others of the step are none the worse.
//
// Report 18.
func TestSiblingsAreUnharmed(t *testing.T) {
	for _, way := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		s := newStage(t)
		s.spec.ToolExecution = way
		s.on(exechook.PreToolUse, "", `case "$(cat)" in *bad*) exit 2;; *odd*) exit 5;; esac`)
		s.play(bash("1", "ls").And(bash("2", "bad"), enginetest.Call("3", "fail", nil), bash("4", "odd"), bash("5", "ls")))
		require.Len(t, s.ran, 3)
		var order []string
		for _, e := range enginetest.Select[engine.ToolFinished](s.rec.Events()) {
			order = append(order, fmt.Sprint(e.Call.ID, " ", e.Result.Outcome))
		}
		require.Equal(t, []string{"1 ok", "2 blocked", "3 error", "4 blocked", "5 ok"}, order)
	}
}

// The programs of a run judge the calls of the runs that it delegates to.
func TestDelegateIsJudged(t *testing.T) {
	s := newStage(t)
	s.spec.Delegates = []string{"child"}
	s.change = func(c *engine.Config) {
		c.Agents = []engine.AgentSpec{{ID: "child", ModelID: "child", ActiveHookFilter: []string{"tools"}}}
		c.Models = map[string]inference.Model{"child": enginetest.NewScript(bash("inner", "rm"), enginetest.Say("done"))}
	}
	s.on(exechook.PreToolUse, "Bash", `echo "not even there" >&2; exit 2`)
	s.play(enginetest.Call("c", "delegate_to_child", map[string]string{"input": "x"}))
	require.Empty(t, s.ran)
	require.Equal(t, "blocked: not even there", s.result("inner").Content)
}

// The events of a run are the same, whatever the timing.
func TestDeterminism(t *testing.T) {
	dir := t.TempDir()
	enginetest.CheckDeterminism(t, 6, func(shuffle enginetest.Shuffle) []string {
		settings, err := exechook.Parse("s.json", []byte(`{"hooks": {
			"PreToolUse": [{"hooks": [
				{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"updatedInput\": {\"command\": \"1\"}}}'"},
				{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"updatedInput\": {\"command\": \"2\"}}}'"},
				{"type": "command", "command": "exit 3", "fail_open": true}]}],
			"PostToolUse": [{"hooks": [{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"additionalContext\": \"c\"}}'"}]}]
		}}`))
		require.NoError(t, err)
		p := exechook.New(exechook.Options{Settings: settings, Dir: dir})
		config, rec := enginetest.Config(t, p)
		config.Model = enginetest.NewScript(bash("c", "start"), enginetest.Say("done"))
		shuffle()
		in := engine.Prompt("go")
		in.Tools = []engine.Tool{enginetest.StubTool("shell", engine.Text("ok"))}
		_, err = enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, in)
		require.NoError(t, err)
		return rec.Lines()
	})
}
