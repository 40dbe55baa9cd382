package memory_test

import (
	"fmt"
	"hash/maphash"
	"reflect"

	"github.com/ddd26017/fixpoint/internal/memory"
)

func ExampleAlias() {
	type user struct {
		Name string
		Tags []string
	}
	fmt.Println(memory.Alias(reflect.TypeFor[user](), nil))
	// Output: at .Tags ([]string)
}

func ExampleFingerprint() {
	seed, v := maphash.MakeSeed(), map[string][]int{"a": {1, 2}}
	before := memory.Fingerprint(seed, reflect.ValueOf(v), nil)
	v["a"][1] = 3
	fmt.Println(before == memory.Fingerprint(seed, reflect.ValueOf(v), nil))
	// Output: false
}
