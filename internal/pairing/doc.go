// Package pairing puts the answers in a sequence of items directly behind the
// items that asked for them, whatever came in between.
//
//	for item := range pairing.Order(items, pairing.Rules[Item, Question]{...}) {
//		...
//	}
//
// It imports the standard library only.
package pairing
