package nats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/nats"
)

// No error of Open has a password or a token, whatever is wrong with the address.
func TestNoSecretsInErrors(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, address := range []string{
		"nats://ann:hunter2@127.0.0.1:1",
		"nats://hunter2@127.0.0.1:1",
		"ann:hunter2@127.0.0.1:1",
		"nats://127.0.0.1:1, nats://ann:hunter2@127.0.0.1:1",
		"nats://ann:hunter2@[::1",
		"nats://ann:x/hunter2@127.0.0.1:1",
		"nats://ann:%hunter2@127.0.0.1:1",
		"nats://ann:x#hunter2@127.0.0.1:1",
		"nats://ann:x?hunter2@127.0.0.1:1",
		"nats://ann:hunter2@127.0.0.1:port",
		"nats://ann:hunter2 @127.0.0.1:1",
		"nats://ann:hunter2@",
		"ann:hunter2@127.0.0.1:1\x7f",
		"tls://ann:hunter2@127.0.0.1:1/path",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := nats.Open(ctx, address, nats.Options{Replicas: 1, AssumeSynced: true})
		cancel()
		require.Error(t, err, address)
		require.False(t, strings.Contains(err.Error(), secret), "%s: %v", address, err)
		require.True(t, strings.HasPrefix(err.Error(), "nats: "), "%v", err)
	}
}
