package checks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/internal/git"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// tree returns what stands for the files of the workspace as they are.
func (p plugin) tree(ctx context.Context, snap *state.Snapshot) (string, error) {
	repo, err := git.Open(ctx, p.opts.Dir)
	if errors.Is(err, git.ErrNoRepository) || errors.Is(err, git.ErrNoGit) {
		return fmt.Sprintf("calls:%d", calls.Get(snap)), nil
	}
	if err != nil {
		return "", err
	}
	return repo.WorkTree(ctx)
}

// verdict returns the verdict about the files as they are, and whether it is a fresh
// one. Files that are as they were when the run began need no check: the zero Verdict.
// The error is that of ctx.
func (p plugin) verdict(ctx context.Context, pc *phase.Context) (v Verdict, fresh bool, err error) {
	snap, settings := pc.Snapshot(), Section.Get(pc)
	tree, err := p.tree(ctx, snap)
	switch last := Last.Get(snap); {
	case ctx.Err() != nil:
		return v, false, context.Cause(ctx)
	case err != nil:
		return Verdict{Step: pc.Run().Step, Failures: []Failure{{Command: "looking for changes", Status: err.Error()}}}, true, nil
	case last.Tree == tree:
		return last, false, nil
	case tree == start.Get(snap):
		return v, last.Tree != "", nil // what was checked meanwhile is gone
	}
	env := git.Environment(settings.Env...)
	v = Verdict{Tree: tree, Step: pc.Run().Step}
	for _, c := range settings.Commands {
		if f, failed := p.one(ctx, c, env, max(settings.MaxBytes/len(settings.Commands), 256)); failed {
			v.Failures = append(v.Failures, f)
		}
		if ctx.Err() != nil {
			return v, false, context.Cause(ctx)
		}
	}
	// Commands may change files, and those that are there now are what they leave as good.
	if after, err := p.tree(ctx, snap); err == nil {
		v.Tree = after
	}
	return v, true, nil
}

// one runs a command.
func (p plugin) one(ctx context.Context, c Command, env []string, limit int) (f Failure, failed bool) {
	late := fmt.Errorf("not done after %s", c.limit())
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit(), late)
	defer cancel()
	out := &git.Tail{Limit: limit}
	err := git.Process{Args: c.Args, Dir: filepath.Join(p.opts.Dir, filepath.FromSlash(c.Dir)), Env: env, Stdout: out, Stderr: out}.Run(ctx)
	if err == nil {
		return f, false
	}
	f = Failure{Command: c.title(), Status: err.Error(), Output: strings.TrimRight(out.String(), "\n")}
	var exit *git.ExitError
	if errors.As(err, &exit) {
		f.Status = exit.Status
	}
	return f, true
}

// text tells the model.
func (v Verdict) text() string {
	var b strings.Builder
	b.WriteString("Checks failed. Fix what they found.")
	for _, f := range v.Failures {
		fmt.Fprintf(&b, "\n\n%s: %s", cut(f.Command, 200), cut(f.Status, 500))
		if f.Output != "" {
			b.WriteString("\n" + f.Output)
		}
	}
	return b.String()
}

// cut returns the beginning of a text.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}

// almost ends a little before ctx does, so that what was found out can still be told.
func almost(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
}
