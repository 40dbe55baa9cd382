// Package exechook is a plugin that runs external programs on the events of a run, with
// JSON on their standard input, by the settings and the protocol that coding agents
// share. Hook scripts written for those run unchanged.
//
//	settings, err := exechook.Load(home+"/.claude/settings.json", dir+"/.claude/settings.json")
//	...
//	hooks := exechook.New(exechook.Options{Settings: settings, Dir: dir})
//	eng, err := engine.New(engine.Config{
//		Plugins:  []engine.Plugin{hooks},
//		Resolver: hooks.Resolver(terminal), // for PermissionRequest and Notification
//	})
//
// A settings file lists commands by event and matcher:
//
//	{"hooks": {"PreToolUse": [
//	  {"matcher": "Bash|Edit", "hooks": [
//	    {"type": "command", "command": "python3 guard.py", "timeout": 10}]}]}}
//
// The programs run with all the rights of this one. Which files may say so is for the
// caller of Load to decide; therefore there is no section of an agent spec for it. Load
// reads a file once, and what happens to it later changes nothing.
//
// # Events
//
//	PreToolUse          a gate over the call
//	PermissionRequest   Plugin.Resolver, when a question about a call is to be answered
//	Notification        the same, when the programs left the question to somebody else
//	PostToolUse         after a call that did its work
//	PostToolUseFailure  after a call that ran and failed; a blocked one has neither
//	SessionStart        a run starts: source "startup" on a new thread, else "resume"
//	UserPromptSubmit    after that, when the run starts with a user's message
//	Stop                a step ends in which the model asked for no tool
//	SessionEnd          a run ends, however it does: reason "other"
//	SubagentStart, SubagentStop   instead of these in a run that another delegated to
//	PreCompact          a gate over what plugin compact does, see Options.Compacts
//
// An event that agents know and that does not happen here, such as PostCompact, is a
// warning, in Settings.Warnings and in every run; any other name is an error. So is a
// member of a hook that would change when it runs or what it means, such as "if" or a
// type other than command. Of "disableAllHooks" only the file that has it takes notice.
//
// A matcher is held against the tool's name: "", "*" and none fit all; one of letters,
// digits, "_", "-", spaces, "," and "|" is a list of exact names; any other is a regular
// expression in the syntax of package regexp, which need not fit the whole name. Tools
// go by the names of Options.Tools, and by their own. At SessionStart, SessionEnd and
// Notification it is the source, the reason or the type, at PreCompact "auto" or "manual",
// and for subagents the agent.
//
// # What a program says
//
// All programs of an event run at the same time, each command once, and what they say
// counts in the order of the rules: the user's settings first if they were loaded first.
//
// Exit status 0 is consent or, with a JSON object on standard output, whatever that says
// (see ParseReply). Exit status 2 is a no, with standard error as the reason: at
// PreToolUse it blocks the call, at UserPromptSubmit it ends the run and takes the
// message out of the thread, at Stop it makes the run go on, within Limits.Continues, and
// after a call the model is told, and at PreCompact there is no compaction. "continue":
// false ends the run, and at PreCompact is a no. Several reasons are
// joined. Context that a program adds becomes a message to the model, if that is asked
// again in the run, and a "systemMessage" goes to Options.Notify.
//
// At PreToolUse, of several opinions deny goes before defer, that before ask, and that
// before allow:
//
//	deny        gate.Block
//	ask, defer  gate.Suspend: nobody else's approval stands for the answer
//	allow       gate.Approve
//	none        gate.Abstain
//
// "updatedInput" takes the place of the arguments. The tool checks the new ones and
// every gate is asked again; so the programs run again, on the new arguments. Of
// several different ones the first counts and the conflict is told. A program's rewrite
// of what it wrote itself is not looked at, so one that always adds something does so
// once; programs that rewrite each other's arguments without end have the call blocked.
//
// # Failures
//
// Agents take a program that could not be started, timed out, crashed, exited with
// another status or printed broken JSON as having no opinion: a typing error in a path
// switches a guard off. Here such a failure at PreToolUse blocks the call, unless the
// rule has "fail_open": true, a member of our own. At UserPromptSubmit and PreCompact a
// failure has no consequence unless the rule has "fail_open": false. At other events it
// never has one.
//
// A failure is told apart from a no. As a gate's error, a *ProgramError, it has the
// cause gate_failed where a no has the cause decided, and it is a notice with its Cause,
// command and place. An interpreter that cannot open its script exits with 2 as well;
// that counts as a failure when the script was not there before the start and all that
// standard error has is a line that says so, and likewise a syntax error of the shell's in
// the command or its script, which the shell is then asked to parse once more (sh -n). What
// cannot be told apart, such as a Python script that does not know its arguments, counts
// as a no.
//
// A call whose arguments a program could read in another way than the tool, since they
// have a name twice or in the wrong case, is blocked as if the programs had failed,
// whatever "fail_open" says.
//
// # Programs
//
// A command is run by sh -c in Options.Dir, in a process group of its own. At its
// timeout, at the end of the run's context and when it has exited, the whole group is
// killed; only a process that moved to another session escapes, and where there are no
// process groups only the program itself is killed. A program need not read its input.
// Of each output Options.MaxOutput bytes count; that there were more is stated, and is a
// failure if it cuts JSON. Programs inherit the variables of DefaultEnv and of
// Options.PassEnv, nothing else, and CLAUDE_PROJECT_DIR is set.
//
// A gate may be asked about a call more than once. A program runs once for each form of
// the arguments and each answer to a question about them, as after a question the policy
// may have become stricter; the plugin remembers what it said until the step ends, for
// at most 1024 calls. When it forgot, as in another process, the program runs again. A
// program at PreToolUse should therefore only look. At other events programs are run by
// actions, which run once.
//
// A call of a delegate is judged by the hooks of every run above it and by its own, if
// their agents have this plugin active; a program then runs for each.
//
// # Determinism
//
// What programs say decides, never who is faster. A run is as deterministic as its
// programs are.
package exechook
