package engine

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// shapeCheck reports everything in a tree that does not fit a type.
// encoding/json would stop at the first unknown field, accept names in the wrong
// case, and not say where in a list it was.
type shapeCheck struct {
	*faults
	plugin string // whose type it is; "" for the spec's own
}

func (f shapeCheck) fit(t reflect.Type, n *SpecNode, at *specPath) {
	for t.Kind() == reflect.Pointer && !decodesItself(t) {
		if n.Kind == NullNode && f.plugin != "" {
			return
		}
		t = t.Elem()
	}
	if decodesItself(t) || isBytes(t) {
		f.fitLeaf(t, n, at)
		return
	}
	want := func(kind NodeKind) bool {
		if n.Kind != kind {
			f.value(at, "want %s, got %s", kind, n.Kind)
		}
		return n.Kind == kind
	}
	// A plugin may say what null means. For a list of the spec it could be read as
	// none or as all, so it is refused.
	null := n.Kind == NullNode && f.plugin != ""
	switch kind := t.Kind(); kind {
	case reflect.Bool:
		want(BoolNode)
	case reflect.String:
		want(StringNode)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64:
		if want(NumberNode) {
			f.fitLeaf(t, n, at)
		}
	case reflect.Slice, reflect.Array:
		if kind == reflect.Slice && null || !want(ListNode) {
			return
		}
		if kind == reflect.Array && len(n.Items) != t.Len() {
			f.value(at, "want %d items, got %d", t.Len(), len(n.Items))
			return
		}
		for i, item := range n.Items {
			f.fit(t.Elem(), item, at.item(i))
		}
	case reflect.Map:
		if null || !want(ObjectNode) {
			return
		}
		for _, m := range n.Members {
			f.fit(t.Elem(), m.Value, at.field(m.Name))
		}
	case reflect.Struct:
		if want(ObjectNode) {
			f.fitStruct(t, n, at)
		}
	default: // an interface takes anything; what is left, decoding refuses
	}
}

// fitLeaf reports what encoding/json has to say about a single value.
func (f shapeCheck) fitLeaf(t reflect.Type, n *SpecNode, at *specPath) {
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
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number of " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "a whole number of 0 or more and " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Float32, reflect.Float64:
		return "a number in the range of " + t.String()
	case reflect.String:
		return StringNode.String()
	case reflect.Map, reflect.Struct:
		return ObjectNode.String()
	default:
		return "a value for " + t.String()
	}
}

func (f shapeCheck) fitStruct(t reflect.Type, n *SpecNode, at *specPath) {
	names, fields := jsonFields(t)
	for _, m := range n.Members {
		field, ok := fields[m.Name]
		switch {
		case !ok:
			f.unknownName(at.field(m.Name), "field", names)
		case field != nil:
			f.fit(field, m.Value, at.field(m.Name))
		}
	}
}

// jsonFields returns the names that encoding/json knows for a struct, those of
// embedded structs included, the outermost winning. The type of a field is nil
// when its value is written inside a string.
func jsonFields(t reflect.Type) (names []string, fields map[string]reflect.Type) {
	fields = map[string]reflect.Type{}
	seen := map[reflect.Type]bool{}
	for level := []reflect.Type{t}; len(level) > 0; {
		var deeper []reflect.Type
		for _, t := range level {
			if seen[t] {
				continue
			}
			seen[t] = true
			for i := range t.NumField() {
				sf := t.Field(i)
				tag := sf.Tag.Get("json")
				if tag == "-" {
					continue
				}
				name, options, _ := strings.Cut(tag, ",")
				inner := sf.Type
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				if sf.Anonymous && name == "" && inner.Kind() == reflect.Struct {
					deeper = append(deeper, inner)
					continue
				}
				if !sf.IsExported() {
					continue
				}
				if name == "" {
					name = sf.Name
				}
				if _, taken := fields[name]; taken {
					continue
				}
				names = append(names, name)
				fields[name] = sf.Type
				if strings.Contains(","+options+",", ",string,") {
					fields[name] = nil
				}
			}
		}
		level = deeper
	}
	return names, fields
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumber      = reflect.TypeFor[json.Number]()
)

// decodesItself reports whether a type's own code or a special rule reads it.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t == jsonNumber || t.Implements(jsonUnmarshaler) || p.Implements(jsonUnmarshaler) ||
		t.Implements(textUnmarshaler) || p.Implements(textUnmarshaler)
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !decodesItself(t.Elem())
}
