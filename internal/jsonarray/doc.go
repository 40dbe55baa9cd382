// Package jsonarray writes and reads JSON arrays part by part, each part with a
// function of the caller's.
//
//	raw, err := jsonarray.Encode(slices.All(prices), encodePrice, false) // [1,2]
//	prices, err = jsonarray.Decode(raw, decodePrice)
//
// Walk and Members read an array or object from a decoder member by member, and know
// where a member began that was at fault. Append and Replace change an array.
//
// It imports the standard library only.
package jsonarray
