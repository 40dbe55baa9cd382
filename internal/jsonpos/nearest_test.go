package jsonpos_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// A name is offered only when it is near enough to be a slip.
func TestNearest(t *testing.T) {
	known := []string{"audit", "budget", "rate_limit", "io", "naïve"}
	for name, want := range map[string]string{
		"audti": "audit", "AUDIT": "audit", "adit": "audit", "audits": "audit", "rate-limit": "rate_limit",
		"ratelimt": "rate_limit", "IO": "io", "oi": "", "xx": "", "something": "", "budgie": "budget", "": "",
		"naive": "naïve", "rteaxlimit": "rate_limit", "rteaxlimtt": "", strings.Repeat("x", 1<<16): "",
	} {
		require.Equal(t, want, jsonpos.Nearest(name, known), name)
	}
	require.Equal(t, "aa", jsonpos.Nearest("aaa", []string{"aa", "aaaa"}), "the first of equally near names")
	require.Empty(t, jsonpos.Nearest("a", nil))
}
