// Package reminders is a plugin that reminds the model of something when it is due: by
// rules in the agent's spec, and by what the model itself wants to be reminded of.
//
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{reminders.New()}, Model: model})
//
// The section "reminders" of an agent spec has the rules:
//
//	"reminders": {"rules": [
//	  {"name": "goal", "text": "Remember the goal: a small binary.", "when": {"every": 10}, "note": "one_shot"},
//	  {"name": "check", "text": "Run the tests before you go on.", "when": {"after_tool": "write_*"}, "times": 3},
//	  {"name": "todo", "text": "Your list may be out of date.", "when": {"unused": "todo_*", "steps": 8}},
//	  {"name": "care", "text": "Ask before you deploy.", "when": {"message": "(?i)\\bdeploy", "from": "user"}}
//	]}
//
// # Rules
//
// A rule has exactly one condition. It is looked at in front of each model call:
//
//	every       n steps were taken since the run began or the rule was last due
//	after_tool  the last step used a tool whose name matches the pattern
//	unused      no tool whose name matches was used in the last "steps" steps, and
//	            the rule was not due in them
//	message     a message matches that came since the last look; by default the
//	            user's, with "from" those of "assistant" or "tool", or "any" of these
//
// Tools are matched as path.Match does, texts as package regexp does. A call that was
// blocked, denied, cancelled or not run is no use of its tool. Messages of the system,
// and so reminders, are never matched. Steps, uses and times are those of one run;
// which messages were looked at is known for the thread. Of a history that was cut since,
// those behind the model's last answer are looked at.
//
// A rule that is due adds its text behind all other messages, to the history or, with
// "note": "one_shot", to that one call; at most "times" times in a run, when it is given. A
// one-shot text counts also if the process ends before the model answered.
// Several that are due at once come in the order of the section.
//
// A mistake in a condition is an error with the place of its "when" in the spec.
//
// # The tool
//
// The tool remind takes a text and a number of steps. The model is reminded in front of
// the call that many steps later, also in a later run of the thread, once and for good.
// A thread keeps at most MaxPending of these, of MaxText bytes each; calls of one step that
// run in parallel do not see each other and may pass that number. Who does not want the
// tool takes it away with excluded_tools.
//
// # What it registers
//
// Hooks on before_inference, after_tool_execute and step_end, all in tier 0 and with
// OnError(Skip); the tool remind, of kind "other"; the keys Fired and Pending, for others to
// read, and three of its own. Nothing outside is read, and reminders survive a wait and
// the process.
package reminders
