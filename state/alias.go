package state

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ddd26017/fixpoint/internal/memory"
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
	if text := memory.Alias(t, elementOf); text != "" {
		return fmt.Sprintf("type %v aliases%s", t, text)
	}
	return ""
}

// elementOf returns the type of the elements of a List or Map.
func elementOf(t reflect.Type) (reflect.Type, bool) {
	if !ours(t, "List[") && !ours(t, "Map[") {
		return nil, false
	}
	clone, _ := t.FieldByName("clone") // a function of elements
	return clone.Type.In(0), true
}

// ours reports an instance of a generic type of this package.
func ours(t reflect.Type, prefix string) bool {
	// A struct that embeds a List has its methods too, so look at the name.
	return t.PkgPath() == reflect.TypeFor[Snapshot]().PkgPath() && strings.HasPrefix(t.Name(), prefix)
}
