package cost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// Price is what a million tokens of a model cost.
type Price struct {
	Input  Amount `json:"input"`
	Output Amount `json:"output"`
	// Cached is for input tokens that a cache served; unset means as Input.
	Cached inference.Opt[Amount] `json:"cached,omitzero"`
}

// Of returns what a usage costs. Numbers that make no sense, such as more cached tokens
// than input, count as the nearest that do.
func (p Price) Of(u inference.Usage) Amount {
	cached := min(max(u.CachedTokens, 0), max(u.InputTokens, 0))
	return sum(charge{u.InputTokens - cached, p.Input}, charge{cached, p.Cached.Or(p.Input)}, charge{u.OutputTokens, p.Output})
}

// AnyModel is the name that stands for every model without a price of its own.
const AnyModel = "*"

// Unknown says what to do about a model without a price.
type Unknown string

// The ways; the zero one tells.
const (
	UnknownTell   Unknown = "tell"    // it costs nothing, and the person is told
	UnknownEndRun Unknown = "end_run" // the person is told and the run ends
)

// AtLimit says what to do when a limit is reached.
type AtLimit string

// The ways; the zero one ends the run.
const (
	LimitEndsRun    AtLimit = "end_run"
	LimitBlocksCall AtLimit = "block_tools" // no more tool calls, so that the model can only answer
)

// Settings is the content of the section.
type Settings struct {
	// Currency is a word for people. The default is USD.
	Currency string `json:"currency"`
	// Prices by model id; that of AnyModel is for all others.
	Prices map[string]Price `json:"prices"`
	// Unknown is for models without a price.
	Unknown Unknown `json:"unknown"`
	// TellAt lists amounts, in rising order, at which the model and the person are told
	// what the run has cost, once each. Of several passed at once only the highest is
	// told.
	TellAt []Amount `json:"tell_at"`
	// Note says how long the model is shown what it is told: "" for good, or "one_shot".
	Note engine.ContextMode `json:"note"`
	// Limit is what a run may cost, and ThreadLimit all runs of a thread together; 0
	// means no limit. A model call is known to be too much when it was made, so the cost
	// can pass a limit by that of one step.
	Limit       Amount `json:"limit"`
	ThreadLimit Amount `json:"thread_limit"`
	// AtLimit says what happens at a limit.
	AtLimit AtLimit `json:"at_limit"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Currency: "USD"} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	for _, model := range slices.Sorted(maps.Keys(s.Prices)) {
		p := s.Prices[model]
		if model == "" {
			return fmt.Errorf("cost: prices has a model without a name; use its model id, or %q for any", AnyModel)
		}
		if p.Input < 0 || p.Output < 0 || p.Cached.Or(0) < 0 {
			return fmt.Errorf("cost: prices[%q] has a negative amount", model)
		}
	}
	switch s.Unknown {
	case "", UnknownTell, UnknownEndRun:
	default:
		return fmt.Errorf("cost: unknown is %q; use %s or %s", s.Unknown, UnknownTell, UnknownEndRun)
	}
	for i, a := range s.TellAt {
		if a <= 0 || i > 0 && a <= s.TellAt[i-1] {
			return fmt.Errorf("cost: tell_at[%d] is %s; want amounts above 0, each more than the one before", i, a)
		}
	}
	if s.Note != engine.Persistent && s.Note != engine.OneShot {
		return fmt.Errorf("cost: note is %q; use %q, or leave it out", s.Note, engine.OneShot)
	}
	if s.Limit < 0 || s.ThreadLimit < 0 {
		return fmt.Errorf("cost: a limit is negative; use 0 for no limit, or more")
	}
	switch s.AtLimit {
	case "", LimitEndsRun, LimitBlocksCall:
	default:
		return fmt.Errorf("cost: at_limit is %q; use %s or %s", s.AtLimit, LimitEndsRun, LimitBlocksCall)
	}
	return nil
}

// settled reports whether price goes by that model whatever follows it.
func (s Settings) settled(model string) bool {
	others := len(s.Prices)
	if _, ok := s.Prices[AnyModel]; ok {
		others--
	}
	_, own := s.Prices[model]
	return model != "" && (others == 0 || own && model != AnyModel)
}

// price returns the price of the first of the models that has one, and that model, or
// else the price of any.
func (s Settings) price(models ...string) (p Price, model string, ok bool) {
	for _, m := range models {
		if p, ok = s.Prices[m]; ok && m != AnyModel {
			return p, m, true
		}
	}
	p, ok = s.Prices[AnyModel]
	return p, cmp.Or(models...), ok
}
