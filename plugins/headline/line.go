package headline

import (
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/state"
)

// Line is the headline.
type Line struct {
	Step   int    `json:"step"`             // the last step that ended; of Outline
	Calls  int    `json:"calls"`            // tool calls in all steps; of Outline
	Failed int    `json:"failed,omitzero"`  // calls that did not do their work; of Outline
	Focus  string `json:"subject,omitzero"` // what the agent works on; of Focus
}

// String returns the headline as a line of text, "" before the first step.
func (l Line) String() string {
	if l == (Line{}) {
		return ""
	}
	parts := []string{fmt.Sprintf("step %d", l.Step), count(l.Calls, "call")}
	if l.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", l.Failed))
	}
	if l.Focus != "" {
		parts = append(parts, l.Focus)
	}
	return strings.Join(parts, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Key holds the headline of the run. It is Exclusive.
var Key = state.NewCell(Name, state.Options[Line]{})

// Name is the name of the plugin that brings the key.
const Name = "headline"

// New returns the plugin that brings Key. It holds nothing and is safe for
// concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Key)
		return nil
	})
}
