package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/inference"
)

var errNoObject = errors.New("mcp: the arguments must be a JSON object")

// object returns what is wrong with arguments: gates read them in other ways than
// servers do, so there must be one way only to read them.
func object(args inference.JSON) error {
	if args == "" {
		return nil
	}
	if !args.Valid() || strings.TrimLeft(string(args), " \t\r\n")[0] != '{' {
		return errNoObject
	}
	dec := json.NewDecoder(strings.NewReader(string(args)))
	dec.UseNumber() // also those that no float holds
	return unambiguous(dec)
}

// unambiguous refuses objects in which two names are the same, or but for their case.
func unambiguous(dec *json.Decoder) error {
	type object struct {
		names map[string]bool // nil for a list
		value bool            // next comes a value
	}
	var open []object
	for {
		token, err := dec.Token()
		if err != nil {
			return errNoObject // it was valid
		}
		if top := len(open) - 1; top >= 0 && open[top].names != nil && !open[top].value {
			if name, ok := token.(string); ok {
				key := fold(name)
				if open[top].names[key] {
					return fmt.Errorf("mcp: the arguments have %q twice, or in another case", name)
				}
				open[top].names[key], open[top].value = true, true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{names: map[string]bool{}})
			continue
		case json.Delim('['):
			open = append(open, object{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil
		}
		open[len(open)-1].value = false
	}
}

// fold maps names that differ only in case to one.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the first of those that are the same
			}
			r = next
		}
	}, name)
}
