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
	"unicode"

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
	fields  map[reflect.Type][]field // of the structs that were met
	lossy   bool                     // encoding/json may lose something, or fail without a place: see reading
}

type refKey struct {
	t    reflect.Type
	null bool
}

// sample is a value of a tag that has to fit the schema that the tag is part of, and to be read into the type.
type sample struct {
	what   string
	value  any
	of     part
	into   reflect.Type
	quoted bool
}

// of returns the schema of the values of a type, which stands at path.
func (d *derivation) of(t reflect.Type, path string) (part, error) {
	null := false
	for hops := 0; t.Kind() == reflect.Pointer; hops++ {
		if hops >= maxHops {
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

// free returns a name in defs that is not taken, and needs no escapes in a reference.
func (d *derivation) free(t reflect.Type, null bool) string {
	base, _, _ := strings.Cut(t.Name(), "[") // without the arguments of a generic type
	base = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '_'
		}
		return r
	}, base)
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
	default:
		return false
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
	if readsItself(t) {
		return itself(t, path)
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
		if isBytes(t) {
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
			d.lossy = true
			return part{}, nil
		}
		fallthrough
	default: // channels, functions, complex numbers, and pointers that are none to Go
		return nil, fmt.Errorf("%s: a value of type %s cannot be read from JSON; leave the field out with the tag json:\"-\"", path, t)
	}
}

// readsItself reports whether a type has a way of its own to be read.
func readsItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[Described]()) || pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// itself returns the schema of a type that reads itself.
func itself(t reflect.Type, path string) (part, error) {
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[Described]()):
		return described(reflect.New(t).Interface().(Described), path)
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil, fmt.Errorf("%s: %s reads JSON in its own way; give it a method JSONSchema", path, t)
	}
	return part{"type": "string"}, nil
}

// isBytes reports whether a type is a list that is written as one text. A list of small
// numbers with names of their own is none.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !readsItself(t.Elem())
}

// table returns the schema of a map. Keys that are integers are a pattern of their own,
// so that one key cannot be written in two ways.
func (d *derivation) table(t reflect.Type, path string) (part, error) {
	pattern := ""
	switch k := t.Key().Kind(); {
	case reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		d.lossy = true
	case k == reflect.String:
	case k >= reflect.Int && k <= reflect.Uintptr:
		d.lossy = true
		pattern = digits(k)
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
	d.fields[t] = all
	properties, required := part{}, []string{}
	for _, f := range all {
		at := path + "." + f.Name
		p, err := d.of(f.Type, at)
		if err != nil {
			return nil, err
		}
		if f.quoted {
			d.lossy = true
			p = orNull(part{"type": "string", "pattern": digits(pointed(f.Type).Kind())}, f.Type.Kind() == reflect.Pointer)
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

// digits returns a pattern for the texts that are values of a kind, each written in one way.
func digits(k reflect.Kind) string {
	switch {
	case k == reflect.Bool:
		return "^(true|false)$"
	case k <= reflect.Int64:
		return "^(0|-?[1-9][0-9]*)$"
	case k <= reflect.Uintptr:
		return "^(0|[1-9][0-9]*)$"
	}
	return `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`
}

// maxHops is how many pointers lead to a value: more are a pointer to itself.
const maxHops = 8

// pointed returns the type that a type points to, or itself.
func pointed(t reflect.Type) reflect.Type {
	for hops := 0; t.Kind() == reflect.Pointer && hops <= maxHops; hops++ {
		t = t.Elem()
	}
	return t
}

// described returns what a type says of itself.
func described(v Described, path string) (part, error) {
	var p part
	text := v.JSONSchema()
	err := decodeNumbers(text, &p)
	switch {
	case err != nil:
	case p == nil:
		err = errors.New("it is not an object")
	case strings.Contains(string(text), `"$ref"`):
		err = errors.New("it has a reference, which would lead elsewhere in the schema that it becomes a part of")
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
	if _, fixed := p["const"]; !plain || fixed || one == "null" {
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

// portable returns the schema as models are told it. Two of the three big services take
// nothing beside a reference, so that a description there has to stand around it.
func portable(v any) any {
	switch v := v.(type) {
	case part:
		out := part{}
		for name, inner := range v {
			out[name] = portable(inner)
		}
		if ref, ok := out["$ref"].(string); ok && len(out) > 1 {
			delete(out, "$ref")
			out["anyOf"] = []any{part{"$ref": ref}}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = portable(inner)
		}
		return out
	}
	return v
}

func copied(p part) part {
	out := part{}
	for k, v := range p {
		out[k] = v
	}
	return out
}

func integer(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
