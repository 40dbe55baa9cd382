// Package agentsmd is a plugin that tells the model what AGENTS.md says: that of
// the working directory when a run starts, and that of each folder, and the ones
// above it, once a tool call works there.
//
//	guide := agentsmd.New(os.DirFS(dir))
//
// A file is told once per thread, and again when its content has changed. Calls
// are understood to work in a folder when they have an argument "path" that is a
// slash-separated path in the file system given to New.
//
// The section "agentsmd" of an agent spec names the files; of those that a folder
// has, the first counts:
//
//	"agentsmd": {"names": ["AGENTS.md", "CONTRIBUTING.md"], "max_bytes": 16384}
package agentsmd
