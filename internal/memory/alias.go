package memory

import (
	"fmt"
	"reflect"
	"time"
)

// Alias says where the first part of t is that the copies of a value share: a map,
// slice, pointer, channel, function or interface anywhere inside. It returns " as a
// whole" for t itself, " at .Field[] (type)" for a part, and "" when there is none.
// Strings and time.Time share nothing that can change.
//
// A type for which holds returns true counts as a sequence of the type that it
// returns with it, whatever it is made of. holds may be nil.
func Alias(t reflect.Type, holds func(reflect.Type) (reflect.Type, bool)) string {
	return aliases{holds, map[reflect.Type]bool{}}.find(t, "")
}

type aliases struct {
	holds func(reflect.Type) (reflect.Type, bool)
	seen  map[reflect.Type]bool
}

func (a aliases) find(t reflect.Type, path string) string {
	if a.seen[t] || t == reflect.TypeFor[time.Time]() {
		return ""
	}
	a.seen[t] = true
	if a.holds != nil {
		if element, ok := a.holds(t); ok {
			return a.find(element, path+"[]")
		}
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		if path == "" {
			return " as a whole"
		}
		return fmt.Sprintf(" at %s (%v)", path, t)
	case reflect.Array:
		if t.Len() > 0 {
			return a.find(t.Elem(), path+"[]")
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if text := a.find(f.Type, path+"."+f.Name); text != "" {
				return text
			}
		}
	}
	return ""
}
