package git

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Identity says who made a commit and when. What is empty is git's own to find.
type Identity struct {
	Name, Email string
	// Date is in a form that git reads, such as "@1700000000 +0000".
	Date string
}

func (i Identity) env() (env []string) {
	for _, role := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_"} {
		for _, v := range [][2]string{{"NAME", i.Name}, {"EMAIL", i.Email}, {"DATE", i.Date}} {
			if v[1] != "" {
				env = append(env, role+v[0]+"="+v[1])
			}
		}
	}
	return env
}

// Commit makes a commit object, which no ref leads to yet, without a signature. An
// empty parent is none. The identity is that of author and committer.
func (r *Repo) Commit(ctx context.Context, tree, parent, message string, by Identity) (string, error) {
	args := []string{"commit-tree", tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return r.line(ctx, Call{Args: args, Stdin: strings.NewReader(message), Env: by.env()})
}

// Update moves a ref to a commit, provided that it is at old; "" means that it must
// not exist. The reason is for the ref's log; without one no log is made.
func (r *Repo) Update(ctx context.Context, ref, commit, old, reason string) error {
	args := []string{"update-ref", ref, commit}
	if reason != "" {
		args = []string{"update-ref", "-m", reason, ref, commit}
	}
	_, err := r.Git(ctx, Call{Args: append(args, cmp.Or(old, r.none)), Unlogged: reason == ""})
	return err
}

// Leads reports whether a commit is another one or comes before it.
func (r *Repo) Leads(ctx context.Context, commit, to string) (bool, error) {
	if commit == "" || to == "" {
		return false, nil
	}
	// It writes nothing either way: the status is the answer.
	_, err := r.Git(ctx, Call{Args: []string{"merge-base", "--is-ancestor", commit, to}})
	if err == nil {
		return true, nil
	}
	_, err = quiet("", err)
	return false, err
}

// IndexTree returns a tree of what is in the user's index. It fails when there are
// conflicts in it.
func (r *Repo) IndexTree(ctx context.Context) (tree string, err error) {
	err = Scratch(func(dir string) error {
		index := filepath.Join(dir, "index")
		if err := r.copyIndex(index); err != nil {
			return err
		}
		tree, err = r.line(ctx, Call{Args: []string{"write-tree"}, Index: index})
		return err
	})
	return tree, err
}

// UnderWay returns what somebody has begun in the work tree and not ended, such as
// "a merge", or "".
func (r *Repo) UnderWay() string {
	for _, p := range [][2]string{
		{"MERGE_HEAD", "a merge"}, {"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"},
		{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"}, {"BISECT_LOG", "a bisection"},
		{"sequencer", "a series of cherry-picks or reverts"},
	} {
		if _, err := os.Lstat(filepath.Join(r.gitDir, p[0])); err == nil {
			return p[1]
		}
	}
	return ""
}

// Hook runs a hook of the repository, if it has that one, with an index, "" for the
// user's. An error is an *ExitError with what the hook said.
func (r *Repo) Hook(ctx context.Context, name, index string, args ...string) error {
	call := append([]string{"hook", "run", "--ignore-missing", name, "--"}, args...)
	_, err := r.Git(ctx, Call{Args: call, Top: true, Index: index, Hooks: true})
	return err
}
