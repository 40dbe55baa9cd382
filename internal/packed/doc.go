// Package packed keeps a map of texts in one string, which makes the map a value:
// it is comparable, cannot change, and shares no memory that could.
//
//	p := packed.Of(map[string]string{"b": "2", "a": "1"})
//	for name, text := range packed.All(p) { // a 1, then b 2
//		...
//	}
//
// With, Without and Over make other maps of one.
//
// It imports the standard library only.
package packed
