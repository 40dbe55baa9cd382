// Package slash is slash commands: what a person asks for by name beside the
// conversation, such as "/undo". Plugins register them as extras; the program that
// talks with the person offers and runs them, and the model never sees them.
//
//	r.Extra(slash.New("undo", "takes the last change back", "", undo))
//	...
//	set, err := slash.For(eng, spec)
//	reply, err := set.Run(ctx, thread, session, "/undo 2")
//
// There are two kinds, which differ in what the code gets. One made with New has the
// narrow context of a hook: a frozen snapshot to read and a command to return, and it
// works while a run is under way. One made with NewSteering has the wide context, a
// Session, by which it may begin a run or go on with another thread or agent; it works
// between runs only, since a command that waited for the run it is in would wait for
// ever.
//
// The engine refuses two slash commands of one name and names both plugins. The
// commands of a plugin, or of a tool, work for the agents for which it is active.
package slash
