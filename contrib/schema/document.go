package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// For returns the schema of the values that encoding/json reads into a T, which must be
// a struct or a map. It is the same text every time: members are sorted by name. Errors
// begin with "schema: " and the path of the field that is at fault.
func For[T any]() (inference.JSON, error) {
	d, err := documentOf(reflect.TypeFor[T]())
	if err != nil {
		return "", err
	}
	return d.text, nil
}

// document is the schema of a type, ready for use. It is safe for concurrent use.
type document struct {
	of      reflect.Type
	text    inference.JSON
	root    part
	checker *jsonschema.Checker // which has the schema compiled
}

func documentOf(t reflect.Type) (*document, error) {
	if t.Kind() == reflect.Pointer {
		return nil, fmt.Errorf("schema: %s: arguments are a struct or a map, not a pointer to one", t)
	}
	d := derivation{defs: part{}, names: map[refKey]string{}}
	root, err := d.body(t, t.String())
	switch {
	case err != nil:
		return nil, fmt.Errorf("schema: %w", err)
	case typeOf(root) != "object":
		return nil, fmt.Errorf("schema: %s is read from no object; arguments are a struct or a map", t)
	case len(d.defs) > 0:
		root["$defs"] = d.defs
	}
	doc := &document{of: t, root: root, checker: jsonschema.New(jsonschema.Options{Cache: 1, MaxValue: maxBytes})}
	if doc.text, err = inference.ToJSON(root); err != nil {
		return nil, fmt.Errorf("schema: %s: %w", t, err)
	}
	if err := doc.checker.CheckSchema(doc.text, "{}"); err != nil && !errors.Is(err, jsonschema.ErrValue) {
		return nil, fmt.Errorf("schema: %s: %w", t, err)
	}
	for _, s := range d.samples {
		if err := d.check(s); err != nil {
			return nil, fmt.Errorf("schema: %s: %w", s.what, err)
		}
	}
	return doc, nil
}

// check returns what is wrong with a sample.
func (d *derivation) check(s sample) error {
	text, err := inference.ToJSON(part{"$defs": d.defs, "allOf": []any{s.of}})
	if err != nil {
		return err
	}
	value, err := inference.ToJSON(s.value)
	if err != nil {
		return err
	}
	return jsonschema.New(jsonschema.Options{}).CheckSchema(text, value)
}

// fill adds to n the defaults of members that are not there, and reports whether there
// were any.
func (d *document) fill(n *jsonpos.Node, p part) bool {
	if ref, ok := p["$ref"].(string); ok {
		defs, _ := d.root["$defs"].(part)
		if p, ok = defs[strings.TrimPrefix(ref, "#/$defs/")].(part); !ok {
			return false
		}
	}
	filled := false
	others := values(p)
	for _, item := range n.Items {
		filled = d.fill(item, others) || filled
	}
	if n.Kind != jsonpos.Object {
		return filled
	}
	properties, _ := p["properties"].(part)
	missing := maps.Clone(properties)
	for _, m := range n.Members {
		delete(missing, m.Name)
		inner, ok := properties[m.Name].(part)
		if !ok {
			inner = others
		}
		filled = d.fill(m.Value, inner) || filled
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		inner, _ := missing[name].(part)
		value, preset := inner["default"]
		if !preset {
			continue
		}
		if text, err := json.Marshal(value); err == nil { // it was written before
			n.Members = append(n.Members, jsonpos.Member{Name: name, Value: jsonpos.Parse(text)})
			filled = true
		}
	}
	return filled
}
