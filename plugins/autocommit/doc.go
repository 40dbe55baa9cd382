// Package autocommit is a plugin that commits what an agent changed when its run ends,
// after the checks have passed.
//
//	commit := autocommit.New(autocommit.Options{Dir: dir, Name: "Agent", Email: "agent@example.com"})
//
// It does nothing unless an agent asks for it with the section "autocommit":
//
//	"autocommit": {"enabled": true, "message": "{{.Task}}\n\nRun {{.Run}} of {{.Agent}}.", "hooks": true}
//
// The hook that has it done is in tier 1 of run_end. Checks in tier 0 (package checks,
// or any hook that stops the phase) keep it from running. Runs that ended otherwise than
// by one of the section's reasons, "natural" unless it says more, are not committed.
//
// # What is committed
//
// Files that git tracks or would add, below Options.Dir, that differ from the start of
// the run, whoever changed them meanwhile, and from HEAD. Submodules and nested
// repositories are left alone, and so is what git was told to overlook: ignored files
// and those with the marks assume-unchanged or skip-worktree.
// What the user had changed before stays the user's: when the agent changed a file that
// was modified, new or staged when the run began, or when something else than what
// would be committed is staged for it now, or when one is a folder where the other is a
// file, nothing at all is committed, and Result says which files it is about. So it is when the branch was changed, or a merge, rebase or
// the like is under way. Nothing else that is staged is committed or unstaged. Nothing
// is ever pushed.
//
// The commit is made beside the user's index, which afterwards has the new content of
// the committed files. Hooks of the repository run only with "hooks": pre-commit,
// prepare-commit-msg, commit-msg and post-commit, with git 2.36 or later; one that fails,
// or stages other files, has nothing committed. Filters that git has set up run as they
// do for "git add". Commits are not signed.
//
// # Once
//
// The commit is outside work in two actions. The first makes the commit object, to
// which nothing leads, and puts its id into the state. The second moves the branch
// there, from the very commit that it was made for. A process that ends in between and
// a run that is resumed do the second again, which finds what is done already: there is
// at most one commit. Only post-commit may run again then. If the user took the commit
// off the branch before the run was resumed, it is put there again.
//
// What came of it is in the thread's state under Last, and is delivered by the durable
// effect Done to Options.OnDone. With Options.Now and fixed ids, commits are the same.
package autocommit
