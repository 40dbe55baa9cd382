package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/models"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

// modelHelp is the part of help texts about models.
const modelHelp = "The model is the model_id of the spec, or --model: openai:NAME and the like, or script:FILE,\n" +
	"a file of answers. Keys are in the environment, such as OPENAI_API_KEY.\n\n"

func (f *showFlags) addModel(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "ask this `model` instead of those of the spec: "+models.Forms())
}

// chosen says which models a spec file's agents get.
type chosen struct {
	model string // for all of them; "" for those of the spec
	env   func(name string) string
	look  bool // they are not to be asked
}

// chosen returns the choice of the flag, or else that of a record.
func (f showFlags) chosen(recorded string, stdio IO) (chosen, error) {
	c := chosen{model: recorded, env: stdio.env}
	if f.model != "" {
		c.model = f.model
	}
	// Another process may work elsewhere.
	if file, ok := strings.CutPrefix(c.model, models.Script+":"); ok && file != "" {
		abs, err := filepath.Abs(file)
		if err != nil {
			return c, err
		}
		c.model = models.Script + ":" + abs
	}
	return c, nil
}

// relayed passes on what models tell, to a view that is there later than they are.
type relayed struct{ view atomic.Pointer[terminal.View] }

func (t *relayed) tell(label, text string) {
	if v := t.view.Load(); v != nil {
		v.Tell(label, text)
	}
}

// addModels makes the models that the specs name, or the one that was chosen.
func (a *agentFile) addModels(fsys fs.FS, c chosen) error {
	if c.model != "" {
		for i := range a.Specs {
			a.Specs[i].ModelID = c.model
		}
	}
	fault := func(i int, field, format string, args ...any) error { return a.Fault(i, field, format, args...) }
	if c.model != "" {
		fault = func(i int, field, format string, args ...any) error {
			if field != "model_id" {
				return a.Fault(i, field, format, args...)
			}
			return fmt.Errorf("fixpoint: --model: "+format, args...)
		}
	}
	a.notes = &relayed{}
	source := models.Source{Env: c.env, Tell: a.notes.tell, Look: c.look, Script: func(file string) (inference.Model, error) {
		if models.Script+":"+file == c.model {
			return script(os.DirFS(filepath.Dir(file)), filepath.Base(file), file)
		}
		return script(fsys, file, path.Join(filepath.ToSlash(filepath.Dir(a.Name)), file))
	}}
	made, err := source.Make(a.Specs, fault)
	a.models = made
	return err
}

// script reads a scripted model.
func script(fsys fs.FS, file, display string) (inference.Model, error) {
	if !fs.ValidPath(file) {
		return nil, fmt.Errorf("%q is no path with slashes below the folder of the spec", file)
	}
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		var where *fs.PathError
		if errors.As(err, &where) {
			err = where.Err
		}
		return nil, fmt.Errorf("cannot read the script %s: %w", display, err)
	}
	model, err := enginetest.ParseScript(display, text)
	if err != nil {
		return nil, err
	}
	return scripted{model}, nil
}
