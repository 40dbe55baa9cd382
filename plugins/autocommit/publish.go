package autocommit

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/internal/git"
	"github.com/ddd26017/fixpoint/phase"
)

// publish has the branch lead to the commit. It finds what it has done already, when
// the process ended before that was known.
func (p plugin) publish(ctx context.Context, pc *phase.Context, made prepared) (cmd phase.Command, err error) {
	res := Result{Run: made.Run, Status: Committed, Commit: made.Commit, Branch: made.Branch}
	err = p.move(ctx, &res, made, pc.Run().ID, Section.Get(pc).Hooks)
	switch {
	case ctx.Err() != nil:
		return cmd, context.Cause(ctx)
	case made.Run != pc.Run().ID:
		return cmd, err
	case err != nil:
		return ended(Result{Run: made.Run, Status: Failed, Why: err.Error()}), nil
	}
	return ended(res), nil
}

// move moves the branch, unless it is there or beyond, and then the user's index. Of a
// run that was given up it only does the rest of what was begun: if nothing was, its
// changes are among what the present run finds.
func (p plugin) move(ctx context.Context, res *Result, made prepared, run string, hooks bool) error {
	repo, err := git.Open(ctx, p.opts.Dir)
	if err != nil {
		return err
	}
	head, branch, err := repo.Head(ctx)
	if err != nil {
		return err
	}
	there, err := repo.Leads(ctx, made.Commit, head)
	switch {
	case err != nil:
		return err
	case there:
	case made.Run != run:
		return nil
	case branch != made.Branch:
		return fmt.Errorf("autocommit: the branch was changed from %s to %s meanwhile", title(made.Branch), title(branch))
	case repo.UnderWay() != "":
		return fmt.Errorf("autocommit: %s was begun meanwhile", repo.UnderWay())
	default:
		if err := repo.Update(ctx, cmp.Or(branch, "HEAD"), made.Commit, made.Parent, "commit: by an agent, run "+made.Run); err != nil {
			return err
		}
	}
	before, err := repo.TreeOf(ctx, made.Parent)
	if err != nil {
		return err
	}
	after, err := repo.TreeOf(ctx, made.Commit)
	if err != nil {
		return err
	}
	changes, err := repo.Diff(ctx, before, after)
	if err != nil {
		return err
	}
	for _, c := range changes {
		res.Paths = append(res.Paths, c.Path)
	}
	// The commit is there, whatever goes wrong now.
	if err := follow(ctx, repo, after, changes); err != nil {
		res.Why = fmt.Sprintf("the index does not have the commit's files: %v", err)
	} else if hooks {
		if err := repo.Hook(ctx, "post-commit", ""); err != nil {
			res.Why = fmt.Sprintf("the hook post-commit: %v", err)
		}
	}
	return nil
}

// follow puts the files that were committed with a tree into the user's index, except
// those for which something else is staged by now.
func follow(ctx context.Context, repo *git.Repo, tree string, changes []git.Change) error {
	staged, err := repo.Staged(ctx, tree)
	if err != nil {
		return err
	}
	has := map[string]git.Entry{}
	for _, c := range staged {
		has[c.Path] = c.Now
	}
	var due []git.Entry
	for _, c := range changes {
		if now, differs := has[c.Path]; differs && now == c.Before {
			due = append(due, c.Now)
		}
	}
	if len(due) == 0 {
		return nil
	}
	return repo.Stage(ctx, "", due)
}
