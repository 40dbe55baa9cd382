package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/mutate"
)

const good = `=== RUN   TestMutations
    mutation_test.go:280: mutations=1200 bytes=131072 seed=3 outcomes=map[older:2 partly refused:300 refused:400 unharmed:498]
--- PASS: TestMutations (1.00s)
PASS
`

// The mutations themselves are a test of store/bolt; this reads what it says.
func TestRead(t *testing.T) {
	f, err := mutate.Read(strings.NewReader(good))
	require.NoError(t, err)
	require.NoError(t, f.Err(1200))
	require.ErrorContains(t, f.Err(1201), "want at least 1201")
	require.Equal(t, "mutate store=bolt mutations=1200 bytes=131072 failed=0 panics=0 outcomes=[older:2 partly refused:300 refused:400 unharmed:498] seed=3", f.String())

	f, err = mutate.Read(strings.NewReader("    --- FAIL: TestMutations/zeroed_at_512 (0.00s)\n" + good))
	require.NoError(t, err)
	require.ErrorContains(t, f.Err(1), "1 of 1200 mutations")

	for _, crash := range []string{"panic: page 7", "fatal error: fault", "unexpected fault address 0x1 [signal SIGBUS: bus error]"} {
		f, err = mutate.Read(strings.NewReader(crash))
		require.NoError(t, err)
		require.ErrorContains(t, f.Err(1), "the process ended")
	}
	_, err = mutate.Read(strings.NewReader("no Go files"))
	require.ErrorContains(t, err, "no summary")
	_, err = mutate.Read(strings.NewReader("mutations=many"))
	require.ErrorContains(t, err, "the summary")
}
