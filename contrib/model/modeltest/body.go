package modeltest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// at returns the value at a JSON pointer of a body.
func at(body []byte, pointer string) (json.RawMessage, bool) {
	value := json.RawMessage(body)
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var object map[string]json.RawMessage
		var array []json.RawMessage
		if json.Unmarshal(value, &object) == nil && object != nil {
			member, ok := object[token]
			if !ok {
				return nil, false
			}
			value = member
			continue
		}
		i, err := strconv.Atoi(token)
		if err != nil || json.Unmarshal(value, &array) != nil || i < 0 || i >= len(array) {
			return nil, false
		}
		value = array[i]
	}
	return value, true
}

// leaves returns the strings of a body, but for names of members, in the order in which they are there.
func leaves(body []byte) []string {
	type level struct{ object, value bool }
	var out []string
	var levels []level
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			return out
		}
		top := len(levels) - 1
		isName := top >= 0 && levels[top].object && !levels[top].value
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				levels = levels[:top]
				top--
			} else {
				levels = append(levels, level{object: token == '{'})
				continue // the value is not over
			}
		case string:
			if isName {
				levels[top].value = true
				continue
			}
			out = append(out, token)
		}
		if top >= 0 {
			levels[top].value = false
		}
	}
}

// contains reports whether text is part of one of the texts.
func contains(texts []string, text string) bool { return inOrder(texts, text) }

// inOrder reports whether each of the wanted texts is part of one of the texts, in this order. Two may be in one.
func inOrder(texts []string, wanted ...string) bool {
	i, from := 0, 0
	for _, want := range wanted {
		for {
			if i == len(texts) {
				return false
			}
			if n := strings.Index(texts[i][from:], want); n >= 0 {
				from += n + len(want)
				break
			}
			i, from = i+1, 0
		}
	}
	return true
}
