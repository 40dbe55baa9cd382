package jsonschema

import (
	"errors"
	"fmt"
	"strings"

	upstream "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ddd26017/fixpoint/inference"
)

// home is where a schema is said to be. Nothing is ever asked for there.
const home = "https://schema.invalid/schema"

// closed is a loader of schemas that loads none.
type closed struct{}

var errOutside = errors.New("only references into the schema itself are followed")

func (closed) Load(string) (any, error) { return nil, errOutside }

// compile returns a compiled schema, or a *SchemaError.
func compile(schema inference.JSON) (*upstream.Schema, error) {
	doc, err := decode(schema)
	if err != nil {
		return nil, &SchemaError{Reason: "it is not JSON: " + err.Error()}
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, &SchemaError{Reason: "it is neither an object nor true or false"}
	}
	if depth(doc, maxDepth) > maxDepth {
		return nil, &SchemaError{Reason: fmt.Sprintf("it is more than %d levels deep", maxDepth)}
	}
	if n := parts(doc); n > maxParts {
		return nil, &SchemaError{Reason: fmt.Sprintf("it has %d parts; the limit is %d", n, maxParts)}
	}
	if f := beyond(doc); f != nil {
		if f.Pointer == "" {
			f.Reason = "it " + f.Reason
		}
		return nil, &SchemaError{Pointer: f.Pointer, Reason: f.Reason}
	}
	c := upstream.NewCompiler()
	c.DefaultDraft(upstream.Draft2020)
	c.UseLoader(closed{})
	c.AssertFormat()
	if err := c.AddResource(home, doc); err != nil {
		return nil, schemaFault(err)
	}
	s, err := c.Compile(home)
	if err != nil {
		return nil, schemaFault(err)
	}
	return s, nil
}

// decode reads a JSON text and keeps numbers as they are written.
func decode(text inference.JSON) (any, error) {
	if text == "" {
		return nil, nil
	}
	return upstream.UnmarshalJSON(strings.NewReader(string(text)))
}

// depth returns how deep a value is nested, or a number beyond the limit.
func depth(v any, limit int) int {
	if limit < 0 {
		return 1
	}
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depth(e, limit-1))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, depth(e, limit-1))
		}
	default:
		return 0
	}
	return deepest + 1
}

// parts counts the values in a value, but not the items of lists of scalars.
func parts(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += parts(e)
		}
	case []any:
		for _, e := range v {
			switch e.(type) {
			case map[string]any, []any:
				n += parts(e)
			}
		}
	}
	return n
}
