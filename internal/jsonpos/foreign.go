package jsonpos

import (
	"encoding"
	"encoding/json"
	"reflect"
)

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Foreign reports whether decoding into a new t can call a method that is not of
// encoding/json: t, or a type that it is made of, decodes itself.
func Foreign(t reflect.Type) bool { return foreign(t, map[reflect.Type]bool{}) }

func foreign(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	for _, own := range []reflect.Type{unmarshaler, textUnmarshaler} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Map:
		return foreign(t.Key(), seen) || foreign(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return foreign(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if foreign(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
