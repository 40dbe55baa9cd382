package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

// One statement sees one state of the database. The rows are of kinds: 0 the thread, 1 the
// snapshot, 2 a record. They come in no order, so that nothing has to be sorted that may be
// large.
const (
	loadSQL = `SELECT 0::integer, t.revision, t.epoch, t.last_id, t.snapshot_at, 0::integer, NULL::bytea, NULL::integer, t.first
			FROM {s}.threads t WHERE t.thread = $1
		UNION ALL
		SELECT 1, s.revision, s.seconds, NULL, 0, s.nanos, s.state, s.sum, 0
			FROM {s}.threads t JOIN {s}.snapshots s ON s.thread = t.thread AND s.revision = t.snapshot_at WHERE t.thread = $1 AND t.revision >= $2
		UNION ALL
		SELECT 2, r.revision, r.seconds, r.id, 0, r.nanos, r.record, r.sum, 0
			FROM {s}.threads t JOIN {s}.records r ON r.thread = t.thread AND r.revision > t.snapshot_at WHERE t.thread = $1 AND t.revision >= $2`

	// The record of the snapshot's own revision comes too: it has the commit's id.
	loadAtSQL = `WITH t AS MATERIALIZED (
			SELECT t.*, coalesce((SELECT s.revision FROM {s}.snapshots s WHERE s.thread = $1 AND s.revision <= $2
				ORDER BY s.revision DESC LIMIT 1), 0) AS at
			FROM {s}.threads t WHERE t.thread = $1 AND t.first <= $2 AND t.revision >= $2)
		SELECT 0::integer, $2::bigint, t.epoch, NULL::uuid, t.at, 0::integer, NULL::bytea, NULL::integer, t.first FROM t
		UNION ALL
		SELECT 1, s.revision, s.seconds, NULL, 0, s.nanos, s.state, s.sum, 0 FROM t JOIN {s}.snapshots s ON s.thread = t.thread AND s.revision = t.at
		UNION ALL
		SELECT 2, r.revision, r.seconds, r.id, 0, r.nanos, r.record, r.sum, 0
			FROM t JOIN {s}.records r ON r.thread = t.thread AND r.revision >= t.at AND r.revision <= $2`

	threadsAllSQL   = `SELECT thread FROM {s}.threads ORDER BY thread LIMIT $1`
	threadsAfterSQL = `SELECT thread FROM {s}.threads WHERE thread > $2 ORDER BY thread LIMIT $1`
)

// row is one row of a load.
type row struct {
	Kind       int32
	Revision   int64
	Number     int64 // epoch, or seconds
	ID         *[16]byte
	SnapshotAt int64
	Nanos      int32
	Body       []byte
	Sum        *int32
	First      int64
}

// Load implements [store.Journal]. It reads from the primary, in one statement, so what it
// shows is whole, and holds all commits that were acknowledged before. While it waits for
// atLeast it looks again every few milliseconds.
func (j *Journal) Load(ctx context.Context, id string, atLeast uint64) (store.Image, error) {
	if err := checkName("thread id", id); err != nil {
		return store.Image{}, err
	}
	for try := 0; ; try++ {
		// The way to hear of changes has to be there before the look, or one would be missed.
		j.mu.Lock()
		changed := j.changed
		j.waiting++
		j.mu.Unlock()
		image, err := j.load(ctx, id, atLeast)
		if err == nil && image.Revision < atLeast {
			j.await(ctx, changed, try)
		}
		j.mu.Lock()
		j.waiting--
		j.mu.Unlock()
		if err == nil && image.Revision < atLeast && ctx.Err() != nil {
			err = errEnded(ctx)
		}
		if err != nil && ctx.Err() != nil && atLeast > 0 {
			err = errors.Join(fmt.Errorf("postgres: thread %s did not reach revision %d in time: %w", id, atLeast, store.ErrBehind), err)
		}
		switch {
		case err != nil:
			return store.Image{}, err
		case image.Revision >= atLeast:
			return image, nil
		}
	}
}

// await waits for a change in this process, and not too long, because there may be one in
// another.
func (j *Journal) await(ctx context.Context, changed <-chan struct{}, try int) {
	timer := time.NewTimer(min(time.Millisecond<<min(try, 10), 50*time.Millisecond))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	case <-j.closing:
	}
}

// load reads a thread once. When it is not at atLeast, only the revision is right.
func (j *Journal) load(ctx context.Context, id string, atLeast uint64) (store.Image, error) {
	rows, err := j.rows(ctx, id, 0, j.sql.load, []byte(id), bigint(atLeast))
	if err != nil {
		return store.Image{}, err
	}
	head, found := headOf(rows)
	if !found || uint64(head.Revision) < atLeast {
		return store.Image{Revision: uint64(head.Revision)}, nil
	}
	return j.image(id, head, rows)
}

// LoadAt implements [store.Historian].
func (j *Journal) LoadAt(ctx context.Context, id string, revision uint64) (store.Image, error) {
	if err := checkName("thread id", id); err != nil {
		return store.Image{}, err
	}
	var rows []row
	if revision > 0 && revision <= math.MaxInt64 {
		var err error
		if rows, err = j.rows(ctx, id, revision, j.sql.loadAt, []byte(id), int64(revision)); err != nil {
			return store.Image{}, err
		}
	}
	head, found := headOf(rows)
	if !found {
		return store.Image{}, fmt.Errorf("postgres: revision %d of thread %s: %w", revision, id, store.ErrNoRevision)
	}
	return j.image(id, head, rows)
}

func (j *Journal) rows(ctx context.Context, id string, revision uint64, sql string, args ...any) (all []row, err error) {
	err = j.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		return err
	})
	if err != nil {
		return nil, j.translate(err, id, revision)
	}
	return all, nil
}

// headOf finds the row of the thread.
func headOf(rows []row) (row, bool) {
	for _, r := range rows {
		if r.Kind == 0 {
			return r, true
		}
	}
	return row{}, false
}

// image puts the rows of a load together and checks that they are whole.
func (j *Journal) image(id string, head row, rows []row) (store.Image, error) {
	image := store.Image{Revision: uint64(head.Revision), Epoch: uint64(head.Number), SnapshotAt: uint64(head.SnapshotAt)}
	damage := func(table string, revision uint64, reason string) (store.Image, error) {
		return store.Image{}, &CorruptError{Schema: j.schema, Table: table, Thread: id, Revision: revision, Reason: reason}
	}
	if head.Revision < 1 || head.SnapshotAt < 0 || head.SnapshotAt > head.Revision || head.First < 1 || head.First > max(head.SnapshotAt, 1) {
		return damage("threads", image.Revision, "the row of the thread makes no sense")
	}
	if head.ID != nil {
		image.LastID = *head.ID
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Revision, b.Revision)) })
	next, named := image.SnapshotAt+1, head.ID != nil
	for _, r := range rows {
		at, revision := timeOf(r.Number, r.Nanos), uint64(r.Revision)
		switch r.Kind {
		case 1:
			if r.Sum == nil || sumOf(sumSnapshot, id, revision, 0, [16]byte{}, at, "", r.Body) != *r.Sum {
				return damage("snapshots", revision, "the checksum does not fit")
			}
			image.Snapshot = r.Body
		case 2:
			if !r.whole(id) {
				return damage("records", revision, "the checksum does not fit")
			}
			if revision <= image.SnapshotAt {
				image.LastID, named = *r.ID, true
				continue
			}
			if revision > image.Revision {
				return damage("records", revision, "the record is newer than the row of the thread")
			}
			if revision != next {
				return damage("records", next, "the record is missing")
			}
			next++
			image.Tail = append(image.Tail, store.Record{Revision: revision, ID: *r.ID, Time: at, Record: r.Body})
		}
	}
	if (image.Snapshot == nil) != (image.SnapshotAt == 0) {
		return damage("snapshots", image.SnapshotAt, "the snapshot is missing")
	}
	if next != image.Revision+1 {
		return damage("records", next, "the record is missing")
	}
	if n := len(image.Tail); n > 0 {
		last := image.Tail[n-1].ID
		if head.ID != nil && last != image.LastID {
			return damage("records", image.Revision, "the newest record has another id than the row of the thread")
		}
		image.LastID, named = last, true
	}
	if !named {
		return damage("records", image.Revision, "the record is missing")
	}
	return image, nil
}

// whole reports whether a record is as it was written. Those of commits that took a lease
// are empty and have no sum.
func (r row) whole(thread string) bool {
	if r.ID == nil || r.Sum == nil {
		return r.ID != nil && len(r.Body) == 0
	}
	return sumOf(sumRecord, thread, uint64(r.Revision), 0, *r.ID, timeOf(r.Number, r.Nanos), "", r.Body) == *r.Sum
}

// Threads implements [store.Journal].
func (j *Journal) Threads(ctx context.Context, after string, limit int) (ids []string, err error) {
	if limit <= 0 {
		limit = 0
	}
	err = j.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		sql, args := j.sql.threadsAll, []any{int64(limit)}
		if after != "" {
			sql, args = j.sql.threadsAfter, append(args, []byte(after))
		}
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		ids = texts(names)
		return err
	})
	if err != nil {
		return nil, j.translate(err, "", 0)
	}
	return ids, nil
}

func texts(names [][]byte) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}
