package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/specfile"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/steward"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// outputDir is the folder for what runs write, below the surveyed directory.
const outputDir = ".fixpoint"

// agentFile is a spec file with the models that its specs name.
type agentFile struct {
	specfile.File
	models map[string]inference.Model
	notes  *relayed // what the models tell
	env    func(name string) string
}

// loadAgent reads a spec file, or the built-in one for "", and makes its models.
func loadAgent(name string, c chosen) (agentFile, error) {
	fsys, base, display := fs.FS(steward.Files), steward.Name, "steward:"+steward.Name
	if name != "" {
		fsys, base, display = os.DirFS(filepath.Dir(name)), filepath.Base(name), name
	}
	file, err := specfile.Read(fsys, base, display)
	if err != nil {
		return agentFile{}, usageError{err}
	}
	a := agentFile{File: file, env: c.env}
	if err := a.addModels(fsys, c); err != nil {
		return agentFile{}, usageError{err}
	}
	return a, nil
}

// startWith puts the agent of that name first, if the file has it.
func (a *agentFile) startWith(id string) {
	for i, spec := range a.Specs {
		if spec.ID == id {
			a.Specs = append([]engine.AgentSpec{spec}, slices.Delete(slices.Clone(a.Specs), i, i+1)...)
			return
		}
	}
}

// workspace is the directory that an agent works in, and where it writes.
type workspace struct {
	dir     string // absolute
	report  string // absolute
	display string // of the report, relative to the directory where possible
	hidden  []string
}

// newWorkspace looks at the directory. It writes nothing.
func newWorkspace(dir, out string, others ...string) (workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return workspace{}, err
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return workspace{}, usageError{fmt.Errorf("fixpoint: --dir: %w", err)}
	case !info.IsDir():
		return workspace{}, usageError{fmt.Errorf("fixpoint: --dir: %s is not a directory", dir)}
	}
	w := workspace{dir: abs, report: filepath.Join(abs, outputDir, "report.md")}
	if out != "" {
		if w.report, err = filepath.Abs(out); err != nil {
			return workspace{}, err
		}
	}
	// What a run writes must not be part of what the next one sees.
	for _, file := range append(others, w.report) {
		if file == "" {
			continue
		}
		if rel, inside := w.inside(file); inside && rel != "." {
			w.hidden = append(w.hidden, rel)
		}
	}
	w.display = w.report
	if rel, inside := w.inside(w.report); inside {
		w.display = rel
	}
	return w, nil
}

// inside returns a file's path with slashes relative to the directory, if it is
// in it.
func (w workspace) inside(file string) (string, bool) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(w.dir, abs)
	rel = filepath.ToSlash(rel)
	return rel, err == nil && fs.ValidPath(rel)
}

// prepare makes the folder for outputs, with a note to git that it holds nothing
// to keep.
func (w workspace) prepare() error {
	folder := filepath.Join(w.dir, outputDir)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("fixpoint: cannot make the folder for outputs: %w", err)
	}
	ignore := filepath.Join(folder, ".gitignore")
	if _, err := os.Stat(ignore); err == nil {
		return nil
	}
	if err := os.WriteFile(ignore, []byte("*\n"), 0o666); err != nil {
		return fmt.Errorf("fixpoint: cannot write %s: %w", ignore, err)
	}
	return nil
}

// literal is the pattern, as path.Match takes it, of just that path.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// kept are the hidden paths below the directory, without the folders of others of them:
// what is in such a folder otherwise is not the command's.
func (w workspace) kept() (names []string) {
	for _, name := range w.hidden {
		if !slices.ContainsFunc(w.hidden, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			names = append(names, name)
		}
	}
	return names
}
