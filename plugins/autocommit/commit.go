package autocommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/git"
	"github.com/ddd26017/fixpoint/phase"
)

// begin notes how things were before the run.
func (p plugin) begin(ctx context.Context, pc *phase.Context, _ struct{}) (cmd phase.Command, err error) {
	repo, err := git.Open(ctx, p.opts.Dir)
	if err != nil {
		return cmd, err
	}
	var b beginning
	if b.Head, b.Branch, err = repo.Head(ctx); err != nil {
		return cmd, err
	}
	if b.Tree, err = repo.WorkTree(ctx); err != nil {
		return cmd, err
	}
	if b.Index, err = repo.IndexTree(ctx); err != nil {
		if ctx.Err() != nil {
			return cmd, context.Cause(ctx)
		}
		b.Index = ""
	}
	return *cmd.Update(start.With(b)), nil
}

// refusal says why there is no commit although nothing went wrong.
type refusal struct {
	why   string
	paths []string
}

func (r *refusal) Error() string { return r.why }

// errUnchanged says that there is nothing to commit.
var errUnchanged = errors.New("nothing was changed")

// prepare makes the commit object. It leads nowhere: run again, it makes another.
func (p plugin) prepare(ctx context.Context, pc *phase.Context, _ struct{}) (cmd phase.Command, err error) {
	run := pc.Run().ID
	made, err := p.object(ctx, pc)
	var no *refusal
	switch {
	case ctx.Err() != nil:
		return cmd, context.Cause(ctx)
	case errors.Is(err, errUnchanged):
		return ended(Result{Run: run, Status: Unchanged, Why: err.Error()}), nil
	case errors.As(err, &no):
		return ended(Result{Run: run, Status: Refused, Why: no.why, Paths: no.paths}), nil
	case err != nil:
		return ended(Result{Run: run, Status: Failed, Why: err.Error()}), nil
	}
	return *cmd.Update(ready.With(made)).Schedule(publish.New(made)), nil
}

func (p plugin) object(ctx context.Context, pc *phase.Context) (made prepared, err error) {
	was := start.Get(pc.Snapshot())
	if was.Tree == "" {
		return made, &refusal{why: "how the files were when the run began is not known"}
	}
	repo, err := git.Open(ctx, p.opts.Dir)
	if err != nil {
		return made, err
	}
	head, branch, err := repo.Head(ctx)
	if err != nil {
		return made, err
	}
	headTree, err := repo.TreeOf(ctx, head)
	if err != nil {
		return made, err
	}
	entries, err := changed(ctx, repo, was.Tree, headTree)
	if err != nil {
		return made, err
	}
	switch {
	case branch != was.Branch:
		return made, &refusal{why: fmt.Sprintf("the branch is %s and was %s when the run began", title(branch), title(was.Branch))}
	case repo.UnderWay() != "":
		return made, &refusal{why: repo.UnderWay() + " is under way"}
	case was.Index == "":
		return made, &refusal{why: "there were conflicts in the index when the run began"}
	}
	if err := free(ctx, repo, was, headTree, entries); err != nil {
		return made, err
	}
	settings := Section.Get(pc)
	message, err := settings.write(words(pc, entries))
	if err != nil {
		return made, err
	}
	tree, message, err := stage(ctx, repo, headTree, entries, message, settings.Hooks)
	if err != nil {
		return made, err
	}
	by := git.Identity{
		Name: cmp.Or(settings.Name, p.opts.Name), Email: cmp.Or(settings.Email, p.opts.Email),
		Date: fmt.Sprintf("@%d +0000", max(0, p.opts.Now().Unix())),
	}
	commit, err := repo.Commit(ctx, tree, head, message, by)
	return prepared{Run: pc.Run().ID, Commit: commit, Parent: head, Branch: branch}, err
}

func title(branch string) string { return cmp.Or(strings.TrimPrefix(branch, "refs/heads/"), "none") }

// changed returns the files as they are now that differ from a tree and from that of HEAD.
func changed(ctx context.Context, repo *git.Repo, from, headTree string) (entries []git.Entry, err error) {
	now, err := repo.WorkTree(ctx)
	if err != nil {
		return nil, err
	}
	since, err := differing(ctx, repo, from, now)
	if err != nil {
		return nil, err
	}
	missing, err := repo.Diff(ctx, headTree, now)
	if err != nil {
		return nil, err
	}
	for _, c := range missing {
		if since[c.Path] && strings.HasPrefix(c.Path, repo.Prefix()) && c.Before.Mode != git.ModeSubmodule && c.Now.Mode != git.ModeSubmodule {
			entries = append(entries, c.Now)
		}
	}
	if len(entries) == 0 {
		return nil, errUnchanged
	}
	return entries, nil
}

// differing returns the paths at which two trees differ.
func differing(ctx context.Context, repo *git.Repo, a, b string) (map[string]bool, error) {
	changes, err := repo.Diff(ctx, a, b)
	paths := map[string]bool{}
	for _, c := range changes {
		paths[c.Path] = true
	}
	return paths, err
}

// free returns nil if nothing of the user's is in the files.
func free(ctx context.Context, repo *git.Repo, was beginning, headTree string, entries []git.Entry) error {
	base, err := repo.TreeOf(ctx, was.Head)
	if err != nil {
		return err
	}
	modified, err := differing(ctx, repo, base, was.Tree)
	if err != nil {
		return err
	}
	hadStaged, err := differing(ctx, repo, base, was.Index)
	if err != nil {
		return err
	}
	staged, err := repo.Staged(ctx, headTree)
	if err != nil {
		return err
	}
	ours := map[string]git.Entry{}
	for _, e := range entries {
		ours[e.Path] = e
	}
	hasStaged := map[string]bool{} // what is not to be committed
	for _, c := range staged {
		e, is := ours[c.Path]
		if is && (c.Now.Mode != e.Mode || e.Mode != "" && c.Now.ID != e.ID) || !is && c.Now.Mode != "" {
			hasStaged[c.Path] = true
		}
	}
	maps.Copy(modified, hadStaged)
	var before, meanwhile []string
	users, others := newTouched(modified), newTouched(hasStaged)
	for _, e := range entries {
		if users.by(e.Path) {
			before = append(before, e.Path)
		}
		if others.by(e.Path) {
			meanwhile = append(meanwhile, e.Path)
		}
	}
	switch {
	case len(before) > 0:
		return &refusal{why: "the agent changed files that were modified, new or staged before the run", paths: before}
	case len(meanwhile) > 0:
		return &refusal{why: "something else is staged for files that the agent changed", paths: meanwhile}
	}
	return nil
}

// touched are paths and the folders that they are in.
type touched struct{ paths, folders map[string]bool }

func newTouched(paths map[string]bool) touched {
	t := touched{paths, map[string]bool{}}
	for name := range paths {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			t.folders[dir] = true
		}
	}
	return t
}

// by reports whether one of the paths cannot stay as it is when there is another file
// at name: it is that very path, or one of the two is where the other has a folder.
func (t touched) by(name string) bool {
	if t.folders[name] {
		return true
	}
	for ; name != "."; name = path.Dir(name) {
		if t.paths[name] {
			return true
		}
	}
	return false
}

// stage makes the tree, and with hooks lets them have their say.
func stage(ctx context.Context, repo *git.Repo, headTree string, entries []git.Entry, message string, hooks bool) (tree, text string, err error) {
	if !hooks {
		if tree, err = repo.Tree(ctx, headTree, entries); err == nil {
			err = within(ctx, repo, headTree, tree, entries, "what the agent made would replace something else")
		}
		return tree, message, err
	}
	err = git.Scratch(func(dir string) error {
		index, file := filepath.Join(dir, "index"), filepath.Join(dir, "message")
		if _, err := repo.TreeIn(ctx, index, headTree, entries); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(message), 0o600); err != nil {
			return fmt.Errorf("autocommit: cannot write the message: %w", err)
		}
		for _, hook := range [][]string{{"pre-commit"}, {"prepare-commit-msg", file, "message"}, {"commit-msg", file}} {
			var exit *git.ExitError
			switch err := repo.Hook(ctx, hook[0], index, hook[1:]...); {
			case errors.As(err, &exit):
				return &refusal{why: fmt.Sprintf("the hook %s refused: %s", hook[0], cmp.Or(exit.Detail, exit.Status))}
			case err != nil:
				return err
			}
		}
		written, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("autocommit: cannot read the message: %w", err)
		}
		if text = string(written); strings.TrimSpace(text) == "" {
			return &refusal{why: "the hooks left no message"}
		}
		if tree, err = repo.TreeIn(ctx, index, "", nil); err != nil {
			return err
		}
		return within(ctx, repo, headTree, tree, entries, "the hook pre-commit staged files that the agent did not change")
	})
	return tree, text, err
}

// within returns nil if a tree differs from that of HEAD in the given files only, and
// otherwise says why it does.
func within(ctx context.Context, repo *git.Repo, headTree, tree string, entries []git.Entry, why string) error {
	paths, err := differing(ctx, repo, headTree, tree)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errUnchanged
	}
	for _, e := range entries {
		delete(paths, e.Path)
	}
	if len(paths) > 0 {
		return &refusal{why: why, paths: slices.Sorted(maps.Keys(paths))}
	}
	return nil
}

// words are those for the message.
func words(pc *phase.Context, entries []git.Entry) Words {
	w := Words{Agent: pc.Agent().ID, Run: pc.Run().ID, Thread: pc.Run().Thread}
	for _, e := range entries {
		w.Paths = append(w.Paths, e.Path)
	}
	switch len(w.Paths) {
	case 1:
		w.Subject = oneLine(w.Paths[0])
	case 2:
		w.Subject = oneLine(w.Paths[0]) + " and " + oneLine(w.Paths[1])
	default:
		w.Subject = fmt.Sprintf("%d files", len(w.Paths))
	}
	for _, m := range engine.Transcript.Get(pc.Snapshot()).All() {
		switch m.Role {
		case inference.RoleUser:
			w.Task = firstLine(m.Text)
		case inference.RoleAssistant:
			w.Text = m.Text
		}
	}
	return w
}

// oneLine returns a path that may have line breaks in it as part of a line.
func oneLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// firstLine returns the beginning of a text, as long as a first line should be.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > 72 {
		return string(r[:69]) + "..."
	}
	return line
}
