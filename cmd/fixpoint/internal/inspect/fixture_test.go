//go:build browser

package inspect_test

import "fmt"

// richView is a run in which everything happens that the page has a picture for.
func richView() *view {
	r := newRecorder("editor.trace.jsonl")
	r.rev = 3
	top := r.begin("run-1", "editor", "Rename the configuration loader and update everything that calls it", "",
		change{Key: "plan.current", Value: map[string]any{"goal": "none yet", "steps": []string{}}},
		change{Key: "user.name", Value: "the operator"},
		change{Key: "vault.token", Hidden: true},
		change{Key: "log", Value: []string{"thread opened"}},
	)
	edge := r.open(top, "phase", "run_start")
	r.hooks(edge, 0, hook{plugin: "budget", name: "start", length: 12}, hook{plugin: "headline", name: "begin", length: 9})
	r.commit(edge, []write{{"budget", "start", "budget.left", "", "set", 20000}})
	r.close(edge)
	richStepOne(r, top)
	richStepTwo(r, top)
	edge = r.open(top, "phase", "run_end")
	r.hooks(edge, 0, hook{plugin: "audit", name: "close", length: 31})
	r.commit(edge, []write{{"audit", "close", "audit.done", "", "set", true}})
	r.effect(edge, "report", "audit", "mailer", 1800, "")
	r.close(edge)
	r.finish(top, "natural_end")
	r.run = r.view.Runs[0]
	r.run.TokensIn, r.run.TokensOut, r.run.Conflicts, r.run.Retries, r.run.Blocked = 5211, 918, 2, 2, 1
	r.run.Status, r.run.Reason, r.run.End, r.run.Steps = "done", "natural_end", ptr(r.now), 2
	return r.view
}

func plan(goal string, steps ...string) map[string]any {
	return map[string]any{"goal": goal, "steps": steps, "owner": "planner"}
}

func richStepOne(r *recorder, top *span) {
	r.step = 1
	step := r.open(top, "step", "step 1")
	r.close(r.open(step, "phase", "step_start"))
	phase := r.open(step, "phase", "before_inference")
	spans := r.hooks(phase, 0,
		hook{plugin: "planner", name: "decide", length: 64},
		hook{plugin: "critic", name: "revise", length: 52, status: "conflict", text: "lost plan.current to planner"},
		hook{plugin: "budget", name: "count", length: 18},
		hook{plugin: "memory", name: "recall", length: 91},
		hook{plugin: "cost", name: "estimate", length: 33},
		hook{plugin: "style", name: "hint", length: 41, status: "conflict", text: "lost plan.current to planner"},
		hook{plugin: "clock", name: "now", length: 7},
		hook{plugin: "files", name: "scan", length: 78},
	)
	lost := func(plugin, name, goal string) conflict {
		return conflict{Key: "plan.current", Winner: "planner", WinnerHook: "decide", Loser: plugin, Hook: name, Fate: "retried", Lost: []write{{plugin, name, "plan.current", "", "set", plan(goal)}}}
	}
	merged := r.commit(phase, []write{
		{"planner", "decide", "plan.current", "", "set", plan("rename the loader", "find callers", "edit", "test")},
		{"budget", "count", "budget.left", "", "set", 17200},
		{"memory", "recall", "memory.notes", "style", "set", "prefer small commits"},
		{"files", "scan", "files.open", "config/load.go", "set", map[string]any{"lines": 212}},
		{"clock", "now", "log", "", "append", "09:00:00 step 1"},
	}, lost("critic", "revise", "rename the loader carefully"), lost("style", "hint", "rename the loader tersely"))
	merged.Changes[4].At, merged.Changes[4].Value = 1, []string{"09:00:00 step 1"}
	r.retry(phase, spans[1], 27, write{"critic", "revise", "plan.current", "", "set", plan("rename the loader", "find callers", "read the tests", "edit", "test")})
	r.retry(phase, spans[5], 22, write{"style", "hint", "plan.current", "", "set", plan("rename the loader, tersely", "find callers", "read the tests", "edit", "test")})
	r.hooks(phase, 1, hook{plugin: "summary", name: "compose", length: 44}, hook{plugin: "reminders", name: "add", length: 21, status: "skipped", text: "deadline of 20 ms passed"})
	r.commit(phase, []write{{"summary", "compose", "summary.text", "", "set", "Rename the loader, in five steps."}})
	r.round(phase, 1, hook{plugin: "index", name: "refresh", length: 120}, hook{plugin: "notify", name: "queue", length: 35})
	r.round(phase, 2, hook{plugin: "index", name: "load", length: 240}, hook{plugin: "index", name: "stat", length: 60})
	r.round(phase, 3, hook{plugin: "index", name: "merge", length: 84}, hook{plugin: "notify", name: "send", length: 410, status: "failed", text: "no route to host"})
	r.round(phase, 4, hook{plugin: "index", name: "done", length: 19})
	r.close(phase)
	model(r, step, 1_840_000, 2104, 312)
	phase = r.open(step, "phase", "after_inference")
	r.hooks(phase, 0, hook{plugin: "tokens", name: "count", length: 11})
	r.commit(phase, []write{{"tokens", "count", "tokens.used", "", "add", 2416}})
	r.close(phase)
	blockedCall(r, step)
	editedCall(r, step)
	askedCall(r, step)
	delegatedCall(r, step)
	phase = r.open(step, "phase", "step_end")
	r.hooks(phase, 0, hook{plugin: "snapshots", name: "take", length: 140})
	r.commit(phase, []write{{"snapshots", "take", "snapshots.last", "", "set", "step-1"}})
	r.effect(phase, "metric", "cost", "statsd", 310, "")
	r.effect(phase, "notify", "notify", "webhook", 2100, "webhook answered 503")
	r.close(phase)
	r.close(step)
}

func model(r *recorder, step *span, length float64, in, out int) {
	s := r.open(step, "model", "large-model")
	r.now += length
	s.Facts = map[string]any{"tokens_in": in, "tokens_out": out, "stop": "tool_use"}
	r.close(s)
}

// begin of a call: its span and the gates' phase.
func startCall(r *recorder, step *span, id, tool string, args any) (*call, *span) {
	s := r.open(step, "call", tool)
	c := &call{ID: r.run.ID + "/" + fmt.Sprint(r.step) + "/" + id, Call: id, Run: r.run.ID, Step: r.step, Tool: tool, Args: args, Span: s.ID, Status: "done"}
	s.Call = c.ID
	r.view.Calls = append(r.view.Calls, c)
	return c, s
}

func blockedCall(r *recorder, step *span) {
	c, s := startCall(r, step, "call_1", "write_file", map[string]any{"path": "/etc/passwd", "text": "root::0:0"})
	phase := r.open(s, "phase", "tool_gate")
	r.gate(phase, "files", "workspace", 1, 22, "block", "/etc/passwd is outside the workspace")
	r.gate(phase, "permission", "rules", 2, 15, "approve", "write_file is on the allowlist")
	r.gate(phase, "screening", "args", 3, 48, "abstain", "")
	r.gate(phase, "loopguard", "repeat", 4, 9, "abstain", "")
	phase.Status = "block"
	r.close(phase)
	phase = r.open(s, "phase", "after_tool_execute")
	r.hooks(phase, 0, hook{plugin: "audit", name: "record", length: 18})
	r.commit(phase, []write{{"audit", "record", "audit.calls", c.Call, "set", map[string]any{"tool": "write_file", "outcome": "blocked"}}})
	r.close(phase)
	s.Status = "blocked"
	r.close(s)
	c.Outcome, c.Error, c.Result = "blocked", true, "blocked by files: /etc/passwd is outside the workspace"
	c.Votes = []vote{
		{1, "files", "workspace", "block", "/etc/passwd is outside the workspace"},
		{1, "permission", "rules", "approve", "write_file is on the allowlist"},
		{1, "screening", "args", "abstain", ""}, {1, "loopguard", "repeat", "abstain", ""},
	}
	c.Resolutions = []resolution{{1, "block", "files", "strictest_wins", "/etc/passwd is outside the workspace"}}
	c.Clashes = []string{"permission would have approved what files blocked; the stricter decision holds."}
	c.Why = []string{
		"The model asked for write_file with the path /etc/passwd.",
		"The gate workspace of files blocked it: /etc/passwd is outside the workspace.",
		"permission approved, but a block is stricter than an approval, so the call did not run.",
		"The model was told: blocked by files: /etc/passwd is outside the workspace.",
	}
}

func editedCall(r *recorder, step *span) {
	before := map[string]any{"command": "rm -rf build", "cwd": "/work"}
	after := map[string]any{"command": "rm -rf ./build", "cwd": "/work"}
	c, s := startCall(r, step, "call_2", "shell", before)
	phase := r.open(s, "phase", "tool_gate")
	r.gate(phase, "shell", "normalise", 1, 30, "edit", "the path was made relative")
	r.gate(phase, "permission", "rules", 2, 21, "approve", "shell is allowed in this folder")
	r.gate(phase, "shell", "normalise", 60, 18, "abstain", "")
	r.gate(phase, "permission", "rules", 61, 19, "approve", "shell is allowed in this folder")
	r.close(phase)
	phase = r.open(s, "phase", "before_tool_execute")
	r.close(phase)
	body := r.open(s, "body", "shell")
	r.now += 410_000
	r.close(body)
	phase = r.open(s, "phase", "after_tool_execute")
	r.hooks(phase, 0, hook{plugin: "audit", name: "record", length: 18}, hook{plugin: "screening", name: "result", length: 64})
	r.commit(phase, []write{{"audit", "record", "audit.calls", c.Call, "set", map[string]any{"tool": "shell", "outcome": "ok"}}})
	r.close(phase)
	r.close(s)
	c.Outcome, c.Result, c.Args = "ok", "removed 214 files", after
	c.Edits = []edit{{"shell", before, after}}
	c.Votes = []vote{{1, "shell", "normalise", "edit", "the path was made relative"}, {1, "permission", "rules", "approve", "shell is allowed in this folder"}, {2, "shell", "normalise", "abstain", ""}, {2, "permission", "rules", "approve", "shell is allowed in this folder"}}
	c.Resolutions = []resolution{{1, "edit", "shell", "edited", ""}, {2, "approve", "permission", "approved", ""}}
	c.Why = []string{"shell changed the arguments, so every gate was asked again.", "permission approved the new arguments; the call ran."}
}

func askedCall(r *recorder, step *span) {
	c, s := startCall(r, step, "call_3", "deploy", map[string]any{"target": "staging"})
	phase := r.open(s, "phase", "tool_gate")
	r.gate(phase, "confirm", "ask", 1, 24, "ask", "deploying needs a person")
	r.gate(phase, "permission", "rules", 2, 12, "abstain", "")
	r.close(phase)
	wait := r.open(s, "wait", "confirm")
	wait.Text = "Deploy to staging?"
	r.now += 4_200_000
	wait.Status = "waiting"
	r.close(wait)
	body := r.open(s, "body", "deploy")
	r.now += 300_000
	r.close(body)
	r.close(s)
	c.Outcome, c.Result = "ok", "deployed"
	c.Votes = []vote{{1, "confirm", "ask", "ask", "deploying needs a person"}, {1, "permission", "rules", "abstain", ""}}
	c.Tickets = []ticket{{"run-1/1/call_3/confirm", "confirm", "Deploy to staging?", "confirm", true, true, "the operator", "the window is open"}}
	c.Why = []string{"Nobody approved, and confirm asked, so the run waited for a person.", "The operator approved after 4.2 s: the window is open.", "The call ran."}
}

func delegatedCall(r *recorder, step *span) {
	c, s := startCall(r, step, "call_4", "research", map[string]any{"task": "Who calls config.Load?"})
	body := r.open(s, "body", "research")
	parent, rev, number := r.run, r.rev, r.step
	r.rev, r.step = 0, 0
	top := r.begin("run-2", "researcher", "Who calls config.Load?", parent.ID)
	top.Parent = body.ID
	r.step = 1
	inner := r.open(top, "step", "step 1")
	phase := r.open(inner, "phase", "before_inference")
	r.hooks(phase, 0, hook{plugin: "memory", name: "recall", length: 40})
	r.commit(phase, []write{{"memory", "recall", "memory.notes", "callers", "set", "three packages"}})
	r.close(phase)
	model(r, inner, 1_100_000, 800, 90)
	r.close(inner)
	r.finish(top, "natural_end")
	r.run, r.rev, r.step = parent, rev, number
	r.close(body)
	r.close(s)
	c.Outcome, c.Result = "ok", "cmd, engine and store call it"
	c.Why = []string{"No gate objected, and the default is to allow."}
}

func richStepTwo(r *recorder, top *span) {
	r.step = 2
	step := r.open(top, "step", "step 2")
	r.close(r.open(step, "phase", "step_start"))
	phase := r.open(step, "phase", "before_inference")
	r.hooks(phase, 0, hook{plugin: "planner", name: "decide", length: 40}, hook{plugin: "budget", name: "count", length: 14}, hook{plugin: "clock", name: "now", length: 6})
	c := r.commit(phase, []write{
		{"planner", "decide", "plan.current", "", "set", plan("rename the loader, tersely", "tell the user")},
		{"budget", "count", "budget.left", "", "set", 14800},
		{"clock", "now", "log", "", "append", "09:00:08 step 2"},
	})
	c.Changes[2].At, c.Changes[2].Value = 2, []string{"09:00:08 step 2"}
	r.close(phase)
	model(r, step, 960_000, 3107, 606)
	phase = r.open(step, "phase", "after_inference")
	r.hooks(phase, 0, hook{plugin: "tokens", name: "count", length: 13})
	r.commit(phase, []write{{"tokens", "count", "tokens.used", "", "add", 6129}})
	r.close(phase)
	r.close(r.open(step, "phase", "step_end"))
	r.close(step)
}

// longView is a run of many steps, with about sixty spans in each.
func longView(steps int) *view {
	r := newRecorder("long.trace.jsonl")
	top := r.begin("long", "worker", "Migrate every package", "")
	for r.step = 1; r.step <= steps; r.step++ {
		longStep(r, top)
	}
	r.step = steps
	r.finish(top, "natural_end")
	r.run.Conflicts, r.run.Retries, r.run.Blocked = steps, steps, steps/10
	return r.view
}

func longStep(r *recorder, top *span) {
	step := r.open(top, "step", fmt.Sprintf("step %d", r.step))
	r.close(r.open(step, "phase", "step_start"))
	phase := r.open(step, "phase", "before_inference")
	var hooks []hook
	for i := range 8 {
		hooks = append(hooks, hook{plugin: fmt.Sprintf("plugin%d", i), name: "prepare", length: float64(20 + (r.step*7+i*13)%90)})
	}
	hooks[3].status = "conflict"
	spans := r.hooks(phase, 0, hooks...)
	r.commit(phase, []write{{"plugin0", "prepare", "plan", "", "set", r.step}, {"plugin1", "prepare", "seen", fmt.Sprint(r.step % 50), "set", r.step}},
		conflict{Key: "plan", Winner: "plugin0", WinnerHook: "prepare", Loser: "plugin3", Hook: "prepare", Fate: "retried"})
	r.retry(phase, spans[3], 30, write{"plugin3", "prepare", "plan", "", "set", -r.step})
	r.round(phase, 1, hook{plugin: "index", name: "load", length: 50}, hook{plugin: "index", name: "stat", length: 20})
	r.round(phase, 2, hook{plugin: "index", name: "done", length: 15})
	r.close(phase)
	model(r, step, float64(400_000+(r.step*7919)%900_000), 1200+r.step, 140)
	phase = r.open(step, "phase", "after_inference")
	r.hooks(phase, 0, hook{plugin: "tokens", name: "count", length: 9}, hook{plugin: "cost", name: "add", length: 12}, hook{plugin: "headline", name: "say", length: 8})
	r.commit(phase, []write{{"tokens", "count", "tokens.used", "", "add", r.step * 1400}})
	r.close(phase)
	for i := range 3 {
		c, s := startCall(r, step, fmt.Sprintf("call_%d", i), "edit_file", map[string]any{"path": fmt.Sprintf("pkg%d/file%d.go", r.step, i)})
		blocked := i == 2 && r.step%10 == 0
		phase := r.open(s, "phase", "tool_gate")
		r.gate(phase, "files", "workspace", 1, 12, "abstain", "")
		r.gate(phase, "permission", "rules", 2, 14, "approve", "on the allowlist")
		decision := "abstain"
		if blocked {
			decision = "block"
		}
		r.gate(phase, "screening", "args", 3, 22, decision, "")
		r.close(phase)
		c.Outcome = "blocked"
		s.Status = "blocked"
		if !blocked {
			phase = r.open(s, "phase", "before_tool_execute")
			r.hooks(phase, 0, hook{plugin: "snapshots", name: "before", length: 20})
			r.close(phase)
			body := r.open(s, "body", "edit_file")
			r.now += 30_000
			r.close(body)
			c.Outcome, s.Status = "ok", "ok"
		}
		phase = r.open(s, "phase", "after_tool_execute")
		r.hooks(phase, 0, hook{plugin: "audit", name: "record", length: 16}, hook{plugin: "files", name: "note", length: 12})
		r.commit(phase, []write{{"audit", "record", "audit.calls", c.ID, "set", map[string]any{"tool": "edit_file", "outcome": c.Outcome}}})
		r.close(phase)
		r.close(s)
		c.Votes = []vote{{1, "permission", "rules", "approve", "on the allowlist"}}
	}
	phase = r.open(step, "phase", "step_end")
	r.hooks(phase, 0, hook{plugin: "snapshots", name: "take", length: 33}, hook{plugin: "budget", name: "count", length: 8})
	r.commit(phase, []write{{"budget", "count", "budget.left", "", "set", 1_000_000 - r.step*900}})
	r.effect(phase, "metric", "cost", "statsd", 40, "")
	r.close(phase)
	r.close(step)
}
