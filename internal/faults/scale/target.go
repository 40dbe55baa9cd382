//go:build unix

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.etcd.io/bbolt"

	"github.com/ddd26017/fixpoint/internal/faults/servers"
	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Stores are the kinds of stores that can be measured.
var Stores = []string{"memstore", "bolt", servers.Postgres, servers.NATS}

// target is a store to measure.
type target struct {
	kind  string
	store servers.Store
	// bare writes 1 KiB, or changes one row, the least that the engine can do durably. Each
	// caller has its own number.
	bare func(ctx context.Context, caller int) error
	// size returns what is stored, in bytes, and in rows or messages where it can tell.
	size  func(ctx context.Context) (bytes, rows int64, err error)
	close func() error
}

func newTarget(ctx context.Context, kind, dir string, replicas int) (*target, error) {
	switch kind {
	case "memstore":
		s := memstore.New(memstore.Options{})
		bases := [maxCallers]uint64{}
		return &target{
			kind: kind, store: s, close: s.Close,
			bare: func(ctx context.Context, caller int) (err error) {
				bases[caller], err = s.Append(ctx, store.Commit{Thread: fmt.Sprint("bare", caller), Base: bases[caller], ID: newID(), Record: []byte{1}})
				return err
			},
			size: func(context.Context) (int64, int64, error) { return 0, 0, nil },
		}, nil
	case "bolt":
		return boltTarget(dir)
	}
	server, err := servers.Start(ctx, kind, dir, replicas)
	if err != nil {
		return nil, err
	}
	address := server.Address("scale")
	s, err := address.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	t := &target{kind: kind, store: s}
	if kind == servers.Postgres {
		err = t.barePostgres(ctx, address.URL)
	} else {
		err = t.bareNATS(ctx, address.URL, replicas)
	}
	end := t.close
	t.close = func() error { end(); return errors.Join(s.Close(), server.Close()) }
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func boltTarget(dir string) (*target, error) {
	path := filepath.Join(dir, "scale.db")
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(dir, "bare.db"), 0o600, nil)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	record := make([]byte, 1024)
	return &target{
		kind: "bolt", store: s,
		bare: func(_ context.Context, caller int) error {
			return db.Update(func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte("bare"))
				if err != nil {
					return err
				}
				return b.Put([]byte{byte(caller)}, record)
			})
		},
		size: func(context.Context) (int64, int64, error) {
			info, err := os.Stat(path)
			if err != nil {
				return 0, 0, err
			}
			return info.Size(), 0, nil
		},
		close: func() error { return errors.Join(s.Close(), db.Close()) },
	}, nil
}

func (t *target) barePostgres(ctx context.Context, dsn string) error {
	t.close = func() error { return nil }
	pool, err := pgxpool.New(ctx, dsn+" pool_max_conns=16")
	if err != nil {
		return err
	}
	t.close = func() error { pool.Close(); return nil }
	for _, statement := range []string{
		"CREATE TABLE bare (id integer PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 70)",
		fmt.Sprintf("INSERT INTO bare SELECT g, 0 FROM generate_series(0, %d) g", maxCallers-1),
	} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	t.bare = func(ctx context.Context, caller int) error {
		_, err := pool.Exec(ctx, "UPDATE bare SET n = n + 1 WHERE id = $1", caller)
		return err
	}
	t.size = func(ctx context.Context) (bytes, rows int64, err error) {
		const tables = `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
			WHERE c.relnamespace = 'scale'::regnamespace AND c.relkind = 'r'`
		if err := pool.QueryRow(ctx, tables).Scan(&bytes); err != nil {
			return 0, 0, err
		}
		err = pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM scale.threads) + (SELECT count(*) FROM scale.records) +
			(SELECT count(*) FROM scale.snapshots) + (SELECT count(*) FROM scale.effects)`).Scan(&rows)
		return bytes, rows, err
	}
	return nil
}

func (t *target) bareNATS(ctx context.Context, url string, replicas int) error {
	t.close = func() error { return nil }
	nc, err := client.Connect(url)
	if err != nil {
		return err
	}
	t.close = func() error { nc.Close(); return nil }
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare.>"}, Replicas: replicas}); err != nil {
		return err
	}
	record := make([]byte, 1024)
	t.bare = func(ctx context.Context, caller int) error {
		_, err := js.Publish(ctx, fmt.Sprint("bare.", caller), record)
		return err
	}
	t.size = func(ctx context.Context) (int64, int64, error) {
		s, err := js.Stream(ctx, "SCALE")
		if err != nil {
			return 0, 0, err
		}
		state := s.CachedInfo().State
		return int64(state.Bytes), int64(state.Msgs), nil
	}
	return nil
}
