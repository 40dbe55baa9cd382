package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	client "github.com/nats-io/nats.go"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	pg "github.com/ddd26017/fixpoint/store/postgres"
)

// Journal is all that the stores of the command can do.
type Journal interface {
	store.Journal
	store.Leaser
	store.Historian
	store.Queue
	store.Notifier
}

// Open opens a shared store, and makes it where there is none. Close it.
func Open(ctx context.Context, p Place) (Journal, error) {
	var j Journal
	var err error
	switch p.kind {
	case postgres:
		j, err = opened(pg.Open(ctx, p.address, pg.Options{Schema: p.settings.Get("schema")}))
	case stream:
		j, err = opened(nats.Open(ctx, p.address, p.options()))
		if errors.Is(err, nats.ErrNotSynced) {
			err = fmt.Errorf("%w; name all monitoring endpoints in the URL, as in ?monitor=http://HOST:8222, or say sync=%s if every server has sync_interval: always, or sync=%s to go without", err, syncAssume, syncNone)
		}
	default:
		return nil, fmt.Errorf("%s is a folder, which is not opened here", p)
	}
	if err != nil {
		return nil, fmt.Errorf("the store %s cannot be opened: %w", p, veiled{err})
	}
	return j, nil
}

// opened keeps a nil pointer from becoming a journal.
func opened[J Journal](j J, err error) (Journal, error) {
	if err != nil {
		return nil, err
	}
	return j, nil
}

func (p Place) options() nats.Options {
	replicas, _ := strconv.Atoi(p.settings.Get("replicas")) // Parse has looked at it
	o := nats.Options{
		Stream: p.settings.Get("stream"), Replicas: replicas, Domain: p.settings.Get("domain"), Monitors: p.settings["monitor"],
		AssumeSynced: p.settings.Get("sync") == syncAssume, AllowUnsynced: p.settings.Get("sync") == syncNone,
		Connect: []client.Option{client.Name("fixpoint")},
	}
	if file := p.settings.Get("creds"); file != "" {
		o.Connect = append(o.Connect, client.UserCredentials(file))
	}
	return o
}

// Owner returns a name for this process among those that share a store.
func Owner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:8])
}
