package natstest_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
)

func connect(t testing.TB, url string, o ...client.Option) *client.Conn {
	t.Helper()
	nc, err := client.Connect(url, o...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// What an acknowledgement means is asked of the servers, or said by the caller.
func TestSynced(t *testing.T) {
	t.Parallel()
	synced := natstest.Start(t, 1)
	lazy := natstest.StartWith(t, 1, func(o *server.Options) { o.SyncAlways = false })
	for _, tt := range []struct {
		name    string
		servers *natstest.Servers
		o       nats.Options
		synced  bool
		fails   string
	}{
		{"asked", synced, nats.Options{Monitors: synced.Monitors()}, true, ""},
		{"assumed", lazy, nats.Options{AssumeSynced: true}, true, ""},
		{"not asked", synced, nats.Options{}, false, "server n1 was not asked"},
		{"not synced", lazy, nats.Options{Monitors: lazy.Monitors()}, false, "server n1 does not sync every write"},
		{"not there", synced, nats.Options{Monitors: []string{"http://127.0.0.1:1"}}, false, "ask http://127.0.0.1:1"},
		{"not synced, allowed", lazy, nats.Options{Monitors: lazy.Monitors(), AllowUnsynced: true}, false, ""},
		{"synced, not needed", synced, nats.Options{Monitors: synced.Monitors(), AllowUnsynced: true}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Stream, tt.o.Replicas = newStream(), 1
			j, err := nats.Open(t.Context(), tt.servers.URL(), tt.o)
			if tt.fails != "" {
				require.ErrorIs(t, err, nats.ErrNotSynced)
				require.ErrorContains(t, err, tt.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, store.Caps{Synced: tt.synced, Replicas: 1, MultiProcess: true, MaxBytes: 8 << 20}, j.Caps())
			require.NoError(t, j.Close())
			require.ErrorIs(t, j.Close(), store.ErrClosed)
		})
	}
}

// The system account knows of all servers.
func TestSyncedBySystem(t *testing.T) {
	t.Parallel()
	system := server.NewAccount("SYS")
	app := server.NewAccount("APP")
	servers := natstest.StartWith(t, 1, func(o *server.Options) {
		o.Accounts = []*server.Account{system, app}
		o.SystemAccount = "SYS"
		o.Users = []*server.User{{Username: "sys", Password: "sys", Account: system}, {Username: "app", Password: "app", Account: app}}
		o.NoAuthUser = "app"
		o.NoSystemAccount = false
	})
	servers.EnableJetStream(t, "APP")
	asks := connect(t, servers.URL(), client.UserInfo("sys", "sys"))
	j := open(t, servers, nats.Options{Replicas: 1, System: asks})
	require.True(t, j.Caps().Synced)
}

// A stream that does not fit is refused and left as it is.
func TestStream(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	js, err := jetstream.New(connect(t, servers.URL()))
	require.NoError(t, err)
	made, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other.>"}, AllowDirect: true})
	require.NoError(t, err)
	before := made.CachedInfo().Config
	_, err = nats.Open(t.Context(), servers.URL(), nats.Options{Stream: "OTHER", Replicas: 1, AssumeSynced: true})
	require.ErrorIs(t, err, nats.ErrStream)
	for _, setting := range []string{"allow_direct true where false is needed", "allow_atomic false", "subjects [other.>]", "discard"} {
		require.ErrorContains(t, err, setting)
	}
	after, err := made.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after.Config)

	// Its subjects are taken.
	_, err = nats.Open(t.Context(), servers.URL(), nats.Options{Stream: "MINE", Prefix: "other", Replicas: 1, AssumeSynced: true})
	require.ErrorIs(t, err, nats.ErrStream)
	// One server cannot keep three copies.
	_, err = nats.Open(t.Context(), servers.URL(), nats.Options{Stream: "MINE", AssumeSynced: true})
	require.ErrorIs(t, err, nats.ErrStream)
	require.ErrorContains(t, err, "with 3 replicas")
	// A limit of bytes by hand is nobody's business.
	j := open(t, servers, nats.Options{Stream: "MINE", Replicas: 1, AssumeSynced: true})
	mine, err := js.Stream(t.Context(), j.Stream())
	require.NoError(t, err)
	limited := mine.CachedInfo().Config
	limited.MaxBytes = 1 << 30
	_, err = js.UpdateStream(t.Context(), limited)
	require.NoError(t, err)
	open(t, servers, nats.Options{Stream: "MINE", Replicas: 1, AssumeSynced: true})
}

func TestConnections(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	o := nats.Options{Replicas: 1, AssumeSynced: true}
	_, err := nats.New(t.Context(), connect(t, servers.URL(), client.NoEcho()), o)
	require.ErrorContains(t, err, "NoEcho")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = nats.New(ended, connect(t, servers.URL()), o)
	require.ErrorIs(t, err, context.Canceled)

	nc := connect(t, servers.URL())
	j, err := nats.New(t.Context(), nc, o)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.True(t, nc.IsConnected(), "a connection of the caller stays")

	small := natstest.StartWith(t, 1, func(o *server.Options) { o.MaxPayload = 60 << 10 })
	_, err = nats.Open(t.Context(), small.URL(), o)
	require.ErrorContains(t, err, "max_payload")
	plain := natstest.StartWith(t, 1, func(o *server.Options) { o.JetStream = false })
	_, err = nats.Open(t.Context(), plain.URL(), o)
	require.ErrorIs(t, err, nats.ErrStream)
	brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = nats.Open(brief, "nats://127.0.0.1:1", o)
	require.ErrorContains(t, err, "nats://127.0.0.1:1")
}

// What the package says a user must be allowed to do is enough.
func TestPermissions(t *testing.T) {
	t.Parallel()
	servers := natstest.StartWith(t, 1, func(o *server.Options) {
		publish := []string{"fixpoint.>", "$JS.API.CONSUMER.>"}
		for _, verb := range []string{"INFO", "CREATE", "PURGE", "MSG.GET", "MSG.DELETE"} {
			publish = append(publish, "$JS.API.STREAM."+verb+".FIXPOINT")
		}
		o.Users = []*server.User{{Username: "store", Password: "store", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: publish},
			Subscribe: &server.SubjectPermission{Allow: []string{"fixpoint.n.>", "_INBOX.>"}},
		}}}
	})
	j := open(t, servers, nats.Options{Replicas: 1, AssumeSynced: true, Patience: 5 * time.Second, Connect: []client.Option{
		client.UserInfo("store", "store"),
		client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) { t.Error(err) }),
	}})
	heard, err := j.Listen(t.Context(), "topic")
	require.NoError(t, err)
	require.NoError(t, j.Notify(t.Context(), "topic", []byte("hello")))
	require.Equal(t, "hello", string(<-heard))
	c := commit(1, "t", 0, "mail")
	c.Snapshot = []byte("state")
	put(t, j, c)
	claims, err := j.Claim(t.Context(), "mail", "w", 1, time.Hour)
	require.NoError(t, err)
	require.NoError(t, j.Settle(t.Context(), claims[0], store.Settlement{}))
	_, err = j.Acquire(t.Context(), "t", "ann", time.Hour)
	require.NoError(t, err)
	_, err = j.Append(t.Context(), commit(2, "t", 7))
	require.ErrorIs(t, err, store.ErrFenced)
	require.NoError(t, j.Prune(t.Context(), "t", store.PrunePolicy{KeepSnapshots: 1}))
	ids, err := j.Threads(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"t"}, ids)
	require.NoError(t, j.Delete(t.Context(), "t"))
}

// Users of the store do not link the server.
func TestLinksNoServer(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/ddd26017/fixpoint/store/nats").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/nats-io/nats.go/jetstream\n")
	require.NotContains(t, string(out), "nats-server")
	require.False(t, strings.Contains(string(out), "fixpoint/engine\n"), "nor the engine")
}
