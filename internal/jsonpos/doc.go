// Package jsonpos reads JSON strictly and keeps the place of every value, so that
// an error can say where in a text it is and report all faults of it at once.
//
//	var c jsonpos.Check
//	if c.Tree(jsonpos.Parse(text)) {
//		c.Fit(reflect.TypeFor[Config](), c.Root, nil, jsonpos.Rules{})
//	}
//	for _, f := range c.Faults() {
//		fmt.Printf("%d:%d: %s: %s\n", f.Line, f.Column, f.Path, f.Msg)
//	}
//
// A text becomes a tree of Nodes (Parse), the tree is copied and found to be sound
// (Check.Tree), and then held against a Go type (Check.Fit) and against whatever
// else its reader asks for (Check.Value, Check.OneOf). A tree may come from another
// form than JSON, such as YAML, and be malformed, shared or cyclic.
//
// Decode and Encode go between a text and a Go value without a tree.
//
// The package knows nothing of what is read, and imports the standard library only.
package jsonpos
