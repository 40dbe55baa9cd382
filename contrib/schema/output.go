package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// output returns what the engine is told of what a function returned. An error says that
// the function was called, so that the model does not take it for a call to be repeated.
func output(tool string, out any) (engine.Output, error) {
	switch v := out.(type) {
	case engine.Output:
		return v, nil
	case string:
		return engine.Text(v), nil
	}
	details, err := inference.ToJSON(out)
	if err != nil {
		return engine.Output{}, fmt.Errorf("%s was called and did its work, but its result is lost: %w", tool, err)
	}
	content := string(details)
	at := reflect.ValueOf(out)
	none := !at.IsValid() || at.Kind() == reflect.Pointer && at.IsNil() // whose method would look into nothing
	if v, ok := out.(fmt.Stringer); ok && !none {
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
	default:
		return nil
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("schema: %s: a value of type %s cannot be written as JSON", path, t)
	case reflect.Pointer:
		return write(t.Elem(), path, seen)
	case reflect.Map:
		if k := t.Key(); k.Kind() != reflect.String && (k.Kind() < reflect.Int || k.Kind() > reflect.Uintptr) && !k.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return fmt.Errorf("schema: %s: a map with keys of type %s cannot be written as JSON", path, k)
		}
		return write(t.Elem(), path+"[]", seen)
	case reflect.Slice, reflect.Array:
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
