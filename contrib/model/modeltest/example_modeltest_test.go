package modeltest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
)

// An adapter's conformance test is one call. What the provider of a protocol looks like, toyProvider shows.
func ExampleRun() {
	_ = func(t *testing.T) { // TestConformance of the adapter's package
		modeltest.Run(t, toyProvider(""))
	}
	// Output:
}

// The pieces of calls come one call after the other, or take turns.
func ExampleAnswer_Pieces() {
	answer := modeltest.Answer{Calls: []modeltest.Call{
		{Name: "weather", Args: []string{`{"city":`, `"Oslo"}`}},
		{Name: "now", Args: []string{`{`, `}`}},
	}}
	for _, answer.Interleave = range []bool{false, true} {
		var pieces []string
		for _, piece := range answer.Pieces() {
			pieces = append(pieces, answer.Calls[piece.Call].Args[piece.Index])
		}
		fmt.Println(strings.Join(pieces, " "))
	}
	// Output:
	// {"city": "Oslo"} { }
	// {"city": { "Oslo"} }
}
