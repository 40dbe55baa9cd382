package inference

import (
	"encoding/json"
	"iter"
)

// Extra is an open map of parameters that only one vendor knows, from name to JSON value. It is immutable: With and
// Without return a new map. The zero value is empty, and two maps with the same entries are equal under ==. In JSON
// it is an object.
type Extra struct{ entries packed }

// With returns the map with name set to value. The value null (or the empty text) is a value too: it is sent as null.
func (x Extra) With(name string, value JSON) Extra {
	return Extra{x.entries.with(name, extraValue(value))}
}

// Without returns the map without the given names.
func (x Extra) Without(names ...string) Extra {
	gone := make(map[string]bool, len(names))
	for _, n := range names {
		gone[n] = true
	}
	return Extra{x.entries.without(func(n string) bool { return gone[n] })}
}

// Over returns the map with every entry of later written over its own.
func (x Extra) Over(later Extra) Extra { return Extra{x.entries.over(later.entries)} }

// Get returns the value of name, and whether there is one. The value null is the empty text.
func (x Extra) Get(name string) (JSON, bool) {
	v, ok := x.entries.get(name)
	return JSON(v), ok
}

// All yields the entries in order of their names.
func (x Extra) All() iter.Seq2[string, JSON] {
	return func(yield func(string, JSON) bool) {
		for n, v := range x.entries.all() {
			if !yield(n, JSON(v)) {
				return
			}
		}
	}
}

// Len returns the number of entries.
func (x Extra) Len() int { return x.entries.size() }

// IsZero reports whether the map is empty. It is what the omitzero tag asks.
func (x Extra) IsZero() bool { return x.entries == "" }

// String returns the map as JSON, for logs.
func (x Extra) String() string {
	text, err := ToJSON(x)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// MarshalJSON writes an object whose members are sorted by name.
func (x Extra) MarshalJSON() ([]byte, error) {
	m := make(map[string]JSON)
	for n, v := range x.All() {
		m[n] = v
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads an object; null is the empty map.
func (x *Extra) UnmarshalJSON(text []byte) error {
	var in map[string]JSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	m := make(map[string]string, len(in))
	for n, v := range in {
		m[n] = extraValue(v)
	}
	*x = Extra{pack(m)}
	return nil
}

// extraValue gives equal values one spelling, so that == compares what they mean. A text that is not JSON stays as it
// is, for Validate to find.
func extraValue(v JSON) string {
	text, err := v.Canonical()
	switch {
	case err != nil:
		return string(v)
	case text == "null":
		return ""
	}
	return string(text)
}
