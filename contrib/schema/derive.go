package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// Described is implemented by types that say themselves what JSON they are read from,
// such as those with a method UnmarshalJSON. JSONSchema is called on a zero value, once
// for every place where the type stands, and returns a schema that is an object without
// references. The type still has to refuse what its schema lets through and it cannot read.
type Described interface{ JSONSchema() inference.JSON }

// part is a schema, or a part of one, before it is written. Numbers are json.Number.
type part = map[string]any

// known are the types whose own way of being read is known.
var known = map[reflect.Type]part{
	reflect.TypeFor[time.Time]():       {"type": "string", "format": "date-time"},
	reflect.TypeFor[time.Duration]():   {"type": "integer", "description": nanoseconds},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[inference.JSON]():  {},
	reflect.TypeFor[json.Number]():     {"type": "number"},
	reflect.TypeFor[big.Int]():         {"type": "integer"},
}

const nanoseconds = "nanoseconds"

// derivation is one walk over a type.
type derivation struct {
	defs    part
	names   map[refKey]string // of what is in defs
	samples []sample
}

type refKey struct {
	t    reflect.Type
	null bool
}

// sample is a value of a tag that has to fit the schema that the tag is part of.
type sample struct {
	what  string
	value any
	of    part
}

// of returns the schema of the values of a type, which stands at path.
func (d *derivation) of(t reflect.Type, path string) (part, error) {
	null := false
	for hops := 0; t.Kind() == reflect.Pointer; hops++ {
		if hops > 8 {
			return nil, fmt.Errorf("%s: a pointer to itself cannot be read from JSON", path)
		}
		t, null = t.Elem(), true
	}
	if known[t] != nil || !reaches(t, t, map[reflect.Type]bool{}) {
		p, err := d.body(t, path)
		return orNull(p, null), err
	}
	key := refKey{t, null}
	if d.names[key] == "" {
		d.names[key] = d.free(t, null)
		p, err := d.body(t, path)
		if err != nil {
			return nil, err
		}
		d.defs[d.names[key]] = orNull(p, null)
	}
	return part{"$ref": "#/$defs/" + d.names[key]}, nil
}

// free returns a name in defs that is not taken.
func (d *derivation) free(t reflect.Type, null bool) string {
	base, _, _ := strings.Cut(t.Name(), "[") // without the arguments of a generic type
	if null {
		base += "OrNull"
	}
	taken := map[string]bool{}
	for _, n := range d.names {
		taken[n] = true
	}
	name := base
	for i := 2; taken[name]; i++ {
		name = base + strconv.Itoa(i)
	}
	return name
}

// reaches reports whether values of from may hold values of the named type to.
func reaches(from, to reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	inner := func(t reflect.Type) bool { return t == to && t.Name() != "" || reaches(t, to, seen) }
	switch from.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return inner(from.Elem())
	case reflect.Struct:
		for i := range from.NumField() {
			f := from.Field(i)
			if f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous) && inner(f.Type) {
				return true
			}
		}
	}
	return false
}

// body is of for a type that is no pointer, without a reference to it.
func (d *derivation) body(t reflect.Type, path string) (part, error) {
	if p := known[t]; p != nil {
		return copied(p), nil
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[Described]()):
		return described(reflect.New(t).Interface().(Described), path)
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil, fmt.Errorf("%s: %s reads JSON in its own way; give it a method JSONSchema", path, t)
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return part{"type": "string"}, nil
	}
	switch k := t.Kind(); k {
	case reflect.Bool:
		return part{"type": "boolean"}, nil
	case reflect.String:
		return part{"type": "string"}, nil
	case reflect.Float32, reflect.Float64:
		return part{"type": "number"}, nil
	case reflect.Int, reflect.Int64:
		return part{"type": "integer"}, nil // bounds that nobody gets to would only cost tokens
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := int64(1) << (t.Bits() - 1)
		return part{"type": "integer", "minimum": integer(-limit), "maximum": integer(limit - 1)}, nil
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return part{"type": "integer", "minimum": integer(0)}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return part{"type": "integer", "minimum": integer(0), "maximum": integer(int64(1)<<t.Bits() - 1)}, nil
	case reflect.Slice, reflect.Array:
		if k == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return part{"type": "string", "contentEncoding": "base64"}, nil
		}
		items, err := d.of(t.Elem(), path+"[]")
		p := part{"type": "array", "items": items}
		if k == reflect.Array {
			p["minItems"], p["maxItems"] = integer(int64(t.Len())), integer(int64(t.Len()))
		}
		return p, err
	case reflect.Map:
		return d.table(t, path)
	case reflect.Struct:
		return d.object(t, path)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return part{}, nil
		}
	}
	return nil, fmt.Errorf("%s: a value of type %s cannot be read from JSON; leave the field out with the tag json:\"-\"", path, t)
}

// table returns the schema of a map. Keys that are integers are a pattern of their own,
// so that one key cannot be written in two ways.
func (d *derivation) table(t reflect.Type, path string) (part, error) {
	pattern := ""
	switch k := t.Key().Kind(); {
	case reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), k == reflect.String:
	case k >= reflect.Int && k <= reflect.Int64:
		pattern = "^(0|-?[1-9][0-9]*)$"
	case k >= reflect.Uint && k <= reflect.Uintptr:
		pattern = "^(0|[1-9][0-9]*)$"
	default:
		return nil, fmt.Errorf("%s: a map with keys of type %s cannot be read from JSON", path, t.Key())
	}
	values, err := d.of(t.Elem(), path+"[]")
	if pattern != "" {
		return part{"type": "object", "patternProperties": part{pattern: values}, "additionalProperties": false}, err
	}
	return part{"type": "object", "additionalProperties": values}, err
}

// object returns the schema of a struct.
func (d *derivation) object(t reflect.Type, path string) (part, error) {
	all, err := fields(t, path)
	if err != nil {
		return nil, err
	}
	properties, required := part{}, []string{}
	for _, f := range all {
		at := path + "." + f.Name
		p, err := d.of(f.Type, at)
		if err != nil {
			return nil, err
		}
		if f.quoted {
			p = orNull(part{"type": "string"}, f.Type.Kind() == reflect.Pointer)
		}
		if err := d.tags(f, p, at); err != nil {
			return nil, err
		}
		if _, preset := p["default"]; !f.optional && !preset {
			required = append(required, f.json)
		}
		properties[f.json] = p
	}
	p := part{"type": "object", "additionalProperties": false}
	if len(properties) > 0 {
		p["properties"] = properties
	}
	if len(required) > 0 {
		p["required"] = required
	}
	return p, nil
}

// described returns what a type says of itself.
func described(v Described, path string) (part, error) {
	var p part
	text := v.JSONSchema()
	err := decodeNumbers(text, &p)
	if err == nil && p == nil {
		err = errors.New("it is not an object")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the schema of %T: %w", path, v, err)
	}
	return p, nil
}

func decodeNumbers(text inference.JSON, v any) error {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	return dec.Decode(v)
}

// orNull returns the schema of a pointer to what p is the schema of.
func orNull(p part, null bool) part {
	if !null || len(p) == 0 {
		return p
	}
	one, plain := p["type"].(string)
	if !plain {
		return part{"anyOf": []any{p, part{"type": "null"}}}
	}
	p["type"] = []any{one, "null"}
	if values, ok := p["enum"].([]any); ok {
		p["enum"] = append(values, nil)
	}
	return p
}

// values returns the schema of the items of a list or the values of a map, or nil.
func values(p part) part {
	inner, ok := p["items"].(part)
	if !ok {
		inner, ok = p["additionalProperties"].(part)
	}
	if patterns, _ := p["patternProperties"].(part); !ok && len(patterns) == 1 {
		for _, one := range patterns {
			inner, _ = one.(part)
		}
	}
	return inner
}

// typeOf returns the type of a schema besides null, or "".
func typeOf(p part) string {
	switch t := p["type"].(type) {
	case string:
		return t
	case []any:
		one, _ := t[0].(string)
		return one
	}
	return ""
}

func copied(p part) part {
	out := part{}
	for k, v := range p {
		out[k] = v
	}
	return out
}

func integer(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
