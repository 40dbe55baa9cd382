// Package memory looks at Go values as memory, by reflection: which part of a type
// is shared by the copies of a value, and whether anything that a value refers to
// was changed in place.
//
//	memory.Alias(reflect.TypeFor[struct{ Tags []string }](), nil) // " at .Tags ([]string)"
//
// It imports the standard library only.
package memory
