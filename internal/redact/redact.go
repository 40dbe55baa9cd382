package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Hider puts a mark in the place of some texts. It is safe for concurrent use.
type Hider struct{ forms *strings.Replacer }

// Texts returns what puts mark in the place of the texts, none of which may be empty.
// They are found as they are and as JSON may have them.
func Texts(mark string, texts ...string) Hider {
	var forms []string
	for _, text := range texts {
		readable, _ := encode(text)
		escaped, _ := json.Marshal(text) // a text can always be written
		forms = append(forms, text, readable[1:len(readable)-1], string(escaped[1:len(escaped)-1]))
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, mark)
	}
	return Hider{strings.NewReplacer(pairs...)}
}

// In returns the text without what is to be hidden.
func (h Hider) In(text string) string { return h.forms.Replace(text) }

// InJSON returns the JSON value without what is to be hidden, and whether there was
// any of it. A number in which it was found becomes a string. What is not JSON stays as
// it is.
func (h Hider) InJSON(text string) (hidden string, found bool) {
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return text, false
	}
	v = h.value(v, &found)
	if !found {
		return text, false
	}
	hidden, _ = encode(v)
	return hidden, true
}

func (h Hider) value(v any, found *bool) any {
	hide := func(s string) string {
		hidden := h.In(s)
		*found = *found || hidden != s
		return hidden
	}
	switch v := v.(type) {
	case string:
		return hide(v)
	case json.Number:
		if text := hide(v.String()); text != v.String() {
			return text
		}
	case []any:
		for i := range v {
			v[i] = h.value(v[i], found)
		}
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[hide(name)] = h.value(member, found)
		}
		return members
	}
	return v
}

// encode leaves <, > and & readable.
func encode(v any) (string, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(text.String(), "\n"), err
}
