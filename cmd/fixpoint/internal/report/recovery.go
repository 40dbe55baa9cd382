package report

import (
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// replacer is a tool that replaces the file as a whole, so that it may run twice.
type replacer struct{ engine.Tool }

// Recovery says that a call that was under way when its process ended runs again.
func (replacer) Recovery() engine.Recovery { return engine.Rerun }

// Validate checks the arguments as the tool itself does.
func (t replacer) Validate(args inference.JSON) error {
	if v, ok := t.Tool.(engine.Validator); ok {
		return v.Validate(args)
	}
	return nil
}
