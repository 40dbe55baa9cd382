package natstest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// What a child process of the tests is to do.
const (
	childURL      = "FIXPOINT_NATS_URL" // serve a job of the kit on the store there
	childStream   = "FIXPOINT_NATS_STREAM"
	childReplicas = "FIXPOINT_NATS_REPLICAS"
)

func TestMain(m *testing.M) {
	if natstest.Main() {
		return
	}
	if url := os.Getenv(childURL); url != "" {
		if err := child(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(url string) error {
	ctx := context.Background()
	o := nats.Options{Stream: os.Getenv(childStream), AssumeSynced: true, Connect: []client.Option{client.DontRandomize()}}
	if _, err := fmt.Sscan(os.Getenv(childReplicas), &o.Replicas); err != nil {
		return err
	}
	j, err := nats.Open(ctx, url, o)
	if err != nil {
		return err
	}
	return errors.Join(storetest.Serve(ctx, j, os.Stdin, os.Stdout), j.Close())
}

var streams atomic.Int64

func newStream() string { return fmt.Sprintf("S%d", streams.Add(1)) }

func open(t testing.TB, servers *natstest.Servers, o nats.Options) *nats.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, err := nats.Open(ctx, servers.URL(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func opener(servers *natstest.Servers, replicas int) storetest.Opener {
	return func(t *testing.T) storetest.Fixture {
		// All on one server, because it takes some time until the others know of who listens.
		o := nats.Options{Stream: newStream(), Replicas: replicas, AssumeSynced: true, Connect: []client.Option{client.DontRandomize()}}
		current := open(t, servers, o)
		return storetest.Fixture{
			Journal: current,
			Break:   servers.Disconnect,
			Reopen: func(t *testing.T) store.Journal {
				_ = current.Close()
				current = open(t, servers, o)
				return current
			},
			Child: func(ctx context.Context, in io.Reader, out io.Writer) error {
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), childURL+"="+servers.URL(), childStream+"="+o.Stream, fmt.Sprintf("%s=%d", childReplicas, replicas))
				var stderr strings.Builder
				cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
				if err := cmd.Run(); err != nil {
					return fmt.Errorf("%w: %s", err, &stderr)
				}
				return nil
			},
		}
	}
}

// Capability B6, B7: the store on one NATS server.
func TestConformance(t *testing.T) {
	t.Parallel()
	// To sync takes most of the time, and shows nothing here.
	storetest.Run(t, opener(natstest.StartWith(t, 1, func(o *server.Options) { o.SyncAlways = false }), 1))
}
