package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyArgument(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a||0", "a.b@12": "a.b||12", "a[x]": "a|x|0", "a[x]@3": "a|x|3", "a[x@3]": "a|x@3|0", "a[x@3]@4": "a|x@3|4",
		"a[b[c]]": "a|b[c]|0", "a[x": "a[x||0", "a]": "a]||0",
	} {
		key, entry, revision, err := keyArgument(text)
		require.NoError(t, err, text)
		require.Equal(t, want, fmt.Sprintf("%s|%s|%d", key, entry, revision), text)
	}
	for _, text := range []string{"", "@1", "a@", "a@x", "a@0", "a@-1", "a@18446744073709551616", "a[]", "[x]"} {
		_, _, _, err := keyArgument(text)
		require.ErrorContains(t, err, "fixpoint: ", text)
	}
}

// What was read can be written again.
func FuzzKeyArgument(f *testing.F) {
	for _, text := range []string{"a", "a.b@12", "a[x]@3", "a[x@3]", "a[", "]@1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, entry, revision, err := keyArgument(text)
		if err != nil {
			return
		}
		again := key
		if entry != "" {
			again += "[" + entry + "]"
		}
		if revision != 0 {
			again += fmt.Sprint("@", revision)
		}
		if i := strings.LastIndexByte(text, '@'); revision != 0 {
			text = text[:i+1] + fmt.Sprint(revision) // it may have had zeros before
		}
		require.Equal(t, text, again)
	})
}
