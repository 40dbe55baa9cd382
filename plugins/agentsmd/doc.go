// Package agentsmd is a plugin that tells the model what AGENTS.md says: that of
// the top directory when a run starts, and that of each folder, and the ones
// above it, once a tool call works there.
//
//	guide := agentsmd.New(os.DirFS(dir))
//
// A file is told once per thread, and again when its content has changed. A content
// that was told is not told again, by whatever name and in whatever folder. Calls
// are understood to work in a folder when they have an argument "path" that is a
// slash-separated path in the file system given to New, and in the working directory
// if the plugin follows the key that holds it:
//
//	guide := agentsmd.New(os.DirFS(dir)).Follow(cwd.Dir)
//
// The guides of a working directory are then also told when a run starts there or the
// user moved the thread.
//
// The section "agentsmd" of an agent spec names the files; of those that a folder
// has, the first counts. This is what holds without one:
//
//	"agentsmd": {"names": ["AGENTS.md", "CLAUDE.md", "GEMINI.md"], "max_bytes": 32768}
//
// A guide is text from the file system that the model will follow: with "names": [] it
// gets none. Hooks of this plugin read the file system; what they tell depends on it.
package agentsmd
