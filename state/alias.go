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
	path, culprit := alias(t, "", map[reflect.Type]bool{})
	switch {
	case culprit == nil:
		return ""
	case path == "":
		return fmt.Sprintf("type %v aliases", t)
	}
	return fmt.Sprintf("type %v aliases at %s (%v)", t, path, culprit)
}

// alias finds the first part of t that shares memory.
func alias(t reflect.Type, path string, seen map[reflect.Type]bool) (string, reflect.Type) {
	if seen[t] || t == reflect.TypeFor[time.Time]() {
		return "", nil
	}
	seen[t] = true
	if args := containerArgs(t); args != nil {
		for _, arg := range args {
			if p, culprit := alias(arg, path+"[]", seen); culprit != nil {
				return p, culprit
			}
		}
		return "", nil
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		return path, t
	case reflect.Array:
		if t.Len() > 0 {
			return alias(t.Elem(), path+"[]", seen)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if p, culprit := alias(f.Type, path+"."+f.Name, seen); culprit != nil {
				return p, culprit
			}
		}
	}
	return "", nil
}

// container is implemented by List and Map.
type container interface{ args() []reflect.Type }

func (List[T]) args() []reflect.Type { return []reflect.Type{reflect.TypeFor[T]()} }

func (Map[K, V]) args() []reflect.Type { return []reflect.Type{reflect.TypeFor[V]()} }

// containerArgs returns the element types of a List or Map, else nil.
func containerArgs(t reflect.Type) []reflect.Type {
	// A struct that embeds a List has its methods too, so look at the name.
	if !ours(t, "List[") && !ours(t, "Map[") {
		return nil
	}
	return reflect.Zero(t).Interface().(container).args()
}

func ours(t reflect.Type, prefix string) bool {
	return t.PkgPath() == reflect.TypeFor[Snapshot]().PkgPath() && strings.HasPrefix(t.Name(), prefix)
}
