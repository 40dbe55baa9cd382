package inference

import (
	"encoding/json"
	"iter"
	"strings"
)

// Field names one thing an [Override] can set, by its JSON name.
type Field string

// The fields. The entries of the open map are fields too: see [ExtraField].
const (
	FieldUpstreamModel   Field = "upstream_model"
	FieldTemperature     Field = "temperature"
	FieldMaxTokens       Field = "max_tokens"
	FieldTopP            Field = "top_p"
	FieldReasoningEffort Field = "reasoning_effort"
)

const extraPrefix = "extra."

// ExtraField returns the field of one entry of the open map: "extra." and its name.
func ExtraField(name string) Field { return Field(extraPrefix + name) }

// Override changes some parameters of a request and leaves the others as they are. Overrides come in layers: spec,
// then run, then step. In each layer a field is in one of three states: silent, set, or dropped with
// [Override.Without]; [Override.Merge] takes, field by field, the last layer that is not silent. The zero Override is
// silent throughout and changes nothing.
//
// An Override is comparable and holds nothing that can change.
type Override struct {
	// UpstreamModel is the model to ask instead of the request's.
	UpstreamModel   Opt[string]
	Temperature     Opt[float64]
	MaxTokens       Opt[int]
	TopP            Opt[float64]
	ReasoningEffort Opt[Effort]
	// Extra sets a vendor's own parameters, entry by entry.
	Extra Extra

	dropped packed
}

// Without returns the override with the given fields dropped: what lower layers set is taken back, and the request
// keeps the value it was built with. Setting the field afterwards wins over the drop.
func (o Override) Without(fields ...Field) Override {
	m := make(map[string]string, len(fields))
	for _, f := range fields {
		m[string(f)] = ""
	}
	return o.Merge(Override{dropped: pack(m)})
}

// Merge returns o with later laid over it: per field the last writer wins, silence erases nothing, and zero is a
// value. Merge is associative, and Override{} changes nothing on either side.
func (o Override) Merge(later Override) Override {
	gone := func(f Field) bool { return later.dropped.has(string(f)) }
	out := Override{
		UpstreamModel:   overlay(o.UpstreamModel, later.UpstreamModel, gone(FieldUpstreamModel)),
		Temperature:     overlay(o.Temperature, later.Temperature, gone(FieldTemperature)),
		MaxTokens:       overlay(o.MaxTokens, later.MaxTokens, gone(FieldMaxTokens)),
		TopP:            overlay(o.TopP, later.TopP, gone(FieldTopP)),
		ReasoningEffort: overlay(o.ReasoningEffort, later.ReasoningEffort, gone(FieldReasoningEffort)),
		Extra:           o.Extra,
		dropped:         o.dropped.over(later.dropped),
	}
	if later.dropped != "" {
		out.Extra.entries = out.Extra.entries.without(func(name string) bool { return gone(ExtraField(name)) })
	}
	out.Extra = out.Extra.Over(later.Extra)
	return out.normal()
}

// Apply returns r with every set field written into it. It shares r's messages and tools.
func (o Override) Apply(r Request) Request {
	r.Model = o.UpstreamModel.Or(r.Model)
	r.Params = Params{
		Temperature:     overlay(r.Params.Temperature, o.Temperature, false),
		MaxTokens:       overlay(r.Params.MaxTokens, o.MaxTokens, false),
		TopP:            overlay(r.Params.TopP, o.TopP, false),
		ReasoningEffort: overlay(r.Params.ReasoningEffort, o.ReasoningEffort, false),
		Extra:           r.Params.Extra.Over(o.Extra),
	}
	return r
}

// IsZero reports whether o is silent about every field.
func (o Override) IsZero() bool { return o == Override{} }

// Fields yields the fields that are set, with their values, in order of their names.
func (o Override) Fields() iter.Seq2[Field, JSON] {
	return func(yield func(Field, JSON) bool) {
		for name, v := range o.Extra.All() {
			if !yield(ExtraField(name), v) {
				return
			}
		}
		_ = yieldOpt(yield, FieldMaxTokens, o.MaxTokens) &&
			yieldOpt(yield, FieldReasoningEffort, o.ReasoningEffort) &&
			yieldOpt(yield, FieldTemperature, o.Temperature) &&
			yieldOpt(yield, FieldTopP, o.TopP) &&
			yieldOpt(yield, FieldUpstreamModel, o.UpstreamModel)
	}
}

// Dropped yields the fields that are dropped, in order of their names.
func (o Override) Dropped() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for name := range o.normal().dropped.all() {
			if !yield(Field(name)) {
				return
			}
		}
	}
}

// Validate returns a [*FieldError] for a field with a value that no model could accept, or for a dropped field that
// does not exist.
func (o Override) Validate() error {
	p := Params{Temperature: o.Temperature, MaxTokens: o.MaxTokens, TopP: o.TopP, ReasoningEffort: o.ReasoningEffort, Extra: o.Extra}
	if err := p.Validate(); err != nil {
		return err
	}
	for f := range o.Dropped() {
		if !f.known() {
			return &FieldError{Field: f, Value: "unknown", Want: "a field of Override, or extra.<name>"}
		}
	}
	return nil
}

type overrideJSON struct {
	UpstreamModel   Opt[string]  `json:"upstream_model,omitzero"`
	Temperature     Opt[float64] `json:"temperature,omitzero"`
	MaxTokens       Opt[int]     `json:"max_tokens,omitzero"`
	TopP            Opt[float64] `json:"top_p,omitzero"`
	ReasoningEffort Opt[Effort]  `json:"reasoning_effort,omitzero"`
	Extra           Extra        `json:"extra,omitzero"`
	Unset           []Field      `json:"unset,omitempty"`
}

// MarshalJSON writes the set fields under their names and the dropped ones as a list under unset.
func (o Override) MarshalJSON() ([]byte, error) {
	out := overrideJSON{
		UpstreamModel: o.UpstreamModel, Temperature: o.Temperature, MaxTokens: o.MaxTokens,
		TopP: o.TopP, ReasoningEffort: o.ReasoningEffort, Extra: o.Extra,
	}
	for f := range o.Dropped() {
		out.Unset = append(out.Unset, f)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes. It refuses unknown members, and every override that
// [Override.Validate] refuses.
func (o *Override) UnmarshalJSON(text []byte) error {
	var in overrideJSON
	if err := JSON(text).Decode(&in); err != nil {
		return err
	}
	next := Override{
		UpstreamModel: in.UpstreamModel, Temperature: in.Temperature, MaxTokens: in.MaxTokens,
		TopP: in.TopP, ReasoningEffort: in.ReasoningEffort, Extra: in.Extra,
	}
	next.dropped = Override{}.Without(in.Unset...).dropped
	next = next.normal()
	if err := next.Validate(); err != nil {
		return err
	}
	*o = next
	return nil
}

// normal forgets the drop of a field that was set afterwards.
func (o Override) normal() Override {
	if o.dropped == "" {
		return o
	}
	set := make(map[string]bool)
	for f := range o.Fields() {
		set[string(f)] = true
	}
	o.dropped = o.dropped.without(func(name string) bool { return set[name] })
	return o
}

func (f Field) known() bool {
	switch f {
	case FieldUpstreamModel, FieldTemperature, FieldMaxTokens, FieldTopP, FieldReasoningEffort:
		return true
	}
	name, ok := strings.CutPrefix(string(f), extraPrefix)
	return ok && name != ""
}

func overlay[T any](below, above Opt[T], dropped bool) Opt[T] {
	switch {
	case above.set:
		return above
	case dropped:
		return Opt[T]{}
	}
	return below
}

func yieldOpt[T any](yield func(Field, JSON) bool, f Field, o Opt[T]) bool {
	v, ok := o.Get()
	if !ok {
		return true
	}
	text, err := ToJSON(v)
	if err != nil {
		// Only NaN and the infinities get here; Validate refuses them by name.
		text = ""
	}
	return yield(f, text)
}
