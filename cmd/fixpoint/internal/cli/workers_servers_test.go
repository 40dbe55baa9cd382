//go:build servers && unix

package cli_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
)

func init() {
	servers["postgres"] = func(t *testing.T) string {
		s, err := postgrestest.Start(t.Context(), postgrestest.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		query := url.Values{}
		for _, word := range strings.Fields(s.DSN()) {
			name, value, _ := strings.Cut(word, "=")
			query.Set(name, value)
		}
		return "postgres://?" + query.Encode()
	}
}
