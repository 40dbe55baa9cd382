package inference

import (
	"cmp"
	"maps"
	"slices"
)

// Owned is an override and who asked for it, usually a plugin's name.
type Owned struct {
	Owner    string   `json:"owner"`
	Override Override `json:"override"`
}

// FieldOwner says who had the last word on one field.
type FieldOwner struct {
	Field Field  `json:"field"`
	Owner string `json:"owner"`
	// Unset is true when the owner dropped the field instead of setting it.
	Unset bool `json:"unset,omitempty"`
}

// Resolve merges the layers, lowest first, and says for every field that is set or dropped in the result which layer
// decided it. The owners are sorted by field.
func Resolve(layers ...Owned) (Override, []FieldOwner) {
	var merged Override
	last := make(map[Field]FieldOwner)
	for _, l := range layers {
		merged = merged.Merge(l.Override)
		for f := range l.Override.Fields() {
			last[f] = FieldOwner{Field: f, Owner: l.Owner}
		}
		for f := range l.Override.Dropped() {
			last[f] = FieldOwner{Field: f, Owner: l.Owner, Unset: true}
		}
	}
	byField := func(a, b FieldOwner) int { return cmp.Compare(a.Field, b.Field) }
	return merged, slices.SortedFunc(maps.Values(last), byField)
}
