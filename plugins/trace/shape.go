package trace

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// form says what a place in an event's line holds.
type form uint8

const (
	free  form = iota // any JSON, made by whoever: rules about members hold
	fixed             // numbers, flags, times and names of a fixed set: never changed
	text              // a text
	many              // an array of the shape's element
	named             // an object of the shape's members
)

// shape is what an event's line looks like. A nil shape is free.
type shape struct {
	form    form
	element *shape
	members map[string]*shape
}

func (s *shape) is(f form) bool { return s.of() == f }

func (s *shape) of() form {
	if s == nil {
		return free
	}
	return s.form
}

// shapes are those of all events, by type.
var shapes = sync.OnceValue(func() map[string]*shape {
	all := map[string]*shape{}
	for _, typ := range engine.EventTypes() {
		zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, typ))
		if err != nil {
			continue // its line is free then
		}
		s := shapeOf(reflect.TypeOf(zero))
		s.members["type"] = &shape{form: fixed}
		all[typ] = s
	}
	return all
})

var marshalsText = reflect.TypeFor[encoding.TextMarshaler]()

// shapeOf returns the shape that encoding/json gives to values of a type.
func shapeOf(t reflect.Type) *shape {
	switch t {
	case reflect.TypeFor[effects.ID]():
		return &shape{form: text}
	case reflect.TypeFor[inference.ToolCall]():
		s := &shape{form: named, members: map[string]*shape{"malformed_args": {form: text}}}
		s.fields(t)
		return s
	}
	switch {
	case t.Implements(marshalsText):
		return &shape{form: fixed}
	case t.Implements(reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]()):
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.String:
		return &shape{form: text}
	case reflect.Slice:
		return &shape{form: many, element: shapeOf(t.Elem())}
	case reflect.Struct:
		s := &shape{form: named, members: map[string]*shape{}}
		s.fields(t)
		return s
	default:
		return &shape{form: fixed}
	}
}

func (s *shape) fields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			s.fields(f.Type)
		default:
			s.members[name] = shapeOf(f.Type)
		}
	}
}
