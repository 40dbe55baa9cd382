package jsondiff

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Change is one place where two values differ.
type Change struct {
	Path   string // such as a.b[3]; "" for the whole
	Before string // as JSON; "" where there is nothing
	After  string
}

// String returns a line: "+ path value", "- path value" or "~ path before → after".
func (c Change) String() string {
	path := c.Path
	if path != "" {
		path += " "
	}
	switch {
	case c.Before == "":
		return "+ " + path + c.After
	case c.After == "":
		return "- " + path + c.Before
	default:
		return "~ " + path + c.Before + " → " + c.After
	}
}

// Changes returns the places where two JSON texts differ, in the order of their paths.
// An empty text is a value that is not there. Lists of pairs whose first halves are
// distinct texts or numbers are compared by those, other lists item by item from their
// beginning. Texts that are not JSON count as a whole.
func Changes(before, after []byte) []Change {
	a, okA := decode(before)
	b, okB := decode(after)
	if !okA || !okB {
		if bytes.Equal(before, after) {
			return nil
		}
		return []Change{{"", string(before), string(after)}}
	}
	return compare("", a, b, nil)
}

// absent is the value that is not there.
type absent struct{}

// decode reads a JSON text and keeps numbers as they are written.
func decode(text []byte) (v any, ok bool) {
	if len(text) == 0 {
		return absent{}, true
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return nil, false
	}
	return v, true
}

// compare adds the changes below a path.
func compare(path string, a, b any, all []Change) []Change {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			names := map[string]bool{}
			for name := range x {
				names[name] = true
			}
			for name := range y {
				names[name] = true
			}
			for _, name := range slices.Sorted(maps.Keys(names)) {
				all = compare(member(path, name), at(x, name), at(y, name), all)
			}
			return all
		}
	case []any:
		if y, ok := b.([]any); ok {
			if rows, more := table(x), table(y); rows != nil && more != nil {
				return compareRows(path, x, y, rows, more, all)
			}
			for i := range max(len(x), len(y)) {
				all = compare(path+"["+strconv.Itoa(i)+"]", item(x, i), item(y, i), all)
			}
			return all
		}
	}
	if before, after := encode(a), encode(b); before != after {
		all = append(all, Change{path, before, after})
	}
	return all
}

// table returns the rows of a list of pairs by their keys as JSON, or nil if it is none.
func table(list []any) map[string]any {
	rows := map[string]any{}
	for _, item := range list {
		pair, ok := item.([]any)
		if !ok || len(pair) != 2 {
			return nil
		}
		switch pair[0].(type) {
		case string, json.Number:
		default:
			return nil
		}
		key := encode(pair[0])
		if _, twice := rows[key]; twice {
			return nil
		}
		rows[key] = pair[1]
	}
	return rows
}

// compareRows compares two tables, the rows of the first one in its order, then those
// that only the second one has.
func compareRows(path string, a, b []any, before, after map[string]any, all []Change) []Change {
	for _, item := range a {
		key := encode(item.([]any)[0])
		all = compare(path+"["+key+"]", before[key], at(after, key), all)
	}
	for _, item := range b {
		key := encode(item.([]any)[0])
		if _, ok := before[key]; !ok {
			all = compare(path+"["+key+"]", absent{}, after[key], all)
		}
	}
	return all
}

func member(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func at(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

func encode(v any) string {
	if v == (absent{}) {
		return ""
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it was decoded from JSON
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}
