package inference

import (
	"math"
	"strconv"
)

// Effort says how long a model may think before it answers.
type Effort string

// The efforts.
const (
	EffortNone   Effort = "none"
	EffortLow    Effort = "low"
	EffortMedium Effort = "medium"
	EffortHigh   Effort = "high"
	EffortMax    Effort = "max"
)

// ParseEffort returns the effort that text names, or a [*FieldError].
func ParseEffort(text string) (Effort, error) {
	switch e := Effort(text); e {
	case EffortNone, EffortLow, EffortMedium, EffortHigh, EffortMax:
		return e, nil
	}
	return "", &FieldError{Field: FieldReasoningEffort, Value: strconv.Quote(text), Want: "none, low, medium, high or max"}
}

// Params is how a model is asked to generate. What is unset is left to the model. It is comparable and holds nothing
// that can change.
type Params struct {
	Temperature Opt[float64] `json:"temperature,omitzero"`
	// MaxTokens bounds the tokens of the answer.
	MaxTokens       Opt[int]     `json:"max_tokens,omitzero"`
	TopP            Opt[float64] `json:"top_p,omitzero"`
	ReasoningEffort Opt[Effort]  `json:"reasoning_effort,omitzero"`
	// Extra holds a vendor's own parameters.
	Extra Extra `json:"extra,omitzero"`
}

// Validate returns a [*FieldError] for the first field, in order of their names, that no model could accept.
func (p Params) Validate() error {
	for name, v := range p.Extra.All() {
		if name == "" || !v.Valid() {
			return &FieldError{Field: ExtraField(name), Value: strconv.Quote(string(v)), Want: "a name and one JSON value"}
		}
	}
	if n, ok := p.MaxTokens.Get(); ok && n < 0 {
		return &FieldError{Field: FieldMaxTokens, Value: strconv.Itoa(n), Want: "0 or more"}
	}
	if _, err := ParseEffort(string(p.ReasoningEffort.Or(EffortNone))); err != nil {
		return err
	}
	if t, ok := p.Temperature.Get(); ok && !(t >= 0 && t <= math.MaxFloat64) {
		return &FieldError{Field: FieldTemperature, Value: decimal(t), Want: "a finite number of 0 or more"}
	}
	if t, ok := p.TopP.Get(); ok && !(t >= 0 && t <= 1) {
		return &FieldError{Field: FieldTopP, Value: decimal(t), Want: "a number from 0 to 1"}
	}
	return nil
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
