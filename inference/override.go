package inference

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/internal/pushseq"
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
	UpstreamModel   Opt[string]  `json:"upstream_model,omitzero"`
	Temperature     Opt[float64] `json:"temperature,omitzero"`
	MaxTokens       Opt[int]     `json:"max_tokens,omitzero"`
	TopP            Opt[float64] `json:"top_p,omitzero"`
	ReasoningEffort Opt[Effort]  `json:"reasoning_effort,omitzero"`
	// Extra sets a vendor's own parameters, entry by entry.
	Extra Extra `json:"extra,omitzero"`

	dropped Extra // the names of fields, without values
}

// setting is a field of an Override other than Extra.
type setting struct {
	Field
	opt interface {
		// overlay takes the value of above, an Opt of the same type, if that has one or drop says so.
		overlay(above any, drop bool)
		text() (JSON, bool)
	}
}

// settings returns the fields in order of their names.
func (o *Override) settings() []setting {
	return []setting{
		{FieldMaxTokens, &o.MaxTokens},
		{FieldReasoningEffort, &o.ReasoningEffort},
		{FieldTemperature, &o.Temperature},
		{FieldTopP, &o.TopP},
		{FieldUpstreamModel, &o.UpstreamModel},
	}
}

func (o *Opt[T]) overlay(above any, drop bool) {
	if a := above.(*Opt[T]); a.set || drop {
		*o = *a
	}
}

// text returns the value as JSON, "" for NaN and the infinities, which Validate refuses by name.
func (o *Opt[T]) text() (JSON, bool) {
	text, _ := ToJSON(o.value)
	return text, o.set
}

// Without returns the override with the given fields dropped: what lower layers set is taken back, and the request
// keeps the value it was built with. Setting the field afterwards wins over the drop.
func (o Override) Without(fields ...Field) Override {
	var drop Override
	for _, f := range fields {
		drop.dropped = drop.dropped.With(string(f), "")
	}
	return o.Merge(drop)
}

// Merge returns o with later laid over it: per field the last writer wins, silence erases nothing, and zero is a
// value. Merge is associative, and Override{} changes nothing on either side.
func (o Override) Merge(later Override) Override {
	above := later.settings()
	for i, s := range o.settings() {
		_, drop := later.dropped.Get(string(s.Field))
		s.opt.overlay(above[i].opt, drop)
	}
	for f := range later.dropped.All() {
		if name, ok := strings.CutPrefix(f, extraPrefix); ok {
			o.Extra = o.Extra.Without(name)
		}
	}
	o.Extra = o.Extra.Over(later.Extra)
	o.dropped = o.dropped.Over(later.dropped)
	return o.normal()
}

// normal forgets the drop of a field that was set afterwards.
func (o Override) normal() Override {
	if o.dropped.IsZero() {
		return o
	}
	for f := range o.Fields() {
		o.dropped = o.dropped.Without(string(f))
	}
	return o
}

// Apply returns r with every set field written into it. It shares r's messages and tools.
func (o Override) Apply(r Request) Request {
	p := r.Params
	o.dropped = Extra{}
	o = Override{Some(r.Model), p.Temperature, p.MaxTokens, p.TopP, p.ReasoningEffort, p.Extra, Extra{}}.Merge(o)
	r.Model, r.Params = o.UpstreamModel.value, o.params()
	return r
}

func (o Override) params() Params {
	return Params{o.Temperature, o.MaxTokens, o.TopP, o.ReasoningEffort, o.Extra}
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
		for _, s := range o.settings() {
			if v, set := s.opt.text(); set && !yield(s.Field, v) {
				return
			}
		}
	}
}

// Dropped yields the fields that are dropped, in order of their names.
func (o Override) Dropped() iter.Seq[Field] {
	names := pushseq.Keys(o.normal().dropped.All())
	return pushseq.Map(names, func(name string) Field { return Field(name) })
}

// Validate returns a [*FieldError] for a field with a value that no model could accept, or for a dropped field that
// does not exist.
func (o Override) Validate() error {
	if err := o.params().Validate(); err != nil {
		return err
	}
	for f := range o.Dropped() {
		name, extra := strings.CutPrefix(string(f), extraPrefix)
		fixed := slices.ContainsFunc(o.settings(), func(s setting) bool { return s.Field == f })
		if !fixed && (!extra || name == "") {
			return &FieldError{Field: f, Value: "unknown", Want: "a field of Override, or extra.<name>"}
		}
	}
	return nil
}

// overrideFields is Override without its methods, for encoding/json.
type overrideFields Override

type overrideJSON struct {
	overrideFields
	Unset []Field `json:"unset,omitempty"`
}

// MarshalJSON writes the set fields under their names and the dropped ones as a list under unset.
func (o Override) MarshalJSON() ([]byte, error) {
	return json.Marshal(overrideJSON{overrideFields(o), slices.Collect(o.Dropped())})
}

// UnmarshalJSON reads what MarshalJSON writes. It refuses unknown members, and every override that
// [Override.Validate] refuses.
func (o *Override) UnmarshalJSON(text []byte) error {
	var in overrideJSON
	if err := JSON(text).Decode(&in); err != nil {
		return err
	}
	next := Override{}.Without(in.Unset...).Merge(Override(in.overrideFields))
	if err := next.Validate(); err != nil {
		return err
	}
	*o = next
	return nil
}
