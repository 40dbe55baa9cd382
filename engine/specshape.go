package engine

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// shapeCheck reports everything in a tree that does not fit a type.
// encoding/json would stop at the first unknown field, accept names in the wrong
// case, and not say where in a list it was.
type shapeCheck struct {
	*faults
	plugin string // whose type it is; "" for the spec's own
}

func (f shapeCheck) fit(t reflect.Type, n *SpecNode, at specPath) {
	// A plugin may say what null means. For a list of the spec it could be read as
	// none or as all, so it is refused.
	null := n.Kind == NullNode && f.plugin != ""
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if null {
			return
		}
	}
	switch want := nodeKind(t); {
	case want == 0:
		f.fitLeaf(t, n, at)
	case null && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map):
	case n.Kind != want:
		f.value(at, "want %s, got %s", want, n.Kind)
	case t.Kind() == reflect.Array && len(n.Items) != t.Len():
		f.value(at, "want %d items, got %d", t.Len(), len(n.Items))
	case want == NumberNode:
		f.fitLeaf(t, n, at)
	case want == ListNode:
		for i, item := range n.Items {
			f.fit(t.Elem(), item, at.to(i))
		}
	case t.Kind() == reflect.Map:
		for _, m := range n.Members {
			f.fit(t.Elem(), m.Value, at.to(m.Name))
		}
	case want == ObjectNode:
		names, types := jsonFields(t)
		for _, m := range n.Members {
			if i := slices.Index(names, m.Name); i < 0 {
				f.name(at.to(m.Name), "").unknown("field", m.Name, names)
			} else if types[i] != nil {
				f.fit(types[i], m.Value, at.to(m.Name))
			}
		}
	}
}

// nodeKind returns the kind of node that a type is written as; 0 for types that
// only encoding/json can judge: those with code of their own to read them, those
// under a special rule, and those that take anything.
func nodeKind(t reflect.Type) NodeKind {
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		t == reflect.TypeFor[json.Number]() || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return 0
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return BoolNode
	case k >= reflect.Int && k <= reflect.Float64:
		return NumberNode
	case k == reflect.String:
		return StringNode
	case k == reflect.Slice || k == reflect.Array:
		return ListNode
	case k == reflect.Map || k == reflect.Struct:
		return ObjectNode
	}
	return 0
}

// fitLeaf reports what encoding/json has to say about a single value.
func (f shapeCheck) fitLeaf(t reflect.Type, n *SpecNode, at specPath) {
	err := guard(f.plugin, 0, func() error { return json.Unmarshal([]byte(n.JSON()), reflect.New(t).Interface()) })
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && n.Kind != ListNode && n.Kind != ObjectNode {
		got := n.Kind.String()
		if n.Kind == NumberNode {
			got = n.Text
		}
		err = fmt.Errorf("want %s, got %s", wanted(wrong.Type), got)
	}
	if err != nil {
		f.value(at, "%v", err).Err = err
	}
}

func wanted(t reflect.Type) string {
	switch k := t.Kind(); {
	case k >= reflect.Int && k <= reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case k >= reflect.Uint && k <= reflect.Uintptr:
		return fmt.Sprintf("a whole number of 0 or more and %d bits", t.Bits())
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number in the range of " + t.String()
	case k == reflect.String:
		return StringNode.String()
	case nodeKind(t) != 0:
		return nodeKind(t).String()
	}
	return "a value for " + t.String()
}

// jsonFields returns the names that encoding/json knows for a struct, those of
// embedded structs included, the outermost winning. The type of a field is nil
// when its value is written inside a string.
func jsonFields(t reflect.Type) (names []string, types []reflect.Type) {
	structs := []reflect.Type{t}
	for i := 0; i < len(structs); i++ {
		for j := range structs[i].NumField() {
			field := structs[i].Field(j)
			tag := field.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch embedded := field.Anonymous && name == "" && inner.Kind() == reflect.Struct; {
			case tag == "-" || embedded && slices.Contains(structs, inner):
			case embedded:
				structs = append(structs, inner)
			case field.IsExported() && !slices.Contains(names, cmp.Or(name, field.Name)):
				if slices.Contains(strings.Split(options, ","), "string") {
					field.Type = nil
				}
				names = append(names, cmp.Or(name, field.Name))
				types = append(types, field.Type)
			}
		}
	}
	return names, types
}
