//go:build unix

package exechook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// lines decodes a file of JSON lines.
func (s *stage) lines(name string) (all []map[string]any) {
	for line := range strings.Lines(s.file(name)) {
		var m map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

// A session's programs run at the start and at the end of each run: what they print at
// the start is for the model, and a run on a thread that had one before resumes it.
//
// Capability M9.
func TestSession(t *testing.T) {
	s := newStage(t)
	s.on(exechook.SessionStart, "startup", `cat >> log; echo "Branch: main"`)
	s.on(exechook.SessionStart, "resume", `cat >> log; echo '{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "Welcome back"}}'`)
	s.on(exechook.SessionEnd, "other", `cat >> log; echo "ignored"`)
	s.on(exechook.SessionEnd, "logout", `exit 2`)
	model := enginetest.NewScript(enginetest.Say("one"), enginetest.Say("two"))
	thread, err := s.engine(model).NewThread("th")
	require.NoError(t, err)
	for range 2 {
		res, err := thread.Run(t.Context(), s.spec, engine.Prompt("go"))
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.Equal(t, "user: go\nsystem: Branch: main\nassistant: one\nuser: go\nsystem: Welcome back", lastRequest(model))
	log := s.lines("log")
	require.Len(t, log, 4)
	require.Equal(t, []any{"SessionStart", "startup"}, []any{log[0]["hook_event_name"], log[0]["source"]})
	require.Equal(t, []any{"SessionEnd", "other", "natural"}, []any{log[1]["hook_event_name"], log[1]["reason"], log[1]["run_reason"]})
	require.Equal(t, "resume", log[2]["source"])
	require.Equal(t, "th", log[3]["session_id"])
	require.Empty(t, s.notices)
}

// A prompt that a program blocks never reaches the model, in this run or a later one.
func TestPromptIsBlocked(t *testing.T) {
	for name, command := range map[string]string{
		"exit 2": `case "$(cat)" in *"password"*) echo "contains a secret" >&2; exit 2;; esac; echo "context"`,
		"stop":   `case "$(cat)" in *"password"*) echo '{"continue": false, "stopReason": "contains a secret", "decision": "block"}';; *) echo context;; esac`,
		"json":   `case "$(cat)" in *"password"*) echo '{"decision": "block", "reason": "contains a secret"}';; *) echo context;; esac`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.on(exechook.UserPromptSubmit, "", command)
			s.on(exechook.UserPromptSubmit, "", `echo "more"`)
			model := enginetest.NewScript(enginetest.Say("one"), enginetest.Say("two"))
			thread, err := s.engine(model).NewThread("")
			require.NoError(t, err)
			run := func(text string) *engine.Result {
				res, err := thread.Run(t.Context(), s.spec, engine.Prompt(text))
				require.NoError(t, err)
				return res
			}
			require.Equal(t, phase.ReasonNatural, run("hello").Reason)
			res := run("my password is x")
			want := phase.ReasonBlocked
			if name == "stop" {
				want = exechook.ReasonStopped
			}
			require.Equal(t, want, res.Reason)
			require.Equal(t, "contains a secret", res.Detail)
			require.Len(t, model.Requests(), 1)
			run("and now?")
			require.Equal(t, "user: hello\nsystem: context\nsystem: more\nassistant: one\nuser: and now?\nsystem: context\nsystem: more", lastRequest(model))
			require.Zero(t, res.Stats.DeadLetters)
		})
	}
}

// A program that fails does not block a prompt, unless its rule says so.
func TestPromptGuardFails(t *testing.T) {
	s := newStage(t)
	s.on(exechook.UserPromptSubmit, "", `exit 1`)
	require.Equal(t, phase.ReasonNatural, s.play().Reason)
	require.Equal(t, exechook.Exited, s.notices[0].Cause)
	s.on(exechook.UserPromptSubmit, "", `exit 9`, failOpen(false))
	res := s.play()
	require.Equal(t, phase.ReasonBlocked, res.Reason)
	require.Contains(t, res.Detail, "status 9")
}

// Programs that want the run to go on have it do so, know that they did, and cannot
// keep it up for ever.
//
// Capability M8.
func TestStop(t *testing.T) {
	s := newStage(t)
	s.on(exechook.Stop, "", `tee -a log | grep -q '"stop_hook_active":true' && exit 0; echo "run the tests" >&2; exit 2`)
	model := enginetest.NewScript(enginetest.Say("done"), enginetest.Say("done now"))
	res := s.run(t.Context(), model)
	require.NoError(t, res.Err)
	require.Equal(t, "done now", res.Text)
	require.Equal(t, "user: go\nassistant: done\nuser: Stop hook feedback:\nrun the tests", lastRequest(model))
	log := s.lines("log")
	require.Len(t, log, 2)
	require.Equal(t, []any{"done", false}, []any{log[0]["last_assistant_message"], log[0]["stop_hook_active"]})

	s = newStage(t)
	s.change = func(c *engine.Config) { c.Limits.Continues = 3 }
	s.on(exechook.Stop, "", `echo '{"decision": "block", "reason": "again"}'`)
	res = s.play(enginetest.Say("1"), enginetest.Say("2"), enginetest.Say("3"))
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, 4, res.Steps)

	s = newStage(t)
	s.on(exechook.Stop, "", `echo '{"decision": "block", "reason": "again"}'`)
	s.on(exechook.Stop, "", `echo '{"continue": false, "stopReason": "really"}'`)
	res = s.play()
	require.Equal(t, exechook.ReasonStopped, res.Reason)
	require.Equal(t, "really", res.Detail)
	require.Equal(t, 1, res.Steps)
}

// A failing program does not keep the run from its end.
func TestStopFails(t *testing.T) {
	s := newStage(t)
	s.on(exechook.Stop, "", `exit 1`)
	require.Equal(t, 1, s.play().Steps)
	require.Len(t, s.notices, 1)
}

// A delegate's run has events of its own.
func TestSubagent(t *testing.T) {
	s := newStage(t)
	s.spec.Delegates = []string{"child"}
	inner := enginetest.NewScript(enginetest.Say("half"), enginetest.Say("all"))
	s.change = func(c *engine.Config) {
		c.Agents = []engine.AgentSpec{{ID: "child", ModelID: "child"}}
		c.Models = map[string]inference.Model{"child": inner}
	}
	s.on(exechook.SubagentStart, "child", `echo "be brief"`)
	s.on(exechook.SubagentStart, "other", `echo "be long"`)
	s.on(exechook.SubagentStop, "child", `tee -a log | grep -q '"stop_hook_active":true' && exit 0; exit 2`)
	s.on(exechook.SessionStart, "", `cat >> sessions`)
	s.on(exechook.UserPromptSubmit, "", `cat >> prompts`)
	s.on(exechook.Stop, "", `cat >> stops`)
	s.play(enginetest.Call("c", "delegate_to_child", map[string]string{"input": "x"}))
	require.Contains(t, lastRequest(inner), "user: x\nsystem: be brief\nassistant: half\nuser: SubagentStop hook feedback:")
	require.Equal(t, "all", s.result("c").Content)
	require.Equal(t, "child", s.lines("log")[0]["agent_type"])
	for _, name := range []string{"sessions", "prompts", "stops"} {
		require.Len(t, s.lines(name), 1, name)
	}
}

// After a call programs tell the model about it, and may change what it reads.
//
// Report 13.
func TestAfterTheCall(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PostToolUse, "Bash", `echo "lint failed" >&2; exit 2`)
	s.on(exechook.PostToolUse, "Bash", `echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "took 3 s", "updatedToolOutput": "redacted"}}'`)
	s.on(exechook.PostToolUse, "Bash", `echo '{"hookSpecificOutput": {"updatedToolOutput": "other"}}'`)
	s.on(exechook.PostToolUse, "Bash", `exit 1`)
	s.on(exechook.PostToolUseFailure, "", `cat > failure.json; echo '{"hookSpecificOutput": {"additionalContext": "try again"}}'`)
	model := enginetest.NewScript(bash("c", "ls"), enginetest.Call("f", "fail", nil), enginetest.Say("done"))
	res := s.run(t.Context(), model)
	require.NoError(t, res.Err)
	require.Equal(t, "redacted", s.result("c").Content)
	text := lastRequest(model)
	require.Contains(t, text, "system: took 3 s\nsystem: PostToolUse hook feedback about Bash:\nlint failed")
	require.Contains(t, text, "system: try again")
	require.Contains(t, s.file("failure.json"), `"error":"it broke"`)
	require.Len(t, s.notices, 2)
	require.Equal(t, exechook.ConflictNotice, s.notices[0].Kind)
	require.Equal(t, exechook.FailureNotice, s.notices[1].Kind)
}

// A program sees the result as other plugins have left it: a redacted secret is not
// handed to it.
func TestAfterTheCallSeesEdits(t *testing.T) {
	s := newStage(t)
	s.plugins = append(s.plugins, engine.NewPlugin("redact", func(r *engine.Registrar) error {
		r.Hook(phase.AfterToolExecute, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			cmd.EditContent(pc.Call().ID, "***").EditDetails(pc.Call().ID, "{}")
			return cmd, nil
		}), engine.Tier(5))
		return nil
	}))
	s.on(exechook.PostToolUse, "", `cat > post.json`)
	s.play(bash("c", "ls"))
	require.Contains(t, s.file("post.json"), `"content":"***"`)
	require.NotContains(t, s.file("post.json"), "did shell")
}

// Calls that did not run have no event after them.
func TestNothingAfterABlockedCall(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `exit 2`)
	s.on(exechook.PostToolUse, "", `touch post`)
	s.on(exechook.PostToolUseFailure, "", `touch post`)
	s.play(bash("c", "ls"))
	require.NoFileExists(t, s.dir+"/post")
}

// Programs of PermissionRequest answer questions, whoever asks them; a no goes before
// a yes; when they do not, those of Notification run and somebody else is asked.
func TestPermissionRequest(t *testing.T) {
	decide := func(members string) string {
		return `echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {` + members + `}}}'`
	}
	for name, c := range map[string]struct {
		commands []string
		ran      string
		asked    int
		content  string
	}{
		"allow":   {commands: []string{decide(`"behavior": "allow"`)}, ran: `shell{"command":"ls"}`},
		"edit":    {commands: []string{`cat > seen;` + decide(`"behavior": "allow", "updatedInput": {"command": "pwd"}`)}, ran: `shell{"command":"pwd"}`},
		"deny":    {commands: []string{decide(`"behavior": "allow"`), decide(`"behavior": "deny", "message": "not today"`)}, content: "not today"},
		"exit 2":  {commands: []string{`echo "no" >&2; exit 2`, decide(`"behavior": "allow"`)}, content: "no"},
		"silence": {commands: []string{`true`}, ran: `shell{"command":"ls"}`, asked: 1},
		"failure": {commands: []string{`exit 1`}, ran: `shell{"command":"ls"}`, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			y := &yes{}
			s.resolve = y
			s.plugins = append(s.plugins, engine.NewPlugin("asker", func(r *engine.Registrar) error {
				r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if _, ok := pc.Answer(); ok {
						return gate.Approve(), nil
					}
					if strings.Contains(string(pc.Call().Args), "pwd") {
						return gate.Approve(), nil
					}
					return gate.Ask(gate.Ticket{Message: "May it?"}), nil
				}))
				return nil
			}))
			for _, command := range c.commands {
				s.on(exechook.PermissionRequest, "Bash", command)
			}
			s.on(exechook.Notification, "permission_prompt", `cat > note.json`)
			s.play(bash("c", "ls"))
			require.Equal(t, c.ran, strings.Join(s.ran, " "))
			require.Len(t, y.tickets, c.asked)
			if c.content != "" {
				require.Contains(t, s.result("c").Content, c.content)
			}
			if c.asked > 0 {
				note := s.lines("note.json")[0]
				require.Equal(t, []any{"Notification", "permission_prompt", "May it?"}, []any{note["hook_event_name"], note["notification_type"], note["message"]})
			} else {
				require.NoFileExists(t, s.dir+"/note.json")
			}
			if name == "failure" {
				require.Len(t, s.notices, 1)
			} else {
				require.Empty(t, s.notices)
			}
		})
	}
}

// A question that a tool asks, or one about its result, is not one about permission:
// only people answer it.
func TestOtherQuestionsAreNotPermissions(t *testing.T) {
	allow := `echo '{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}'`

	s := newStage(t)
	y := &yes{}
	s.resolve = y
	s.on(exechook.PermissionRequest, "", allow)
	s.on(exechook.Notification, "", `cat > note.json`)
	s.change = func(c *engine.Config) {
		c.Plugins = append(c.Plugins, engine.NewPlugin("asker", func(r *engine.Registrar) error {
			r.Tool(engine.NewTool(inference.ToolSpec{Name: "ask"}, func(_ context.Context, pc *phase.Context, _ toolArgs) (engine.Output, error) {
				if len(pc.Answers()) == 0 {
					return engine.Output{Ask: &gate.Ticket{Message: "Go on?"}}, nil
				}
				return engine.Text("went on"), nil
			}))
			return nil
		}))
	}
	s.play(enginetest.Call("c", "ask", nil))
	require.Equal(t, "went on", s.result("c").Content)
	require.Len(t, y.tickets, 1)
	require.Equal(t, "elicitation_dialog", s.lines("note.json")[0]["notification_type"])

	s = newStage(t)
	y = &yes{}
	s.resolve = y
	s.on(exechook.PermissionRequest, "", allow)
	s.plugins = append(s.plugins, engine.NewPlugin("withhold", func(r *engine.Registrar) error {
		r.Hook(phase.AfterToolExecute, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Schedule(engine.WithholdResult.New(gate.Ticket{Message: "Show it?"}))
			return cmd, nil
		}))
		return nil
	}))
	s.play(bash("c", "ls"))
	require.Equal(t, "did shell", s.result("c").Content)
	require.Len(t, y.tickets, 1)
}

// What has no effect is warned about in every run, not passed over.
func TestWarnings(t *testing.T) {
	s := newStage(t)
	s.options.Settings.Warnings = []string{"s.json:2:3: PostCompact is never fired here"}
	s.on(exechook.PermissionRequest, "", "true")
	res := s.play()
	require.NoError(t, res.Err)
	var all []string
	for _, w := range enginetest.Select[engine.Warning](s.rec.Events()) {
		require.Equal(t, exechook.Name, w.Plugin)
		all = append(all, w.Message)
	}
	text := strings.Join(all, "\n")
	require.Contains(t, text, "s.json:2:3: PostCompact is never fired here")
	require.Contains(t, text, "Plugin.Resolver is not in use")
}

// Without Notify a failure is in the events.
func TestFailureWithoutNotify(t *testing.T) {
	s := newStage(t)
	s.options.Notify = nil
	s.on(exechook.Stop, "", "exit 1")
	s.on(exechook.Stop, "", `echo '{"systemMessage": "hello"}'`)
	s.play()
	var failed []string
	for _, e := range enginetest.Select[engine.EffectFinished](s.rec.Events()) {
		if e.Error != "" {
			failed = append(failed, e.Error)
		}
	}
	require.Len(t, failed, 1)
	require.Contains(t, failed[0], `hook "exit 1" (s.json:1) failed: exited`)
}

// One plugin value serves concurrent runs.
//
// Capability G9.
func TestConcurrentRuns(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreToolUse, "", `case "$(cat)" in *"run 1"*) echo "one" >&2; exit 2;; esac`)
	script := func(n string) inference.Model {
		return enginetest.NewScript(bash("c", "run "+n), enginetest.Say("done"))
	}
	s.change = func(c *engine.Config) {
		c.Models = map[string]inference.Model{"0": script("0"), "1": script("1")}
	}
	eng := s.engine(nil)
	results := make(chan error, 10)
	for i := range 10 {
		go func() {
			res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a", ModelID: []string{"0", "1"}[i%2]}, engine.Prompt("go"))
			if err == nil {
				err = res.Err
			}
			results <- err
		}()
	}
	var errs []error
	for range 10 {
		errs = append(errs, <-results)
	}
	require.NoError(t, errors.Join(errs...))
	require.Len(t, s.ran, 5)
	for _, ran := range s.ran {
		require.Contains(t, ran, "run 0")
	}
}
