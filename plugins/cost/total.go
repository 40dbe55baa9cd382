package cost

import (
	"math"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// Total is what some model calls used and cost.
type Total struct {
	Amount Amount          `json:"amount"`
	Calls  int64           `json:"calls"`
	Usage  inference.Usage `json:"usage"`
	// Unpriced is the part of Usage that is not in Amount, for want of a price.
	Unpriced inference.Usage `json:"unpriced,omitzero"`
}

// Add returns the sum of two totals. It stops at the largest numbers instead of wrapping.
func (t Total) Add(other Total) Total {
	calls := t.Calls + other.Calls
	if t.Calls > math.MaxInt64-other.Calls {
		calls = math.MaxInt64
	}
	return Total{t.Amount.plus(other.Amount), calls, t.Usage.Add(other.Usage), t.Unpriced.Add(other.Unpriced)}
}

// Elsewhere is the name in Models for tokens that came by no model call of the run's own.
const Elsewhere = "elsewhere"

var (
	// Run is what the run has cost so far.
	Run = newTotal("cost.run", state.ScopeRun)
	// Thread is what all runs of the thread have cost so far.
	Thread = newTotal("cost.thread", state.ScopeThread)
	// Models is the part of each model in Run, by its id, and of Elsewhere.
	Models = state.NewTable[string]("cost.models", state.Options[Total]{})
	// Cache is how the thread's model calls fared with the model's cache.
	Cache = state.NewCell("cost.cache", state.Options[CacheState]{Scope: state.ScopeThread})
)

// newTotal declares a key that totals are added to.
func newTotal(name string, scope state.Scope) state.Key[Total, Total] {
	return state.NewKey(name, state.KeyConfig[Total, Total]{Scope: scope, Merge: state.Commutative, Apply: Total.Add})
}

// CacheState tells whether the provider's cache serves a thread.
type CacheState struct {
	Hits   int64 `json:"hits"`           // calls with cached input tokens
	Misses int64 `json:"misses"`         // calls without
	Cold   int64 `json:"cold"`           // misses right behind a hit: the cache was lost
	Warm   bool  `json:"warm,omitempty"` // the last call was a hit
}

// after returns the state after one more call.
func (c CacheState) after(u inference.Usage) CacheState {
	switch {
	case u.CachedTokens > 0:
		c.Hits++
		c.Warm = true
	default:
		c.Misses++
		if c.Warm {
			c.Cold++
		}
		c.Warm = false
	}
	return c
}

var (
	// counted is the part of engine.Usage that is in Run.
	counted = state.NewCell("cost.counted", state.Options[inference.Usage]{})
	// told is how far the run's notes have come.
	told = state.NewCell("cost.told", state.Options[notes]{})
)

// notes holds the highest of Settings.TellAt that was told in the run.
type notes struct {
	Person Amount `json:"person,omitzero"`
	Model  Amount `json:"model,omitzero"`
	Limit  bool   `json:"limit,omitzero"` // the person was told of a limit
}

// less returns a - b, field by field.
func less(a, b inference.Usage) inference.Usage {
	return inference.Usage{
		InputTokens:  max(a.InputTokens-b.InputTokens, 0),
		OutputTokens: max(a.OutputTokens-b.OutputTokens, 0),
		CachedTokens: max(a.CachedTokens-b.CachedTokens, 0), ReasoningTokens: max(a.ReasoningTokens-b.ReasoningTokens, 0),
	}
}
