package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

const (
	// Taking a lease adds a record without content. If nothing was taken it tells who has it.
	acquireSQL = `WITH taken AS (
			UPDATE {s}.threads SET revision = revision + 1, epoch = revision + 1, lease_epoch = revision + 1, last_id = $2::uuid,
				owner = $3::bytea, until = clock_timestamp() + $4::bigint * interval '1 microsecond'
			WHERE thread = $1::bytea AND (lease_epoch = 0 OR owner = $3 OR until <= clock_timestamp())
			RETURNING revision, until),
		made AS (
			INSERT INTO {s}.threads (thread, revision, epoch, first, last_id, snapshot_at, lease_epoch, owner, until)
			SELECT $1, 1, 1, 1, $2, 0, 1, $3, clock_timestamp() + $4 * interval '1 microsecond'
			WHERE NOT EXISTS (SELECT FROM {s}.threads WHERE thread = $1)
			ON CONFLICT (thread) DO NOTHING
			RETURNING revision, until),
		lease AS MATERIALIZED (SELECT * FROM taken UNION ALL SELECT * FROM made),
		record AS (
			INSERT INTO {s}.records (thread, revision, id, seconds, nanos, record)
			SELECT $1, l.revision, $2, n.us / 1000000, (n.us % 1000000)::integer * 1000, ''
			FROM lease l, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) n)
		SELECT true, revision, until, $3, false FROM lease
		UNION ALL
		SELECT false, t.lease_epoch, t.until, t.owner, t.lease_epoch <> 0 AND t.owner <> $3 AND t.until > clock_timestamp()
		FROM (VALUES (1)) AS one (row) LEFT JOIN {s}.threads t ON t.thread = $1
		WHERE NOT EXISTS (SELECT FROM lease)`

	// The lock is a write, so the answer waits for the standbys.
	leaseOfSQL = `SELECT t.lease_epoch, t.until FROM {s}.threads t JOIN {s}.records r ON r.thread = t.thread AND r.revision = t.lease_epoch
		WHERE t.thread = $1 AND r.id = $2 FOR NO KEY UPDATE OF t`

	renewSQL = `WITH renewed AS (
			UPDATE {s}.threads SET until = clock_timestamp() + $4::bigint * interval '1 microsecond'
			WHERE thread = $1::bytea AND lease_epoch = $2::bigint AND owner = $3::bytea AND $2 <> 0 RETURNING until)
		SELECT r.until, t.epoch FROM (VALUES (1)) AS one (row) LEFT JOIN renewed r ON true LEFT JOIN {s}.threads t ON t.thread = $1`

	releaseSQL = `WITH released AS (
			UPDATE {s}.threads SET lease_epoch = 0, owner = '', until = NULL
			WHERE thread = $1::bytea AND epoch = $2::bigint AND $2 <> 0 RETURNING true AS done)
		SELECT r.done, t.epoch FROM (VALUES (1)) AS one (row) LEFT JOIN released r ON true LEFT JOIN {s}.threads t ON t.thread = $1`
)

// Acquire implements [store.Leaser]. The server's clock says when a lease runs out.
func (j *Journal) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	if err := errors.Join(checkName("thread id", id), checkName("owner", owner)); err != nil {
		return store.Lease{}, err
	}
	var commit [16]byte
	_, _ = rand.Read(commit[:]) // never fails
	type answer struct {
		taken bool
		epoch *int64
		until *time.Time
		owner *[]byte
		held  *bool
	}
	for again := false; ; {
		a := new(answer)
		err := j.call(ctx, writing, func(ctx context.Context, conn *pgx.Conn) error {
			*a = answer{}
			if again {
				// It may have been taken by a try before whose answer was lost.
				err := conn.QueryRow(ctx, j.sql.leaseOf, []byte(id), commit).Scan(&a.epoch, &a.until)
				a.taken = err == nil
				if !errors.Is(err, pgx.ErrNoRows) {
					return err
				}
			}
			again = true
			return conn.QueryRow(ctx, j.sql.acquire, []byte(id), commit, []byte(owner), microseconds(ttl)).
				Scan(&a.taken, &a.epoch, &a.until, &a.owner, &a.held)
		})
		switch {
		case err != nil:
			return store.Lease{}, j.translate(err, id, 0)
		case a.taken:
			j.broadcast()
			return store.Lease{Thread: id, Owner: owner, Epoch: uint64(*a.epoch), Until: a.until.UTC()}, nil
		case a.held != nil && *a.held:
			return store.Lease{}, &store.LeaseHeld{Thread: id, Owner: string(*a.owner), Until: a.until.UTC()}
		}
		again = false // it was taken, released or ran out meanwhile, and not by this call
	}
}

// Renew implements [store.Leaser]. A lease that ran out can be renewed as long as nobody
// else took it; one that was released cannot.
func (j *Journal) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	type answer struct {
		until *time.Time
		epoch *int64
	}
	a := new(answer)
	err := j.call(ctx, writing, func(ctx context.Context, conn *pgx.Conn) error {
		*a = answer{}
		return conn.QueryRow(ctx, j.sql.renew, []byte(l.Thread), int64(l.Epoch), []byte(l.Owner), microseconds(ttl)).Scan(&a.until, &a.epoch)
	})
	switch {
	case err != nil:
		return store.Lease{}, j.translate(err, l.Thread, 0)
	case a.until == nil:
		return store.Lease{}, errFenced(l.Thread, l.Epoch, epochOf(a.epoch))
	}
	l.Until = a.until.UTC()
	return l, nil
}

// Release implements [store.Leaser]. The epoch stays, so that whoever comes next has to
// acquire the lease or to know the epoch from a load.
func (j *Journal) Release(ctx context.Context, l store.Lease) error {
	type answer struct {
		done  *bool
		epoch *int64
	}
	a := new(answer)
	err := j.call(ctx, writing, func(ctx context.Context, conn *pgx.Conn) error {
		*a = answer{}
		return conn.QueryRow(ctx, j.sql.release, []byte(l.Thread), int64(l.Epoch)).Scan(&a.done, &a.epoch)
	})
	switch {
	case err != nil:
		return j.translate(err, l.Thread, 0)
	case a.done == nil:
		return errFenced(l.Thread, l.Epoch, epochOf(a.epoch))
	}
	return nil
}

func epochOf(epoch *int64) uint64 {
	if epoch == nil {
		return 0
	}
	return uint64(*epoch)
}
