package phase

import (
	"fmt"
	"iter"
	"slices"
)

// Phase is a point of a run's lifecycle at which hooks run. The zero Phase is
// invalid, so that a forgotten field is noticed.
type Phase uint8

// The phases in the order in which a run passes through them. StepStart to
// StepEnd repeat for each step; the three tool phases repeat for each tool call.
const (
	RunStart Phase = iota + 1
	StepStart
	BeforeInference
	AfterInference
	ToolGate
	BeforeToolExecute
	AfterToolExecute
	StepEnd
	RunEnd
)

// Count is the number of declared phases. A Phase p is valid when 1 <= p <= Count.
const Count = int(RunEnd)

var names = [...]string{
	RunStart:          "run_start",
	StepStart:         "step_start",
	BeforeInference:   "before_inference",
	AfterInference:    "after_inference",
	ToolGate:          "tool_gate",
	BeforeToolExecute: "before_tool_execute",
	AfterToolExecute:  "after_tool_execute",
	StepEnd:           "step_end",
	RunEnd:            "run_end",
}

// All yields every declared phase in lifecycle order.
func All() iter.Seq[Phase] {
	return func(yield func(Phase) bool) {
		for p := RunStart; p <= RunEnd && yield(p); p++ {
		}
	}
}

// Valid reports whether p is a declared phase.
func (p Phase) Valid() bool { return p >= RunStart && p <= RunEnd }

// String returns the snake_case name of p, or "phase(n)" when p is not declared.
func (p Phase) String() string {
	if !p.Valid() {
		return fmt.Sprintf("phase(%d)", uint8(p))
	}
	return names[p]
}

// Parse returns the phase of that snake_case name, or an error that wraps
// ErrUnknownPhase.
func Parse(name string) (Phase, error) {
	if p := Phase(slices.Index(names[1:], name) + 1); p.Valid() {
		return p, nil
	}
	return 0, fmt.Errorf("%w: %q; declared phases are run_start to run_end, see the constants", ErrUnknownPhase, name)
}

// MarshalText writes the snake_case name. An undeclared phase is an error, but
// the zero Phase is written as the empty text: it stands for "outside a phase".
func (p Phase) MarshalText() ([]byte, error) {
	if p == 0 {
		return nil, nil
	}
	if !p.Valid() {
		return nil, fmt.Errorf("%w: %d", ErrUnknownPhase, uint8(p))
	}
	return []byte(names[p]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Phase) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = 0
		return nil
	}
	q, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = q
	return nil
}
