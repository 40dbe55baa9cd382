// Package checks is a plugin that runs commands, such as the tests, when an agent says
// that it is done and has changed files. What fails is told to the model, which gets
// to go on; and as long as the checks have not passed, no hook of a later tier runs
// at the end of the run, so that nothing unchecked is committed (package autocommit).
//
//	guard := checks.New(checks.Options{Dir: dir})
//
// The section "checks" of an agent spec has the commands. They are programs with their
// arguments, without a shell:
//
//	"checks": {"commands": [
//	  {"args": ["go", "vet", "./..."]},
//	  {"name": "tests", "args": ["go", "test", "./..."], "seconds": 300}
//	]}
//
// # Where the commands run
//
// Commands are outside work and take long. At step_end they are run by an action: it
// runs once, after all hooks of the phase and what they changed, with no limit but the
// commands' own, and may still ask for another step. That is where the checks belong,
// and where they are told to the model, at most "attempts" times a run; the limit of
// continuations of the engine holds too. With "at": "step" it is every step that has
// changed something, otherwise only the one that would be the last.
//
// An action cannot keep a later tier from running: the actions of a phase run after
// all its tiers. So at run_end a hook in tier 0 compares the workspace with what was
// checked, and stops the phase if that failed. Only if nothing was checked, since the
// run ended in another way than by the model's own decision, does the hook itself run
// the commands, within the engine's Limits.Grace. Hooks may run twice, and this one is
// made for that: commands must stand being run again, as tests do, and no other hook
// writes Last. A run that was cancelled or failed is not checked any more; its later
// tiers do not run.
//
// # What counts as a change
//
// In a git work tree it is the difference to the start of the run, in what git tracks
// or would add; this adds objects to the repository and touches nothing else, and runs
// the filters that git has set up. Elsewhere
// it is that a tool of "kinds" was called. A verdict is good for the very files that
// were checked, including what a command has changed itself, as formatters do.
//
// Of the environment, commands get what says where programs, the user's home,
// configuration and temporary files are, and the language and time zone; and the
// variables that "env" names, such as GOFLAGS. Each has its own process group and is
// killed with it when its time is over; a program that leaves the group, as a daemon
// does, is not, nor is one that a command leaves behind without its output.
//
// Checks find mistakes. They do not stop an agent that may run programs and means to get
// round them: it can change the checks themselves, have git ignore files, write again
// when a check is over, or commit by itself. Package permission is for that.
package checks
