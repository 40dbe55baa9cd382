package vector

import (
	"reflect"
	"strings"
)

// Parts returns which parts of a list count for its value, and whether v is a list, a
// block or a Recent of this package: slots behind the end belong to longer lists that share
// the block. Of a Recent nothing counts.
func Parts(v reflect.Value) ([]reflect.Value, bool) {
	t := v.Type()
	switch {
	case t.PkgPath() != reflect.TypeFor[List[int]]().PkgPath():
		return nil, false
	case strings.HasPrefix(t.Name(), "List["):
		n := v.FieldByName("n")
		parts := []reflect.Value{n, v.FieldByName("full")}
		for i := range (int(n.Int())-1)%Size + 1 {
			parts = append(parts, v.FieldByName("tail").Elem().FieldByName("Items").Index(i))
		}
		return parts, true
	case strings.HasPrefix(t.Name(), "Block["):
		return []reflect.Value{v.FieldByName("Items")}, true
	case strings.HasPrefix(t.Name(), "Recent["):
		return nil, true
	}
	return nil, false
}
