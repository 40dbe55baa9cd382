package confirm

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// ambiguous reports whether an object in the arguments has two members of one name, upper
// and lower case aside. Which of them counts, tools decide in different ways, and the
// fingerprint of a call does not tell.
func ambiguous(args inference.JSON) bool {
	type value struct {
		names map[string]bool // of an object; nil of a list
		named bool            // the next token is a value, and no name
	}
	var around []*value
	dec := json.NewDecoder(strings.NewReader(string(args)))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil { // the end
			return false
		}
		var in *value
		if len(around) > 0 {
			in = around[len(around)-1]
		}
		switch token {
		case json.Delim('{'):
			around = append(around, &value{names: map[string]bool{}})
			continue
		case json.Delim('['):
			around = append(around, &value{})
			continue
		case json.Delim('}'), json.Delim(']'):
			if around = around[:len(around)-1]; len(around) > 0 {
				around[len(around)-1].named = false
			}
			continue
		}
		switch {
		case in == nil || in.names == nil:
		case in.named:
			in.named = false
		default:
			name := strings.ToLower(strings.ToUpper(fmt.Sprint(token)))
			if in.names[name] {
				return true
			}
			in.names[name], in.named = true, true
		}
	}
}

// exactly identifies a call and the one way in which it is written, if there are several
// to read it, else what it says.
func exactly(call inference.ToolCall) string {
	if ambiguous(call.Args) {
		call.Args, _ = inference.ToJSON(string(call.Args.Compact())) // texts can always be written
	}
	return gate.Fingerprint(call)
}

// shows reports whether a character can be seen, and where it is.
func shows(r rune) bool {
	return r == '\n' || r == '\t' || r != '\u2800' && unicode.IsPrint(r) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
