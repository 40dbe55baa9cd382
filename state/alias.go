package state

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// CheckAlias returns nil if values of type T share no memory when copied, and
// otherwise an error that wraps [ErrAliasable] and names the part that does:
// a map, slice, pointer, channel, function or interface anywhere inside.
// Strings, time.Time, and this package's List and Map of such types share
// nothing that can change.
func CheckAlias[T any]() error {
	if text := aliasText[T](); text != "" {
		return fmt.Errorf("%w: %s", ErrAliasable, text)
	}
	return nil
}

// aliasText is empty for a type that does not alias.
func aliasText[T any]() string {
	t := reflect.TypeFor[T]()
	if text := alias(t, "", map[reflect.Type]bool{}); text != "" {
		return fmt.Sprintf("type %v aliases%s", t, text)
	}
	return ""
}

// alias says where the first part of t is that shares memory.
func alias(t reflect.Type, path string, seen map[reflect.Type]bool) string {
	if seen[t] || t == reflect.TypeFor[time.Time]() {
		return ""
	}
	seen[t] = true
	if ours(t, "List[") || ours(t, "Map[") {
		clone, _ := t.FieldByName("clone") // a function of elements
		return alias(clone.Type.In(0), path+"[]", seen)
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		if path == "" {
			return " as a whole"
		}
		return fmt.Sprintf(" at %s (%v)", path, t)
	case reflect.Array:
		if t.Len() > 0 {
			return alias(t.Elem(), path+"[]", seen)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if text := alias(f.Type, path+"."+f.Name, seen); text != "" {
				return text
			}
		}
	}
	return ""
}

// ours reports an instance of a generic type of this package.
func ours(t reflect.Type, prefix string) bool {
	// A struct that embeds a List has its methods too, so look at the name.
	return t.PkgPath() == reflect.TypeFor[Snapshot]().PkgPath() && strings.HasPrefix(t.Name(), prefix)
}
