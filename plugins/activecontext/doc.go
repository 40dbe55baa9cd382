// Package activecontext is a plugin that shows the model, in each call, what it works on
// as it is just then: pinned texts, pinned files, and the files that its tools touched
// last.
//
//	root, err := os.OpenRoot(dir)
//	if err != nil { ... }
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{activecontext.New(root.FS())}, Model: model})
//
// The section "activecontext" of an agent spec says what; the numbers and "args" shown are
// the defaults:
//
//	"activecontext": {
//	  "texts": ["The customer is on version 2."], "files": ["docs/plan.md"],
//	  "recent": 5, "args": ["path"],
//	  "max_bytes": 32768, "max_file_bytes": 8192, "unchanged": "repeat"
//	}
//
// # What is shown
//
// One message behind the history, among those of other plugins that only this call sees in
// the order of registration: the history stays as it is, and does not fill with old
// versions of files. It has the texts, in the order of the
// section; then its files, in that order; then the files of Pinned, sorted; then up to
// "recent" files that tool calls touched, the last one first. A file comes once.
//
// A call touches the files that its arguments name under one of "args", as a text or a
// list of texts, when it went well. A file that it touched and that is gone is left out;
// one that was pinned and is gone is told to be missing. Folders, and what is not text,
// are not shown.
//
// The message is at most "max_bytes" long, and a file is cut to its beginning, at most
// "max_file_bytes" of it. What has no room any more is named as left out.
//
// Since a call sees no other call's message, content is repeated in each one also when it
// did not change. With "unchanged": "note" a touched file whose whole content is, letter
// for letter, in the result of the call that touched it last is only named as unchanged
// since then. That saves tokens with tools that return plain content, but leave it
// alone when a transform cuts old results out of requests, as that of plugin compact does.
//
// The message is one of the user's, and says that it is no request: what files say has
// no more authority than what a tool returns, and a system message would give it some.
//
// # What it registers
//
// Hooks on before_inference (which reads the files and has 10 seconds for it),
// after_tool_execute and step_end, all in tier 0 and with OnError(Skip); the keys Pinned and
// Touched, and one of its own. What is touched is state of the thread, so it survives a
// wait and the process; of the files themselves nothing is kept but that the message of
// the current step is in the state, and so in a journal, until the next step.
//
// The file system is read in a hook, at the time of each call, and never written. A run is
// as deterministic as it is. Give one that shows no more than the agent may see, such
// as that of an os.Root or files.Plugin.FS; os.DirFS follows links out of its directory.
package activecontext
