package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonarray"
	"github.com/ddd26017/fixpoint/state"
)

// keyKind says what a key is made of, which its updates tell.
type keyKind uint8

const (
	unknownKind keyKind = iota
	plainKind           // one value
	listKind            // a log
	setKind
	tableKind
)

// kindOf is the kind of a key that takes such an update.
func kindOf(op string) keyKind {
	switch op {
	case "apply":
		return plainKind
	case "append", "replace":
		return listKind
	case "add", "remove":
		return setKind
	case "put", "delete":
		return tableKind
	}
	return unknownKind
}

func (k keyKind) hasEntries() bool { return k == setKind || k == tableKind }

// flatten appends the change of a key, entry by entry if it has entries.
func flatten(to []Change, e state.DeltaEntry, k keyKind) []Change {
	if _, is := alteredValue(e.Raw); is && e.Part != state.PartReset {
		return append(to, Change{Key: e.Name}.with(e.Raw)) // all of it
	}
	switch e.Part {
	case state.PartReset:
		return append(to, Change{Key: e.Name})
	case state.PartAppend:
		return append(to, Change{Key: e.Name, At: new(int), Value: elements(e.Raw)})
	case state.PartEntries:
		for _, one := range parts(e.Raw) {
			to = append(to, entryChange(e.Name, one))
		}
		for _, one := range parts(e.Gone) {
			to = append(to, Change{Key: e.Name, Entry: entryName(one)})
		}
		return to
	}
	if k.hasEntries() {
		for _, one := range parts(e.Raw) {
			to = append(to, entryChange(e.Name, one))
		}
		return to
	}
	return append(to, Change{Key: e.Name}.with(e.Raw))
}

// emptied are the entries that went when the last ones of a key did, nil if the key went
// as a whole. A key without entries has no value any more.
func emptied(e state.DeltaEntry, writes []Write) (out []Change) {
	if e.Part != state.PartReset {
		return nil
	}
	for i := range writes {
		w := &writes[i]
		switch {
		case w.Key != e.Name:
		case w.Entry == "" || !kindOf(w.Op).hasEntries() || w.several():
			return nil
		case !slices.ContainsFunc(out, func(c Change) bool { return c.Entry == w.Entry }):
			out = append(out, Change{Key: e.Name, Entry: w.Entry})
		}
	}
	return out
}

// parts are those of an array, none of anything else.
func parts(raw []byte) []json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return split(raw)
}

// split returns the parts of an array that is known to be JSON, none of another value.
func split(raw []byte) (out []json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	if raw[0] != '[' {
		return nil
	}
	depth, begin := 0, 1
	end := func(at int) {
		if part := bytes.TrimSpace(raw[begin:at]); len(part) > 0 {
			out = append(out, part)
		}
		begin = at + 1
	}
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				end(i)
			}
		case ',':
			if depth == 1 {
				end(i)
			}
		}
	}
	return out
}

// entryChange reads a [key, value] pair of a table, or an element of a set.
func entryChange(key string, raw json.RawMessage) Change {
	if raw[0] == '[' {
		if pair := split(raw); len(pair) == 2 {
			return Change{Key: key, Entry: entryName(pair[0])}.with(pair[1])
		}
	}
	if _, altered := alteredValue(raw); altered {
		return Change{Key: key, Entry: "?"}.with(raw)
	}
	return Change{Key: key, Entry: entryName(raw), Value: "true"}
}

// entryName is the text that updates have for an entry.
func entryName(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		if text == "" {
			return `""` // the empty text means the whole key
		}
		return text
	case bytes.ContainsAny(raw, ".eE"):
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil {
			return fmt.Sprint(f)
		}
	}
	return string(raw)
}

// altered is what stands for a value that was too long or is not to be told.
type altered struct {
	Cut *struct {
		Bytes int    `json:"bytes"`
		Begin string `json:"begin"`
	} `json:"$cut"`
	Hidden bool `json:"$hidden"`
}

func alteredValue(raw []byte) (a altered, ok bool) {
	if !bytes.HasPrefix(raw, []byte(`{"$`)) {
		return a, false
	}
	err := json.Unmarshal(raw, &a)
	return a, err == nil && (a.Cut != nil || a.Hidden)
}

// with returns the change with a value as the trace has it.
func (c Change) with(raw []byte) Change {
	a, is := alteredValue(raw)
	switch {
	case !is && len(raw) > 0 && raw[0] == '[':
		c.Value = elements(raw)
	case !is:
		c.Value = sound(inference.JSON(raw))
	case a.Hidden:
		c.Value, c.Hidden = "null", true
	default:
		c.Value, c.Cut = text(a.Cut.Begin), max(a.Cut.Bytes, 1)
	}
	return c
}

// elements returns an array in which texts stand for elements that are too long or
// hidden.
func elements(raw []byte) inference.JSON {
	if !bytes.Contains(raw, []byte(`{"$`)) {
		return sound(inference.JSON(raw))
	}
	list := parts(raw)
	out := make([][]byte, len(list))
	for i, one := range list {
		out[i] = one
		switch a, is := alteredValue(one); {
		case is && a.Hidden:
			out[i] = []byte(`"(hidden)"`)
		case is:
			out[i] = []byte(text(fmt.Sprintf("%s… (%d bytes)", a.Cut.Begin, a.Cut.Bytes)))
		}
	}
	return inference.JSON(jsonarray.Join(out...))
}

// text is a string as JSON.
func text(s string) inference.JSON {
	j, err := inference.ToJSON(s)
	if err != nil {
		return `""`
	}
	return j
}

// sound returns a JSON text that is one: what is none becomes a string.
func sound(j inference.JSON) inference.JSON {
	if j.Valid() {
		return j
	}
	return text(string(j))
}

// found is a key of a base that may turn out to have entries.
type found struct {
	key string
	raw json.RawMessage
}

// baseline is the state that a run found.
type baseline struct {
	rev     uint64
	found   bool     // else nobody knows what there was
	changes []Change // by key
}

// of returns what the baseline has of a key.
func (b *baseline) of(key string) []Change {
	from, ok := slices.BinarySearchFunc(b.changes, key, func(c Change, key string) int { return strings.Compare(c.Key, key) })
	if !ok {
		return nil
	}
	to := from
	for to < len(b.changes) && b.changes[to].Key == key {
		to++
	}
	return b.changes[from:to]
}

// baseOf reads a dump. What may turn out to be a table is kept, to be read again then.
func (r *Recording) baseOf(d *state.Dump) (b *baseline, open []found) {
	b = &baseline{rev: d.Revision, found: true, changes: make([]Change, 0, len(d.Entries))}
	for _, e := range d.Entries {
		k := r.kinds[e.Name]
		b.changes = flatten(b.changes, state.DeltaEntry{DumpEntry: e}, k)
		if k == unknownKind && len(e.Raw) > 0 && e.Raw[0] == '[' {
			open = append(open, found{e.Name, e.Raw})
		}
	}
	slices.SortStableFunc(b.changes, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	return b, open
}

// learn notes the kind of a key, and reads the bases again that have it.
func (r *Recording) learn(key, op string) {
	k := kindOf(op)
	if k == unknownKind || r.kinds[key] == k {
		return
	}
	r.kinds[key] = k
	for _, x := range r.sorts[key] {
		i := slices.IndexFunc(x.found, func(f found) bool { return f.key == key })
		if i < 0 {
			continue
		}
		raw := x.found[i].raw
		x.found = slices.Delete(x.found, i, i+1)
		if !k.hasEntries() || x.baseline == nil {
			continue
		}
		var out []Change
		done := false
		for _, c := range x.baseline.changes {
			if c.Key != key {
				out = append(out, c)
			} else if !done {
				done = true
				out = flatten(out, state.DeltaEntry{DumpEntry: state.DumpEntry{Name: key, Raw: raw}}, k)
			}
		}
		x.baseline.changes, x.Base = out, out
		r.changed(ofRuns, &x.item)
	}
	delete(r.sorts, key)
}
