package packed

import (
	"iter"
	"maps"
	"slices"
	"strconv"
)

// Of packs the entries: every name and its text, quoted, in order of the names.
// Quotes keep any text as it was, also one that is not UTF-8. Equal maps give equal
// strings, and an empty one gives "".
func Of[N, T ~string](entries map[N]T) string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		b = strconv.AppendQuote(b, string(name))
		b = strconv.AppendQuote(b, string(entries[name]))
	}
	return string(b)
}

// All yields the entries of a map that Of packed, in order of their names.
func All(p string) iter.Seq2[string, string] { return As[string](p) }

// As is All for texts of the type T.
func As[T ~string](p string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for rest := p; rest != ""; {
			var name, text string
			name, rest = unquote(rest)
			text, rest = unquote(rest)
			if !yield(name, T(text)) {
				return
			}
		}
	}
}

// With returns the packed map with name set to text.
func With(p, name, text string) string {
	entries := maps.Collect(All(p))
	entries[name] = text
	return Of(entries)
}

// Without returns the packed map without the given names.
func Without(p string, names ...string) string {
	entries := maps.Collect(All(p))
	for _, name := range names {
		delete(entries, name)
	}
	return Of(entries)
}

// Over returns the packed map with every entry of later written over its own.
func Over(p, later string) string {
	entries := maps.Collect(All(p))
	maps.Insert(entries, All(later))
	return Of(entries)
}

// unquote reads the quoted text that s begins with.
func unquote(s string) (text, rest string) {
	quoted, _ := strconv.QuotedPrefix(s)
	text, _ = strconv.Unquote(quoted)
	return text, s[len(quoted):]
}
