package engine

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// StopType says what a StopCondition looks at.
type StopType string

// The types, each with the fields that belong to it.
const (
	StopTypeMaxRounds         StopType = "max_rounds"         // rounds
	StopTypeTimeout           StopType = "timeout"            // seconds
	StopTypeTokenBudget       StopType = "token_budget"       // tokens
	StopTypeConsecutiveErrors StopType = "consecutive_errors" // count
	StopTypeStopOnTool        StopType = "stop_on_tool"       // tool
	StopTypeContentMatch      StopType = "content_match"      // pattern
	StopTypeLoopDetection     StopType = "loop_detection"     // repeats, window
)

// DefaultLoopRepeats is how often the same tool calls must come for a loop when
// a condition of type loop_detection does not say.
const DefaultLoopRepeats = 3

// StopCondition ends a run between two steps. Its type says which of the other
// fields count; those of other types must be left at zero. Conditions are
// comparable values.
type StopCondition struct {
	Type StopType `json:"type"`
	// Rounds is a number of steps.
	Rounds int `json:"rounds,omitempty"`
	// Seconds since the run started; fractions count.
	Seconds float64 `json:"seconds,omitempty"`
	// Tokens that the run's model calls used, input and output together.
	Tokens int64 `json:"tokens,omitempty"`
	// Count is a number of failures in a row.
	Count int `json:"count,omitempty"`
	// Tool is the name of a tool that was called.
	Tool string `json:"tool,omitempty"`
	// Pattern is a regular expression, in the syntax of package regexp, that the
	// text of an answer matches somewhere.
	Pattern string `json:"pattern,omitempty"`
	// Repeats is how many steps, the last one included, must ask for the same tool
	// calls with the same arguments; 0 means DefaultLoopRepeats.
	Repeats int `json:"repeats,omitempty"`
	// Window is how many of the latest steps are looked at; 0 means as many as
	// Repeats, so that only an unbroken row is a loop.
	Window int `json:"window,omitempty"`
}

// StopAfterRounds stops after n steps.
func StopAfterRounds(n int) StopCondition { return StopCondition{Type: StopTypeMaxRounds, Rounds: n} }

// StopAfter stops when the run has taken d.
func StopAfter(d time.Duration) StopCondition {
	return StopCondition{Type: StopTypeTimeout, Seconds: d.Seconds()}
}

// StopOverTokens stops when the run's model calls used n tokens.
func StopOverTokens(n int64) StopCondition {
	return StopCondition{Type: StopTypeTokenBudget, Tokens: n}
}

// StopOnErrors stops after n failures in a row.
func StopOnErrors(n int) StopCondition {
	return StopCondition{Type: StopTypeConsecutiveErrors, Count: n}
}

// StopOnTool stops after a step that called that tool.
func StopOnTool(name string) StopCondition {
	return StopCondition{Type: StopTypeStopOnTool, Tool: name}
}

// StopOnContent stops when an answer matches the regular expression.
func StopOnContent(pattern string) StopCondition {
	return StopCondition{Type: StopTypeContentMatch, Pattern: pattern}
}

// StopOnLoop stops when that many steps in a row ask for the same tool calls; 0
// means DefaultLoopRepeats.
func StopOnLoop(repeats int) StopCondition {
	return StopCondition{Type: StopTypeLoopDetection, Repeats: repeats}
}

// Timeout returns Seconds as a duration.
func (c StopCondition) Timeout() time.Duration {
	return time.Duration(math.Round(c.Seconds * float64(time.Second)))
}

type stopType struct {
	kind   StopType
	fields []string
}

// stopTypes lists the types and the fields of each, in the order of the
// constants.
var stopTypes = []stopType{
	{StopTypeMaxRounds, []string{"rounds"}},
	{StopTypeTimeout, []string{"seconds"}},
	{StopTypeTokenBudget, []string{"tokens"}},
	{StopTypeConsecutiveErrors, []string{"count"}},
	{StopTypeStopOnTool, []string{"tool"}},
	{StopTypeContentMatch, []string{"pattern"}},
	{StopTypeLoopDetection, []string{"repeats", "window"}},
}

// foreign reports a field of a condition that does not belong to its type.
func (f *faults) foreign(kind StopType, field string, at jsonpos.Path) {
	for _, t := range stopTypes {
		if t.kind == kind && field != "type" && !slices.Contains(t.fields, field) {
			f.Name(at.To(field), "a condition of type %s takes no %s; its fields: %s", kind, field, jsonpos.Listed(t.fields))
		}
	}
}

// rules reports what is wrong with the values of c.
func (c StopCondition) rules(f *faults, at jsonpos.Path) {
	names, _ := jsonpos.Fields(reflect.TypeFor[StopCondition]())
	for i, name := range names {
		if !reflect.ValueOf(c).Field(i).IsZero() {
			f.foreign(c.Type, name, at)
		}
	}
	positive := func(field string, n int64) {
		if n <= 0 {
			f.Value(at.To(field), "want %s above 0, got %d", field, n)
		}
	}
	switch c.Type {
	case StopTypeMaxRounds:
		positive("rounds", int64(c.Rounds))
	case StopTypeTimeout:
		const limit = float64(math.MaxInt64 / int64(time.Second))
		if !(c.Seconds > 0 && c.Seconds < limit) || c.Timeout() == 0 {
			f.Value(at.To("seconds"), "want seconds above 0 and below %.0f, got %v", limit, c.Seconds)
		}
	case StopTypeTokenBudget:
		positive("tokens", c.Tokens)
	case StopTypeConsecutiveErrors:
		positive("count", int64(c.Count))
	case StopTypeStopOnTool:
		if c.Tool == "" {
			f.Value(at.To("tool"), "want the name of a tool")
		}
	case StopTypeContentMatch:
		if _, err := regexp.Compile(c.Pattern); err != nil {
			f.Value(at.To("pattern"), "not a regular expression: %v", err).Err = err
		} else if c.Pattern == "" {
			f.Value(at.To("pattern"), "want a regular expression; an empty one matches every answer")
		}
	case StopTypeLoopDetection:
		if c.repeats() < 2 {
			f.Value(at.To("repeats"), "want 2 repeats or more, got %d", c.Repeats)
		} else if c.Window != 0 && c.Window < c.repeats() {
			f.Value(at.To("window"), "want a window of at least the %d repeats, got %d", c.repeats(), c.Window)
		}
	default:
		known := each(stopTypes, func(t stopType) string { return string(t.kind) })
		f.OneOf(at.To("type"), "stop condition", string(c.Type), known...)
	}
}
