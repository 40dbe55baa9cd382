// Package jsonschema checks values against JSON Schemas. A Checker is what an engine
// needs to ask for structured answers:
//
//	eng, err := engine.New(engine.Config{Schemas: jsonschema.New(jsonschema.Options{})})
//
// Drafts 2020-12, 2019-09, 7, 6 and 4 are known; a schema without "$schema" is of
// draft 2020-12. The keyword format is checked in all of them.
//
// # What a schema cannot do
//
// A schema may come from a model, so it is not trusted. It refers to its own parts and
// to the drafts themselves; anything else is an error, and no file is read and nothing
// is asked of a network. Its size, the number of its parts, and the size and depth of
// values are bounded, and so is the time for a check. Numbers, of schemas and values, have
// exponents of up to 400 and at most 4000 digits. Go cannot stop a goroutine: a
// check beyond its time goes on behind the scenes, and takes one of a small number of
// places until it ends.
//
// # What an error tells
//
// A value that does not fit is a [*ValueError]: where in the value, as a JSON Pointer,
// and what is wanted there, by the schema. It does not repeat the value, which may be a
// secret; names of members are part of the pointers. A schema that is at fault is a
// [*SchemaError], whatever the value.
package jsonschema
