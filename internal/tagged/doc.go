// Package tagged writes and reads JSON objects that say what they are: their first
// member is "type", and the type tells a reader how to decode the rest.
//
//	line, err := tagged.Marshal("moved", Moved{X: 1}) // {"type":"moved","x":1}
//
//	name, object, err := tagged.Split(line) // "moved", {"x":1}
//	err = tagged.Decode(object, &moved)
//
// It imports the standard library only.
package tagged
