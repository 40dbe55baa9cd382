package confirm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Choice is what a person makes of a call.
type Choice string

// The choices.
const (
	Yes    Choice = "yes"    // run it, this once
	No     Choice = "no"     // do not run it; the model reads the Reason
	Edit   Choice = "edit"   // run it with Args instead
	Always Choice = "always" // run it, and what it Covers from now on, for the Scope
	Times  Choice = "times"  // run it, and the next N calls of what it Covers, in this run
)

// Scope is how long "always" is.
type Scope string

// The scopes; the zero one is ScopeRun.
const (
	ScopeRun        Scope = "run"
	ScopeThread     Scope = "thread"     // the later runs of the thread too
	ScopePersistent Scope = "persistent" // kept in Options.Profiles, for all runs of the owner
)

// Covers says which later calls an Always or Times stands for.
type Covers string

// What can be covered; the zero value is CoversTool.
const (
	CoversCall Covers = "call" // calls of the tool with exactly these arguments
	CoversTool Covers = "tool" // calls of the tool
	CoversAll  Covers = "all"  // every call that would be asked about
)

// MostTimes is the largest N.
const MostTimes = 1000

// Answer is the value of the answer to a ticket of this plugin, as JSON. An approval
// without a value is a plain yes.
type Answer struct {
	Choice Choice         `json:"choice"`
	Args   inference.JSON `json:"args,omitzero"`   // Edit: all the arguments, an object
	N      int            `json:"n,omitzero"`      // Times: 1 to MostTimes
	Scope  Scope          `json:"scope,omitzero"`  // Always
	Covers Covers         `json:"covers,omitzero"` // Always and Times
	Reason string         `json:"reason,omitzero"` // No
}

// ErrAnswer is the kind of every error about an Answer.
var ErrAnswer = errors.New("confirm: the answer cannot be used")

// Parse reads the value of an answer, strictly. Its errors are ErrAnswer.
func Parse(value inference.JSON) (a Answer, err error) {
	if value == "" {
		return Answer{Choice: Yes}, nil
	}
	if err := value.Decode(&a); err != nil {
		return a, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return a, a.Validate()
}

// Validate returns what is wrong with the answer, or nil. Its errors are ErrAnswer.
func (a Answer) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrAnswer, fmt.Sprintf(format, args...))
	}
	if !slices.Contains([]Choice{Yes, No, Edit, Always, Times}, a.Choice) {
		return bad("choice is %q; use yes, no, edit, always or times", a.Choice)
	}
	if !slices.Contains([]Scope{"", ScopeRun, ScopeThread, ScopePersistent}, a.Scope) {
		return bad("scope is %q; use run, thread or persistent", a.Scope)
	}
	if !slices.Contains([]Covers{"", CoversCall, CoversTool, CoversAll}, a.Covers) {
		return bad("covers is %q; use call, tool or all", a.Covers)
	}
	grants := a.Choice == Always || a.Choice == Times
	for _, member := range []struct {
		name    string
		present bool
		wanted  bool
	}{
		{"args", a.Args != "", a.Choice == Edit},
		{"n", a.N != 0, a.Choice == Times},
		{"scope", a.Scope != "", a.Choice == Always},
		{"covers", a.Covers != "", grants},
		{"reason", a.Reason != "", a.Choice == No},
	} {
		if member.present && !member.wanted {
			return bad("%s does not go with the choice %q", member.name, a.Choice)
		}
	}
	switch {
	case a.Choice == Edit && (!a.Args.Valid() || !strings.HasPrefix(strings.TrimSpace(string(a.Args)), "{")):
		return bad("args are no JSON object; give all the arguments to run the call with")
	case a.Choice == Times && (a.N < 1 || a.N > MostTimes):
		return bad("n is %d; use 1 to %d", a.N, MostTimes)
	}
	return nil
}

// Reply returns the answer as a resolver or a decision gives it to the engine. A No is
// a denial with its reason. The edited arguments of an Edit are in the value only.
func (a Answer) Reply() (phase.Answer, error) {
	if err := a.Validate(); err != nil {
		return phase.Answer{}, err
	}
	if a.Choice == No {
		return phase.Answer{Reason: cmp.Or(a.Reason, "the user said no")}, nil
	}
	value, err := inference.ToJSON(a)
	return phase.Answer{Approved: true, Value: value}, err
}
