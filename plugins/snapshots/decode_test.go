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

// A ref is let go of when the thread does not know it, unless it is newer than all that
// the thread knows: then somebody is about to say what it is.
func TestWanted(t *testing.T) {
	known := []Snapshot{{ID: "s3"}, {ID: "s5"}}
	for id, want := range map[string]bool{"s3": true, "s5": true, "s6": true, "s10": true, "s4": false, "s1": false, "other": false} {
		require.Equal(t, want, wanted(id, known), id)
	}
	require.False(t, wanted("s1", nil))
}
