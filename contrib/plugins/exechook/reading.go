package exechook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// fold returns what is equal of names that are equal but for upper and lower case, as
// tools written in Go compare them.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// oneReading returns an error if a program could find something else in the arguments
// than the tool does: two members of one name, or one that is only nearly what the tool's
// schema has.
func oneReading(args, schema inference.JSON) error {
	var known struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal([]byte(schema), &known) // one that says nothing about names is fine
	properties := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(known.Properties)) {
		properties[fold(name)] = name
	}
	type object struct {
		names map[string]string // as written, by fold; nil of a list
		value bool              // what comes next is a value, and no name
	}
	around := []*object{{}} // what the arguments stand in
	dec := json.NewDecoder(strings.NewReader(string(args)))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil { // their end
			return nil
		}
		in := around[len(around)-1]
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			around = around[:len(around)-1]
			continue
		case in.names != nil && !in.value:
			name := fmt.Sprint(token)
			if before, twice := in.names[fold(name)]; twice {
				return fmt.Errorf("exechook: the arguments have %q and %q, and which of them counts is not known", before, name)
			}
			if right := properties[fold(name)]; len(around) == 2 && right != "" && known.Properties[name] == nil {
				return fmt.Errorf("exechook: the arguments have %q for %q", name, right)
			}
			in.names[fold(name)], in.value = name, true
			continue
		}
		in.value = false
		switch token {
		case json.Delim('{'):
			around = append(around, &object{names: map[string]string{}})
		case json.Delim('['):
			around = append(around, &object{})
		}
	}
}
