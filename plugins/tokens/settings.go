package tokens

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
)

// AnyModel is the name that stands for every model without a window of its own.
const AnyModel = "*"

// Settings is the content of the section.
type Settings struct {
	// Budget is how many tokens the run may use, input and output together; 0 means that
	// there is no budget to tell.
	Budget int64 `json:"budget"`
	// Windows has the size of each model's context window in tokens, by model id; that of
	// AnyModel is for all others.
	Windows map[string]int64 `json:"windows"`
	// Every is the number of steps between two notes about what was used. The default is
	// 1, a note in each step; 0 means no such notes.
	Every int `json:"every"`
	// From is the share of the budget or of the window, whichever is fuller, below which
	// there are no such notes.
	From float64 `json:"from"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Every: 1} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	if s.Budget < 0 {
		return fmt.Errorf("tokens: budget is %d; want 0 for none, or more", s.Budget)
	}
	for _, model := range slices.Sorted(maps.Keys(s.Windows)) {
		if model == "" {
			return fmt.Errorf("tokens: windows has a model without a name; use its model id, or %q for any", AnyModel)
		}
		if s.Windows[model] < 1 {
			return fmt.Errorf("tokens: windows[%q] is %d; want 1 or more", model, s.Windows[model])
		}
	}
	if s.Every < 0 {
		return fmt.Errorf("tokens: every is %d; want 0 for no notes, or a number of steps", s.Every)
	}
	if !(s.From >= 0 && s.From <= 1) {
		return fmt.Errorf("tokens: from is %v; want a share from 0 to 1", s.From)
	}
	return nil
}

// settled reports whether known returns that name whatever follows it.
func (s Settings) settled(name string) bool {
	others := len(s.Windows)
	if s.Windows[AnyModel] > 0 {
		others--
	}
	return name != "" && (others == 0 || name != AnyModel && s.Windows[name] > 0)
}

// known returns the first of the names of a model that has a window, or else the first
// name.
func (s Settings) known(names ...string) string {
	for _, name := range names {
		if s.Windows[name] > 0 && name != AnyModel {
			return name
		}
	}
	return cmp.Or(names...)
}

// window returns the size of a model's window, 0 when it is not known.
func (s Settings) window(model string) int64 {
	return cmp.Or(s.Windows[model], s.Windows[AnyModel])
}
