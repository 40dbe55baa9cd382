// Package origin tells in which Go package code is.
//
//	origin.Of(&bytes.Buffer{}) // bytes
//	origin.Caller(1)           // the package that called this function
//
// It imports the standard library only.
package origin
