package pairing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pairing"
)

// Items are words: "?ab" asks a and b, "!a" answers a, anything else is talk.
var words = pairing.Rules[string, rune]{
	Asks: func(item string) ([]rune, bool) {
		rest, asks := strings.CutPrefix(item, "?")
		return []rune(rest), asks
	},
	ID:      func(q rune) string { return string(q) },
	Answers: func(item string) (string, bool) { return strings.CutPrefix(item[:min(2, len(item))], "!") },
	Missing: func(q rune) string { return "!" + string(q) + "-made-up" },
}

func ExampleOrder() {
	fmt.Println(pairing.Order([]string{"hello", "?ab", "wait", "!b", "!a"}, words))
	// Output: [hello ?ab !a !b wait]
}

func TestOrder(t *testing.T) {
	for items, want := range map[string]string{
		"":                  "",
		"x y":               "x y",
		"?ab !a":            "?ab !a !b-made-up",
		"?a x ?b !a !b":     "?a !a-made-up x ?b !b",
		"?a !a-1 !a-2":      "?a !a-1",
		"!a ?a":             "?a !a-made-up",
		"?a !z !a":          "?a !a",
		"?a x ? y !a z":     "?a !a-made-up x ? y z",
		"?a !a x ?a y !a-2": "?a !a x ?a !a-2 y",
	} {
		got := pairing.Order(strings.Fields(items), words)
		require.Equal(t, want, strings.Join(got, " "), items)
	}
}
