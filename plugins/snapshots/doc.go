// Package snapshots is a plugin that takes snapshots of the workspace before an agent
// changes it, so that a person, a program or the agent itself can look at what changed
// and go back.
//
//	undo := snapshots.New(snapshots.Options{Dir: dir, Store: filepath.Join(cache, "copies")})
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{undo}, Model: m})
//	...
//	done, err := undo.Restore(ctx, thread, "s1")
//
// # When
//
// A snapshot is taken when a run starts and before the first tool call of a step that
// may change something, by the tool's kind; with "take": "call" before each. The tool
// waits for it: a hook schedules an action at before_tool_execute, and that phase is
// over, also for tools that run in parallel, when its actions are. What has not changed
// since the last snapshot is not taken again. The section "snapshots":
//
//	"snapshots": {"take": "call", "kinds": ["write", "exec", "deploy"], "keep": 20, "required": true}
//
// The thread's state lists the snapshots under Taken, at most "keep" of them. One that
// cannot be taken is reported as a dead letter and the run goes on, unless it is
// "required": then the run ends before the tool runs.
//
// # Where
//
// In a git work tree a snapshot is a commit of its own in the repository, at
// refs/fixpoint/PLACE/THREAD/ID, where PLACE stands for the directory, made with an
// index in a temporary file. The user's index is
// only read, for what is tracked; it, HEAD, branches, stash, hooks, logs and settings are
// as before, and no hook runs.
// Elsewhere, also where a repository ignores the workspace, there are copies in
// Options.Store, each content once. The first is pruned by git itself once
// Prune dropped the ref, the second by Prune. Pushing with --mirror pushes the refs too.
// Snapshots of a directory that was moved can be restored from where it is now; the refs
// from before stay. Threads of one directory need ids of their own, also in several
// programs and journals: pruning drops what its own thread does not know.
//
// Covered are the regular files and symbolic links that git tracks or would add, or all
// of them outside a repository, without Options.Exclude: their bytes, whether they are
// executable, and where links lead, whatever filters and line endings git has set up.
// Not covered are ignored files, submodules, nested repositories, anything named .git,
// empty folders, pipes, sockets and devices, and the times, owners, hard links and other
// permissions of files: one that is there keeps its permissions, one that is made again
// gets those of a new file. In copies the files of nested repositories are covered, for
// there is no git to tell. Every snapshot reads all the files, so Options.Limits
// bounds them. There is no snapshot, and so no restoring either, as long as the files are
// beyond the limits, or one cannot be read or has a name that git takes into no tree,
// such as git~1: exclude it then.
//
// # Back
//
// Plugin.Restore makes the covered files as they were: it writes those that differ,
// removes those that came since, with the folders that are empty then, and leaves
// alone what is not covered; what is in the way of a file is listed as kept. It takes a
// snapshot of the present state first, so that a restoring can be undone like
// anything else. Agents have the tools list_snapshots, diff_snapshot and
// restore_snapshot. Restoring undoes what happened to files and nothing else. What came
// since is what the snapshot does not have and one of now would: for example what a
// sparse checkout lacked then, or what was in a repository of its own.
//
// Each file is replaced as a whole, and nothing is written through a link. A restoring
// that fails, or whose process ends, leaves some files old and some new, and perhaps one
// named *.fixpoint-draft; the snapshot from before is the way back, and restoring once
// more the way on. Nobody else is kept from writing meanwhile: what another program
// writes between that snapshot and the restoring of that file is lost, so let nobody
// edit the workspace then. In one program everything happens one after the other.
//
// A process that ends between the making of a snapshot and the commit of the state
// leaves a ref that nobody needs; Prune drops it. Forget drops those of a whole thread.
// Threads that were forked from it depend on it for the snapshots from before, also on
// those that it itself keeps no longer.
//
// With Options.Now the same files give the same snapshots.
package snapshots
