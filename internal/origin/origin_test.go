package origin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/origin"
)

const here = "github.com/ddd26017/fixpoint/internal/origin_test"

type local struct{}

func TestOf(t *testing.T) {
	for want, list := range map[string][]any{
		here:            {local{}, &local{}},
		"strings":       {strings.NewReader("")},
		"encoding/json": {json.RawMessage{}, (*json.Decoder)(nil)},
		"":              {nil, 3, []int{}, func() {}, (*int)(nil)},
	} {
		for _, v := range list {
			require.Equal(t, want, origin.Of(v), "%T", v)
		}
	}
}

// A function that is inlined into another package's still has its own.
func TestCaller(t *testing.T) {
	require.Equal(t, here, func() string { return origin.Caller(0) }())
	require.Equal(t, "testing", origin.Caller(1))
	require.Empty(t, origin.Caller(100))
}

func ExampleOf() {
	fmt.Println(origin.Of(&bytes.Buffer{}))
	// Output: bytes
}
