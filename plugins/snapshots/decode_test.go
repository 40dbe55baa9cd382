package snapshots

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecode reads lists of files, of which it takes those that encode writes.
func FuzzDecode(f *testing.F) {
	id := strings.Repeat("ab", 32)
	f.Add([]byte("100644 " + id + " 12 \"a \\xff\\n/b\"\n120000 " + id + " 0 \"c\"\n"))
	f.Add([]byte("100644 " + id + " 12 \"../b\"\n"))
	f.Add([]byte("100600 " + id + " 12 \"b\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := decode(text)
		if err != nil {
			require.ErrorContains(t, err, "snapshots: ")
			return
		}
		require.Equal(t, text, append([]byte{}, encode(files)...))
		for _, file := range files {
			require.True(t, local(file.Path))
		}
	})
}

func TestElement(t *testing.T) {
	for id, plain := range map[string]bool{"t": true, "run-1_a": true, "": false, "T": false, "../x": false, "a.lock": false, "-q": false, strings.Repeat("a", 101): false} {
		got := element(id)
		require.Equal(t, plain, got == id, id)
		require.NotContains(t, got, "/")
	}
	require.NotEqual(t, element("T"), element("U"))
}
