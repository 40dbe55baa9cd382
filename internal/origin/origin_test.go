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

type local struct{}

func (local) method() {}

func TestOf(t *testing.T) {
	here := "github.com/ddd26017/fixpoint/internal/origin_test"
	for want, list := range map[string][]any{
		here:            {local{}, &local{}, func() {}, local.method, local{}.method, TestOf},
		"strings":       {strings.ToUpper, strings.NewReader("")},
		"encoding/json": {json.Marshal, json.RawMessage{}, (*json.Decoder)(nil)},
		"":              {nil, 3, []int{}, (func())(nil), (*int)(nil)},
	} {
		for _, v := range list {
			require.Equal(t, want, origin.Of(v), "%T", v)
		}
	}
}

func ExampleOf() {
	fmt.Println(origin.Of(strings.ToUpper))
	fmt.Println(origin.Of(&bytes.Buffer{}))
	// Output:
	// strings
	// bytes
}
