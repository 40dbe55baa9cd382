package files

import (
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// reader is a tool that changes nothing, so that it may run twice.
type reader struct{ engine.Tool }

// Recovery says that a call that was under way when its process ended runs again.
func (reader) Recovery() engine.Recovery { return engine.Rerun }

// Validate checks the arguments as the tool itself does.
func (t reader) Validate(args inference.JSON) error {
	if v, ok := t.Tool.(engine.Validator); ok {
		return v.Validate(args)
	}
	return nil
}
