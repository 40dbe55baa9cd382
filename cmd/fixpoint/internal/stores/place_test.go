package stores_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
)

func TestFolders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"runs": "runs", "/var/runs": "/var/runs", `C:\runs`: `C:\runs`, "bolt:runs": "runs", "bolt:/var/runs": "/var/runs",
		"bolt:///var/runs": "/var/runs", "a:b": "a:b", "what?x=y": "what?x=y", "bolt:a?b": "a?b",
	} {
		p, err := stores.Parse(text)
		require.NoError(t, err, text)
		require.False(t, p.Shared(), text)
		require.Equal(t, want, p.Folder(), text)
		require.Equal(t, want, p.String(), text)
		require.Empty(t, p.Secrets())
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"postgres://app:sesame@db1:5432,db2:5432/app?target_session_attrs=read-write&schema=x": "postgres://app:xxxxx@db1:5432,db2:5432/app?target_session_attrs=read-write&schema=x",
		"postgresql://db/app?user=app&password=sesame&sslmode=require":                         "postgresql://db/app?user=app&password=xxxxx&sslmode=require",
		"postgres://?host=/run&secrets=/s":                                                     "postgres://?host=/run&secrets=/s",
		"nats://app:sesame@a:4222,nats://app:sesame@b:4222?stream=X&replicas=3":                "nats://app:xxxxx@a:4222,nats://app:xxxxx@b:4222?stream=X&replicas=3",
		"nats://sesame@a?sync=assume&monitor=http://a&monitor=http://b":                        "nats://xxxxx@a?sync=assume&monitor=http://a&monitor=http://b",
	} {
		p, err := stores.Parse(text)
		require.NoError(t, err, text)
		require.True(t, p.Shared(), text)
		require.Empty(t, p.Folder())
		require.Equal(t, name, p.String())
		require.NotContains(t, p.String(), "sesame")
	}
	p, err := stores.Parse("postgres://db/app?secrets=/s")
	require.NoError(t, err)
	require.Equal(t, "/s", p.Secrets())
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "name a folder",
		"bolt:":                                "write bolt:FOLDER",
		"mysql://h/db":                         "nothing is known of mysql; name a folder, bolt:FOLDER, postgres://",
		"postgres:db":                          "write postgres://HOST",
		"nats:":                                "write nats://HOST",
		"nats://":                              "write nats://HOST",
		"nats://h?replica=3":                   `there is no setting "replica"; known: stream, replicas`,
		"nats://h?replicas=many":               "replicas=many is not a number from 1 to 5",
		"nats://h?replicas=0":                  "replicas=0",
		"nats://h?sync=yes":                    "sync=yes is not assume or none",
		"postgres://u:sesame@h/db?schema=a%zz": "the part after the question mark",
		"postgres://h/db?schema=a&schema=b":    "schema is there 2 times",
	} {
		_, err := stores.Parse(text)
		require.ErrorIs(t, err, stores.ErrPlace, text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "sesame")
	}
}

// What cannot be reached is told, without what is secret.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nats://app:sesame@127.0.0.1:1", "postgres://app:sesame@127.0.0.1:1/app?connect_timeout=1", "postgres://app:sesame@h/app?sslmode=odd"} {
		p, err := stores.Parse(text)
		require.NoError(t, err)
		_, err = stores.Open(t.Context(), p)
		require.ErrorContains(t, err, "the store "+p.String()+" cannot be opened: ")
		require.NotContains(t, err.Error(), "sesame")
	}
	p, err := stores.Parse("runs")
	require.NoError(t, err)
	_, err = stores.Open(t.Context(), p)
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"runs", "bolt:runs", "postgres://u:sesame@h/db?schema=x", "nats://h?monitor=http://m", "nats://tok@h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := stores.Parse(text)
		switch {
		case err != nil:
			require.ErrorIs(t, err, stores.ErrPlace)
		case p.Shared():
			require.Empty(t, p.Folder())
			require.True(t, strings.HasPrefix(text, "postgres") || strings.HasPrefix(text, "nats"), text)
		default:
			require.NotEmpty(t, p.Folder())
			require.True(t, strings.HasSuffix(text, p.Folder()), text)
		}
	})
}
