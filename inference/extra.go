package inference

import (
	"encoding/json"
	"iter"
	"maps"

	"github.com/ddd26017/fixpoint/internal/packed"
)

// Extra is an open map of parameters that only one vendor knows, from name to JSON value. It is immutable: With and
// Without return a new map. The zero value is empty, and two maps with the same entries are equal under ==. In JSON
// it is an object.
type Extra struct {
	packed string // keeps the map comparable and free of shared memory
}

// With returns the map with name set to value. The value null (or the empty text) is a value too: it is sent as null.
func (x Extra) With(name string, value JSON) Extra {
	return Extra{packed.With(x.packed, name, string(oneSpelling(value)))}
}

// Without returns the map without the given names.
func (x Extra) Without(names ...string) Extra { return Extra{packed.Without(x.packed, names...)} }

// Over returns the map with every entry of later written over its own.
func (x Extra) Over(later Extra) Extra { return Extra{packed.Over(x.packed, later.packed)} }

// Get returns the value of name, and whether there is one. The value null is the empty text.
func (x Extra) Get(name string) (JSON, bool) {
	v, ok := maps.Collect(x.All())[name]
	return v, ok
}

// All yields the entries in order of their names.
func (x Extra) All() iter.Seq2[string, JSON] { return packed.As[JSON](x.packed) }

// Len returns the number of entries.
func (x Extra) Len() int { return len(maps.Collect(x.All())) }

// IsZero reports whether the map is empty. It is what the omitzero tag asks.
func (x Extra) IsZero() bool { return x.packed == "" }

// String returns the map as JSON, for logs.
func (x Extra) String() string {
	text, err := ToJSON(x)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// MarshalJSON writes an object whose members are sorted by name.
func (x Extra) MarshalJSON() ([]byte, error) { return json.Marshal(maps.Collect(x.All())) }

// UnmarshalJSON reads an object; null is the empty map.
func (x *Extra) UnmarshalJSON(text []byte) error {
	var entries map[string]JSON
	if err := json.Unmarshal(text, &entries); err != nil {
		return err
	}
	for name, v := range entries {
		entries[name] = oneSpelling(v)
	}
	*x = Extra{packed.Of(entries)}
	return nil
}

// oneSpelling gives equal values one text, so that == compares what they mean. A text that is not JSON stays as it is,
// for Validate to find.
func oneSpelling(v JSON) JSON {
	if text, err := v.Canonical(); err == nil {
		v = text
	}
	if v == "null" {
		return ""
	}
	return v
}
