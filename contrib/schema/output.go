package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// output returns what the engine is told of what a function returned.
func output(out any) (engine.Output, error) {
	switch v := out.(type) {
	case engine.Output:
		return v, nil
	case string:
		return engine.Text(v), nil
	}
	details, err := inference.ToJSON(out)
	if err != nil {
		return engine.Output{}, err
	}
	content := string(details)
	if v, ok := out.(fmt.Stringer); ok {
		content = v.String()
	}
	return engine.Output{Content: content, Details: details}, nil
}

// writable returns an error for a type whose values can never be written as JSON. It
// does not look into types that write themselves.
func writable(t reflect.Type) error {
	if t == reflect.TypeFor[engine.Output]() {
		return nil
	}
	return write(t, t.String(), map[reflect.Type]bool{})
}

func write(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	own := reflect.PointerTo(t)
	if seen[t] || own.Implements(reflect.TypeFor[json.Marshaler]()) || own.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("schema: %s: a value of type %s cannot be written as JSON", path, t)
	case reflect.Pointer:
		return write(t.Elem(), path, seen)
	case reflect.Slice, reflect.Array, reflect.Map:
		return write(t.Elem(), path+"[]", seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if err := write(f.Type, path+"."+f.Name, seen); err != nil {
				return err
			}
		}
	}
	return nil
}
