package packed_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/packed"
)

func ExampleOf() {
	p := packed.Of(map[string]string{"b": "2", "a": "1"})
	fmt.Println(p)
	for name, text := range packed.All(p) {
		fmt.Println(name, text)
	}
	// Output:
	// "a""1""b""2"
	// a 1
	// b 2
}

func TestEqualMapsAreEqual(t *testing.T) {
	require.Equal(t, packed.Of(map[string]string{"a": "1", "b": "2"}), packed.Of(map[string]string{"b": "2", "a": "1"}))
	require.NotEqual(t, packed.Of(map[string]string{"a": "1b2"}), packed.Of(map[string]string{"a": "1", "b": "2"}))
	require.Empty(t, packed.Of(map[string]string{}))
	for range packed.All(packed.Of(map[string]string{"a": "", "b": ""})) {
		break // may be left early
	}
}

func TestOtherMapsOfOne(t *testing.T) {
	p := packed.Of(map[string]string{"a": "1", "b": "2"})
	require.Equal(t, packed.Of(map[string]string{"a": "1", "b": "3"}), packed.With(p, "b", "3"))
	require.Equal(t, packed.Of(map[string]string{"b": "2"}), packed.Without(p, "a", "c"))
	require.Equal(t, packed.Of(map[string]string{"a": "1", "b": "3", "c": ""}),
		packed.Over(p, packed.Of(map[string]string{"b": "3", "c": ""})))
	require.Empty(t, packed.Without(p, "a", "b"))
	require.Equal(t, p, packed.Over("", p))
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("", "", "a", "1")
	f.Add("\"", "\\", "\xff", "\u2028")
	f.Fuzz(func(t *testing.T, name, text, other, more string) {
		entries := map[string]string{name: text, other: more}
		require.Equal(t, entries, maps.Collect(packed.All(packed.Of(entries))))
	})
}
