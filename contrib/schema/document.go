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
	text    inference.JSON // as models are told it
	root    part
	checked inference.JSON      // the same, as it is checked: a fault inside a reference has its place
	checker *jsonschema.Checker // which has the schema compiled
	fields  map[reflect.Type][]field
	lossy   bool
}

func documentOf(t reflect.Type) (*document, error) {
	if t.Kind() == reflect.Pointer {
		return nil, fmt.Errorf("schema: %s: arguments are a struct or a map, not a pointer to one", t)
	}
	d := derivation{defs: part{}, names: map[refKey]string{}, fields: map[reflect.Type][]field{}}
	root, err := d.body(t, t.String())
	switch {
	case err != nil:
		return nil, fmt.Errorf("schema: %w", err)
	case typeOf(root) != "object":
		return nil, fmt.Errorf("schema: %s is read from no object; arguments are a struct or a map", t)
	case len(d.defs) > 0:
		root["$defs"] = d.defs
	}
	doc := &document{
		of: t, root: root, checker: jsonschema.New(jsonschema.Options{Cache: 1, MaxValue: maxBytes}), fields: d.fields, lossy: d.lossy,
	}
	if doc.text, err = inference.ToJSON(portable(root)); err == nil {
		doc.checked, err = inference.ToJSON(root)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %s: %w", t, err)
	}
	if err := doc.checker.CheckSchema(doc.checked, "{}"); err != nil && !errors.Is(err, jsonschema.ErrValue) {
		return nil, fmt.Errorf("schema: %s: %w", t, err)
	}
	for _, s := range d.samples {
		if err := doc.check(s); err != nil {
			return nil, fmt.Errorf("schema: %s: %w", s.what, err)
		}
	}
	return doc, nil
}

// errEndless is a default that has itself as a default of something in it.
var errEndless = errors.New("it never ends: filled in, it has itself in it again")

// check returns what is wrong with a sample.
func (d *document) check(s sample) error {
	of := s.of
	if defs, ok := d.root["$defs"]; ok {
		of = part{"$defs": defs, "allOf": []any{s.of}}
	}
	text, err := inference.ToJSON(of)
	if err != nil {
		return err
	}
	value, err := inference.ToJSON(s.value)
	if err != nil {
		return err
	}
	tree := jsonpos.Parse([]byte(value))
	filled := filling{document: d, open: map[uintptr]bool{identity(s.of): true}}
	filled.fill(tree, s.of)
	if filled.endless {
		return errEndless
	}
	value = inference.JSON(tree.JSON())
	if err := jsonschema.New(jsonschema.Options{}).CheckSchema(text, value); err != nil {
		return err
	}
	if s.quoted && tree.Kind == jsonpos.String {
		value = inference.JSON(tree.Text)
	}
	return value.Decode(reflect.New(s.into).Interface())
}

// fill adds to n the defaults of members that are not there, and reports whether there
// were any.
func (d *document) fill(n *jsonpos.Node) bool {
	f := filling{document: d, open: map[uintptr]bool{}}
	return f.fill(n, d.root)
}

// filling is one walk of fill.
type filling struct {
	*document
	open    map[uintptr]bool // the defaults that are being filled in
	endless bool
}

// identity tells parts apart.
func identity(p part) uintptr { return reflect.ValueOf(p).Pointer() }

func (d *filling) fill(n *jsonpos.Node, p part) bool {
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
		if d.endless || d.open[identity(inner)] {
			d.endless = true // and the tool is not made
			return filled
		}
		if text, err := json.Marshal(value); err == nil { // it was written before
			d.open[identity(inner)] = true
			m := jsonpos.Member{Name: name, Value: jsonpos.Parse(text)}
			d.fill(m.Value, inner)
			delete(d.open, identity(inner))
			n.Members = append(n.Members, m)
			filled = true
		}
	}
	return filled
}
