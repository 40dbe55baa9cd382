package jsonpos

import (
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"
)

// Exact returns what a text that encoding/json decodes into a t leaves open: a name
// that appears twice in an object, or that is a field's name but for the case of its
// letters. Programs that read JSON differ in what they make of either, so that one
// could check another value than the next one uses. So do bytes that are not UTF-8, which
// are an error too. It returns nil for a text that is not JSON otherwise.
func Exact(text string, t reflect.Type) error {
	if text == "{}" {
		return nil // spares the parser
	}
	n := Parse([]byte(text))
	if !utf8.ValidString(text) {
		return fmt.Errorf("the text is not UTF-8%s", At(", at ", n.Line, n.Column))
	}
	return exact(n, t)
}

// exact is Exact for the type of a value, nil for one whose fields are not known.
func exact(n *Node, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && kindOf(t) != n.Kind {
		t = nil // it has code of its own to read it, or takes anything
	}
	for _, item := range n.Items {
		if err := exact(item, elem(t)); err != nil {
			return err
		}
	}
	var names []string
	var types []reflect.Type
	if n.Kind == Object && t != nil && t.Kind() == reflect.Struct {
		names, types = Fields(t)
	}
	seen := make(map[string]bool, len(n.Members))
	for _, m := range n.Members {
		i := slices.Index(names, m.Name)
		switch {
		case seen[m.Name]:
			return fmt.Errorf("field %q is there twice%s; keep one", m.Name, At(", again at ", m.Line, m.Column))
		case i < 0 && names != nil:
			return fmt.Errorf("unknown field %q%s; names are exact: %s", m.Name, At(" at ", m.Line, m.Column), Listed(names))
		}
		seen[m.Name] = true
		inner := elem(t)
		if i >= 0 {
			inner = types[i]
		}
		if err := exact(m.Value, inner); err != nil {
			return err
		}
	}
	return nil
}

// elem returns the type of what is in a list or map, or nil.
func elem(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice && t.Kind() != reflect.Array && t.Kind() != reflect.Map {
		return nil
	}
	return t.Elem()
}
