package gate

import (
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// Vote is what one gate said about a call, in registration order.
type Vote struct {
	Plugin   string
	Decision Decision
	Err      error         // the gate failed: counts as a block unless FailOpen
	FailOpen bool          // a failure counts as no opinion
	Began    time.Time     // the check; Resolve does not look at it, nor at
	Took     time.Duration // how long it took
}

// Cause tells a deliberate outcome from one that a fault or a default brought about.
type Cause string

// Causes.
const (
	Decided    Cause = "decided"     // a gate said so
	GateFailed Cause = "gate_failed" // a gate failed and the call is blocked for safety
	ByDefault  Cause = "default"     // nobody had an opinion
	Unsettled  Cause = "unsettled"   // edits did not come to rest within the round limit
)

// Clash is a disagreement between two gates that the order of registration
// settled: two decisions of the same kind that differ, or two different edits.
type Clash struct {
	Kind   Kind   `json:"kind"`
	Edit   bool   `json:"edit,omitzero"` // the clash is over edited arguments
	Winner string `json:"winner"`
	Loser  string `json:"loser"`
}

// EditOf is a change of arguments and the plugin that made it.
type EditOf struct {
	Plugin string
	Args   inference.JSON
}

// Resolution is the outcome of one round of votes.
type Resolution struct {
	Decision Decision
	Plugin   string // whose decision it is; "" when nobody had an opinion
	Index    int    // of the vote that decided; -1 when nobody had an opinion
	Cause    Cause
	Err      error   // *FailedError when Cause is GateFailed
	Edit     *EditOf // arguments to apply before asking everyone again; nil when blocked or none
	Clashes  []Clash
}

// Resolve folds the votes of all gates about call: the strictest kind wins, and
// between equals the first registered. An edit that equals the call's own
// arguments is no edit. Resolve is pure.
func Resolve(call inference.ToolCall, votes []Vote) Resolution {
	res := Resolution{Index: -1, Cause: ByDefault}
	for i := range votes {
		v := &votes[i]
		d, failed := normal(v)
		switch {
		case d.kind == KindAbstain:
		case res.Index < 0 || d.kind > res.Decision.kind:
			res.Decision, res.Plugin, res.Index, res.Err = d, v.Plugin, i, failed
			res.Clashes = nil // what did not decide did not clash
		case d.kind == res.Decision.kind && differ(d, res.Decision):
			res.Clashes = append(res.Clashes, Clash{Kind: d.kind, Winner: res.Plugin, Loser: v.Plugin})
		}
	}
	switch {
	case res.Err != nil:
		res.Cause = GateFailed
	case res.Index >= 0:
		res.Cause = Decided
	}
	if res.Decision.kind != KindBlock {
		res.edit(call, votes)
	}
	return res
}

func (res *Resolution) edit(call inference.ToolCall, votes []Vote) {
	for i := range votes {
		v := &votes[i]
		if v.Err != nil || !v.Decision.edits || v.Decision.args == call.Args {
			continue
		}
		if res.Edit == nil {
			res.Edit = &EditOf{Plugin: v.Plugin, Args: v.Decision.args}
		} else if v.Decision.args != res.Edit.Args {
			res.Clashes = append(res.Clashes, Clash{Kind: v.Decision.kind, Edit: true, Winner: res.Edit.Plugin, Loser: v.Plugin})
		}
	}
}

// normal turns a fault into the decision it counts as.
func normal(v *Vote) (Decision, error) {
	err := v.Err
	if err == nil && v.Decision.kind >= kinds {
		err = ErrUnknownKind
	}
	if err == nil {
		return v.Decision, nil
	}
	if v.FailOpen {
		return Decision{}, nil
	}
	return Block("the policy of " + v.Plugin + " could not be checked"), &FailedError{Plugin: v.Plugin, Err: err}
}

// differ reports whether it is worth telling that one of two decisions of a kind won.
func differ(a, b Decision) bool {
	return a.kind >= KindSetResult || a.reason != b.reason || a.ticket != b.ticket || a.result != b.result || a.endRun != b.endRun
}
