package enum_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/enum"
)

var sizes = enum.Names{Package: "shop", Texts: []string{"small", "large"}}

func Example() {
	var v uint8
	fmt.Println(sizes.Text("Size", 1), sizes.Text("Size", 2))
	fmt.Println(sizes.Parse("size", []byte("large"), &v), v)
	fmt.Println(sizes.Parse("size", []byte("huge"), &v), v)
	// Output:
	// large Size(2)
	// <nil> 1
	// shop: unknown size "huge", want small or large 1
}

func TestRoundTrip(t *testing.T) {
	for v := range uint8(2) {
		text, err := sizes.Marshal("Size", v)
		require.NoError(t, err)
		var back uint8
		require.NoError(t, sizes.Parse("size", text, &back))
		require.Equal(t, v, back)
	}
	_, err := sizes.Marshal("Size", 2)
	require.EqualError(t, err, `shop: unknown Size "Size(2)", want small or large`)
}
