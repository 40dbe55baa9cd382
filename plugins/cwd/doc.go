// Package cwd is a plugin that makes the working directory a part of a thread's
// state.
//
//	place, err := cwd.New(dir, cwd.Options{})
//	if err != nil { ... }
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{place}, Model: m})
//
// The key Dir holds it: a path with slashes that begins at the directory given to
// New, "." for that directory itself. The model changes it with the tool
// change_directory, which follows no link out of that directory and leaves a path without
// links. Every plugin may change it with Dir.With, which refuses what is no such path;
// whether there is such a folder, whoever works in it sees, as plugins/shell does. The
// model is told of a change before it is asked the next time, whoever made it, also
// between two runs; a name with anything unusual in it is then in quotes, since whoever
// made a folder chose its name.
//
// # Taking part
//
// An engine has one handler for each kind of action, and that of Changed is here. Other
// plugins take part in one of two ways:
//
//   - What follows from where the thread is, such as the guides of a folder, reads Dir
//     in a hook of its own, at BeforeInference say, and keeps what it did in a key of
//     its own. It then also works for a thread that was forked, resumed or moved from
//     outside. To need no import it takes the key as an option, a state.Cell[string]:
//     plugins/shell and plugins/agentsmd do.
//   - What has to be done once for each change is an action of that plugin, at
//     AfterToolExecute. Whoever puts the engine together names it in Options.Then, and
//     Changed's handler schedules it, so that it runs in the next round of the phase.
//
// The latter looks like this:
//
//	cwd.New(dir, cwd.Options{Then: func(c cwd.Change) []phase.Action {
//		return []phase.Action{index.Refresh.New(c.New)}
//	}})
//
// Changed is scheduled after each tool call, of any outcome, that finds Dir other than
// it was when Changed was scheduled last. The hook that compares has the tier
// CompareTier, so that what hooks of lower tiers write counts for the same call; one of
// them that stops the phase puts it off to the next call. Of calls that run in parallel
// all bodies have ended by the first comparison, so that several changes are one.
//
// Nothing here depends on time; the tool looks at the file system, hooks do not.
package cwd
