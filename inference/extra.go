package inference

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
)

// Extra is an open map of parameters that only one vendor knows, from name to JSON value. It is immutable: With and
// Without return a new map. The zero value is empty, and two maps with the same entries are equal under ==. In JSON
// it is an object.
type Extra struct {
	// packed is every name and its value, quoted, in order of the names. A string keeps the map comparable and free of
	// shared memory; quotes keep any text as it was, also one that is not JSON or not UTF-8.
	packed string
}

func newExtra(entries map[string]JSON) Extra {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		b = strconv.AppendQuote(b, name)
		b = strconv.AppendQuote(b, string(oneSpelling(entries[name])))
	}
	return Extra{string(b)}
}

// entries returns a map of the caller's own.
func (x Extra) entries() map[string]JSON { return maps.Collect(x.All()) }

// With returns the map with name set to value. The value null (or the empty text) is a value too: it is sent as null.
func (x Extra) With(name string, value JSON) Extra {
	entries := x.entries()
	entries[name] = value
	return newExtra(entries)
}

// Without returns the map without the given names.
func (x Extra) Without(names ...string) Extra {
	entries := x.entries()
	for _, name := range names {
		delete(entries, name)
	}
	return newExtra(entries)
}

// Over returns the map with every entry of later written over its own.
func (x Extra) Over(later Extra) Extra {
	entries := x.entries()
	maps.Copy(entries, later.entries())
	return newExtra(entries)
}

// Get returns the value of name, and whether there is one. The value null is the empty text.
func (x Extra) Get(name string) (JSON, bool) {
	v, ok := x.entries()[name]
	return v, ok
}

// All yields the entries in order of their names.
func (x Extra) All() iter.Seq2[string, JSON] {
	return func(yield func(string, JSON) bool) {
		for rest := x.packed; rest != ""; {
			var name, value string
			name, rest = unquote(rest)
			value, rest = unquote(rest)
			if !yield(name, JSON(value)) {
				return
			}
		}
	}
}

// unquote reads the quoted text that s begins with.
func unquote(s string) (text, rest string) {
	quoted, _ := strconv.QuotedPrefix(s)
	text, _ = strconv.Unquote(quoted)
	return text, s[len(quoted):]
}

// Len returns the number of entries.
func (x Extra) Len() int { return len(x.entries()) }

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
func (x Extra) MarshalJSON() ([]byte, error) { return json.Marshal(x.entries()) }

// UnmarshalJSON reads an object; null is the empty map.
func (x *Extra) UnmarshalJSON(text []byte) error {
	var entries map[string]JSON
	if err := json.Unmarshal(text, &entries); err != nil {
		return err
	}
	*x = newExtra(entries)
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
