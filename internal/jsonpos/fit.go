package jsonpos

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

// Rules adjust Check.Fit.
type Rules struct {
	// Null lets a pointer, slice or map be null. Otherwise null is refused, since for
	// a list it could be read as none or as all.
	Null bool
	// Call runs a piece of decoding that may be code of the type's own, and returns
	// its error. It may catch panics. Nil runs it as it is.
	Call func(decode func() error) error
}

// Fit reports everything in n, which stands at the given path, that does not fit
// the type, and returns whether all does. Places are looked up in Root.
// encoding/json would stop at the first unknown field, accept names in the wrong
// case, and not say where in a list it was.
func (c *Check) Fit(t reflect.Type, n *Node, at Path, r Rules) bool {
	if r.Call == nil {
		r.Call = func(decode func() error) error { return decode() }
	}
	before := len(c.faults)
	fitting{c, r}.fit(t, n, at)
	return len(c.faults) == before
}

type fitting struct {
	*Check
	Rules
}

func (f fitting) fit(t reflect.Type, n *Node, at Path) {
	null := f.Null && n.Kind == Null
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if null {
			return
		}
	}
	switch want := kindOf(t); {
	case want == 0:
		f.leaf(t, n, at)
	case null && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map):
	case n.Kind != want:
		f.Value(at, "want %s, got %s", want, n.Kind)
	case t.Kind() == reflect.Array && len(n.Items) != t.Len():
		f.Value(at, "want %d items, got %d", t.Len(), len(n.Items))
	case want == Number:
		f.leaf(t, n, at)
	case want == List:
		for i, item := range n.Items {
			f.fit(t.Elem(), item, at.To(i))
		}
	case t.Kind() == reflect.Map:
		for _, m := range n.Members {
			f.fit(t.Elem(), m.Value, at.To(m.Name))
		}
	case want == Object:
		names, types := Fields(t)
		for _, m := range n.Members {
			if i := slices.Index(names, m.Name); i < 0 {
				f.NoSuch(at.To(m.Name), "field", m.Name, names)
			} else if types[i] != nil {
				f.fit(types[i], m.Value, at.To(m.Name))
			}
		}
	}
}

// kindOf returns the kind of node that a type is written as; 0 for types that
// only encoding/json can judge: those with code of their own to read them, those
// under a special rule, and those that take anything.
func kindOf(t reflect.Type) Kind {
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		t == reflect.TypeFor[json.Number]() || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return 0
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return Bool
	case k >= reflect.Int && k <= reflect.Float64:
		return Number
	case k == reflect.String:
		return String
	case k == reflect.Slice || k == reflect.Array:
		return List
	case k == reflect.Map || k == reflect.Struct:
		return Object
	}
	return 0
}

// leaf reports what encoding/json has to say about a single value.
func (f fitting) leaf(t reflect.Type, n *Node, at Path) {
	err := f.Call(func() error { return json.Unmarshal([]byte(n.JSON()), reflect.New(t).Interface()) })
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && n.Kind != List && n.Kind != Object {
		got := n.Kind.String()
		if n.Kind == Number {
			got = n.Text
		}
		err = fmt.Errorf("want %s, got %s", wanted(wrong.Type), got)
	}
	if err != nil {
		f.Value(at, "%v", err).Err = err
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
		return String.String()
	case kindOf(t) != 0:
		return kindOf(t).String()
	}
	return "a value for " + t.String()
}

// Fields returns the names that encoding/json knows for a struct, those of
// embedded structs included, the outermost winning. The type of a field is nil
// when its value is written inside a string.
func Fields(t reflect.Type) (names []string, types []reflect.Type) {
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
