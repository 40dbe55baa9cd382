package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

const (
	pruneLockSQL = `SELECT first FROM {s}.threads WHERE thread = $1 FOR NO KEY UPDATE`

	// The beginning of a thread counts as a snapshot at revision 0 of the time of its first
	// record.
	prunePointsSQL = `SELECT 0::bigint, seconds, nanos FROM {s}.records WHERE thread = $1 AND revision = 1
		UNION ALL SELECT revision, seconds, nanos FROM {s}.snapshots WHERE thread = $1 ORDER BY 1`

	pruneRecordsSQL   = `DELETE FROM {s}.records WHERE thread = $1 AND revision < $2`
	pruneSnapshotsSQL = `DELETE FROM {s}.snapshots WHERE thread = $1 AND revision < $2`
	pruneThreadSQL    = `UPDATE {s}.threads SET first = $2 WHERE thread = $1`
)

// deleteSQL deletes the row of the thread first, which keeps others from making it anew until
// all is gone. Where it was not there, and somebody made one meanwhile, nothing else goes.
var deleteSQL = []string{
	`DELETE FROM {s}.threads WHERE thread = $1`,
	`DELETE FROM {s}.effects WHERE thread = $1 AND NOT EXISTS (SELECT FROM {s}.threads WHERE thread = $1)`,
	`DELETE FROM {s}.snapshots WHERE thread = $1 AND NOT EXISTS (SELECT FROM {s}.threads WHERE thread = $1)`,
	`DELETE FROM {s}.records WHERE thread = $1 AND NOT EXISTS (SELECT FROM {s}.threads WHERE thread = $1)`,
}

// point is a snapshot, or the beginning of a thread, from which on it can be kept.
type point struct {
	Revision int64
	Seconds  int64
	Nanos    int32
}

func (p point) time() time.Time { return timeOf(p.Seconds, p.Nanos) }

// Prune implements [store.Journal]. The beginning of a thread counts as a snapshot of the
// time of its first record, so that a policy that keeps more snapshots than there are, or
// only drops what is older than the thread, drops no record. Appends to the thread wait
// meanwhile. The server uses the room again after a vacuum.
func (j *Journal) Prune(ctx context.Context, id string, p store.PrunePolicy) error {
	key := []byte(id)
	err := j.call(ctx, cleaning, func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
		var first int64
		switch err := tx.QueryRow(ctx, j.sql.pruneLock, key).Scan(&first); err {
		case nil:
		case pgx.ErrNoRows:
			return nil
		default:
			return err
		}
		rows, err := tx.Query(ctx, j.sql.prunePoints, key)
		if err != nil {
			return err
		}
		points, err := pgx.CollectRows(rows, pgx.RowToStructByPos[point])
		if err != nil {
			return err
		}
		oldest := oldestPoint(p, points)
		if oldest <= first {
			return nil
		}
		// The record of the snapshot's own revision stays: it has the commit's id.
		for _, sql := range []string{j.sql.pruneRecords, j.sql.pruneSnapshots, j.sql.pruneThread} {
			if _, err := tx.Exec(ctx, sql, key, oldest); err != nil {
				return err
			}
		}
		return tx.Commit(ctx)
	})
	if err != nil {
		return j.translate(err, id, 0)
	}
	return nil
}

// oldestPoint applies a policy: it returns the oldest revision to keep, 0 for all. The
// newest point always stays.
func oldestPoint(p store.PrunePolicy, points []point) int64 {
	if len(points) == 0 {
		return 0
	}
	keep, newest := 0, len(points)-1
	if p.KeepSnapshots > 0 {
		keep = max(0, newest+1-p.KeepSnapshots)
	}
	for !p.Before.IsZero() && keep < newest && points[keep].time().Before(p.Before) {
		keep++
	}
	return points[keep].Revision
}

// Delete implements [store.Journal].
func (j *Journal) Delete(ctx context.Context, id string) error {
	err := j.call(ctx, cleaning, func(ctx context.Context, conn *pgx.Conn) error {
		var batch pgx.Batch // one transaction
		for _, sql := range j.sql.deleteAll {
			batch.Queue(sql, []byte(id))
		}
		return conn.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return j.translate(err, id, 0)
	}
	return nil
}
