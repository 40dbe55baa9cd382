package git

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseRaw writes again what was read.
func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(":100644 000000 aaaa 0000 D\x00a b\x00:000000 100755 0000 bbbb A\x00c\n\x00"))
	f.Add([]byte(":100644 100644 a b M\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseRaw(text)
		if err != nil {
			require.ErrorContains(t, err, "git: ")
			return
		}
		require.Equal(t, bytes.Count(text, []byte{0}), 2*len(all))
		for _, c := range all {
			require.NotEmpty(t, c.Path)
			require.Equal(t, c.Path, c.Now.Path)
		}
	})
}

// FuzzParseList writes again what was read.
func FuzzParseList(f *testing.F) {
	f.Add([]byte("100644 blob aaaa      12\ta\tb\x00160000 commit bbbb       -\tsub\x00"))
	f.Add([]byte("100644 blob aaaa -1\ta\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseList(text)
		if err != nil {
			require.ErrorContains(t, err, "git: ")
			return
		}
		var again strings.Builder
		for _, l := range all {
			fmt.Fprintf(&again, "%s blob %s %d\t%s\x00", l.Mode, l.ID, l.Size, l.Path)
		}
		twice, err := parseList([]byte(again.String()))
		require.NoError(t, err)
		require.Equal(t, all, twice)
	})
}
