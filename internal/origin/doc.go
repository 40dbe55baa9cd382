// Package origin tells in which Go package the code of a value is.
//
//	origin.Of(strings.ToUpper)   // strings
//	origin.Of(&bytes.Buffer{})   // bytes
//
// It imports the standard library only.
package origin
