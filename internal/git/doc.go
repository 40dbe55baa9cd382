// Package git runs the git program, and other programs, for the plugins that work on a
// directory: with a context, a process group of its own, an environment without
// secrets, and bounded output.
//
//	repo, err := git.Open(ctx, dir)
//	if errors.Is(err, git.ErrNoRepository) { ... }
//	tree, err := repo.WorkTree(ctx)
//
// What it does to a repository is add objects and, where a method says so, move a
// ref or change the index. Everything else it works out in an index of its own, in
// the system's directory for temporary files. No hook of the repository runs unless
// one is asked for by name, and no background maintenance.
//
// A Process runs any program and inherits the variables that Environment lists and
// no others: what may hold a secret, and GIT_DIR and the like, which would make git
// look elsewhere, stay behind. When its context ends, all of its process group is
// killed; on systems without process groups the program alone.
//
// A Repo is immutable and safe for concurrent use.
package git
