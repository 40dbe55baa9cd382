package jsonschema_test

import (
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
)

func ExampleChecker_CheckSchema() {
	checker := jsonschema.New(jsonschema.Options{})
	const form = `{
		"type": "object",
		"properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
		"required": ["city"],
		"additionalProperties": false
	}`
	fmt.Println(checker.CheckSchema(form, `{"city": "Lisbon", "nights": 2}`))
	fmt.Println(checker.CheckSchema(form, `{"nights": 0}`))

	var fault *jsonschema.ValueError
	if errors.As(checker.CheckSchema(form, `{"city": 7}`), &fault) {
		fmt.Println(fault.Faults[0].Pointer, fault.Faults[0].Reason)
	}
	fmt.Println(checker.CheckSchema(`{"type": "city"}`, `"Lisbon"`))
	// Output:
	// <nil>
	// jsonschema: the value does not fit its schema: /city: is missing; /nights: is less than 1
	// /city is a number, not a string
	// jsonschema: the schema is at fault: /type: fits none of the alternatives
}
