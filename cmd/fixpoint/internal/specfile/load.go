package specfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/ddd26017/fixpoint/engine"
)

// File is a read spec file.
type File struct {
	Name  string // for errors
	Specs []engine.AgentSpec
	roots []*engine.SpecNode // of Specs
}

// Fault returns an error about a field of a spec, with its place.
func (f File) Fault(spec int, field, format string, args ...any) *engine.SpecError {
	err := fmt.Errorf(format, args...)
	fault := &engine.SpecError{File: f.Name, Agent: f.Specs[spec].ID, Path: field, Msg: err.Error(), Err: errors.Unwrap(err)}
	if spec >= len(f.roots) {
		return fault
	}
	fault.Line, fault.Column = f.roots[spec].Line, f.roots[spec].Column
	for _, m := range f.roots[spec].Members {
		if m.Name == field {
			fault.Line, fault.Column = m.Value.Line, m.Value.Column
		}
	}
	return fault
}

// Read reads the file of that path in fsys. A file holds one spec or several: a
// list, or YAML documents one after the other. The display name is for errors.
// What is wrong with a spec is a *engine.SpecError; all faults come joined.
func Read(fsys fs.FS, name, display string) (File, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		var where *fs.PathError
		if errors.As(err, &where) {
			err = where.Err // its path is relative to fsys, which says little
		}
		return File{}, fmt.Errorf("fixpoint: cannot read the spec %s: %w", display, err)
	}
	var specs []engine.AgentSpec
	if path.Ext(name) == ".json" {
		specs, err = engine.ParseSpecs(display, data)
	} else {
		specs, err = ParseYAML(display, data)
	}
	if err == nil && len(specs) == 0 {
		err = &engine.SpecError{File: display, Line: 1, Column: 1, Msg: "the list of specs is empty"}
	}
	file := File{Name: display, Specs: specs}
	// JSON is YAML too, and the places are the same.
	if root, _ := tree(data); root != nil && root.Kind == engine.ListNode {
		file.roots = root.Items
	} else if root != nil {
		file.roots = []*engine.SpecNode{root}
	}
	return file, err
}
