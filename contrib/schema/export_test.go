package schema

import (
	"reflect"

	"github.com/ddd26017/fixpoint/inference"
)

// Decoder returns the schema of a type that is made while a test runs, and what decodes
// arguments into a new value of it as a tool does.
func Decoder(t reflect.Type) (inference.JSON, func(args inference.JSON) (any, error), error) {
	d, err := documentOf(t)
	if err != nil {
		return "", nil, err
	}
	return d.text, func(args inference.JSON) (any, error) {
		in := reflect.New(t).Interface()
		return in, d.decode("tool", args, in)
	}, nil
}
