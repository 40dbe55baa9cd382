package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

const (
	// It goes from one lane to the next by the indexes, however many effects they hold.
	lanesSQL = `WITH RECURSIVE lanes (lane) AS (
			SELECT least(
				(SELECT lane FROM {s}.effects WHERE state = 0 AND lane >= $1 ORDER BY lane LIMIT 1),
				(SELECT lane FROM {s}.effects WHERE state IN (1, 2) AND lane >= $1 ORDER BY lane LIMIT 1))
			UNION ALL
			SELECT least(
				(SELECT lane FROM {s}.effects WHERE state = 0 AND lane > l.lane ORDER BY lane LIMIT 1),
				(SELECT lane FROM {s}.effects WHERE state IN (1, 2) AND lane > l.lane ORDER BY lane LIMIT 1))
			FROM lanes l WHERE substring(l.lane FOR length($1)) = $1)
		SELECT lane FROM lanes WHERE substring(lane FOR length($1)) = $1`

	depthSQL = `SELECT ready.n + later.due, later.waiting, later.claimed, dead.n, least(ready.oldest, later.oldest) FROM
		(SELECT count(*) AS n, min(due) AS oldest FROM {s}.effects WHERE lane = $1 AND state = 0) ready,
		(SELECT count(*) FILTER (WHERE due <= now()) AS due, min(due) FILTER (WHERE due <= now()) AS oldest,
			count(*) FILTER (WHERE due > now() AND state = 1) AS waiting, count(*) FILTER (WHERE due > now() AND state = 2) AS claimed
			FROM {s}.effects WHERE lane = $1 AND state IN (1, 2)) later,
		(SELECT count(*) AS n FROM {s}.effects WHERE lane = $1 AND state = 3) dead`

	deadSQL = `SELECT seq, thread, revision, idx, lane, seconds, nanos, body, sum, attempts, token, error
		FROM {s}.effects WHERE lane = $1 AND state = 3 ORDER BY seq LIMIT $2`

	requeueSQL = `UPDATE {s}.effects SET state = 0, due = now(), attempts = 0, token = 0, error = '' 
		WHERE thread = $1 AND revision = $2 AND idx = $3 AND state = 3`
)

// Lanes implements [store.Queue].
func (j *Journal) Lanes(ctx context.Context, prefix string) (lanes []string, err error) {
	if len(prefix) > MaxName {
		return nil, nil // no lane has such a name
	}
	err = j.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, j.sql.lanes, []byte(prefix))
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		lanes = texts(names)
		return err
	})
	if err != nil {
		return nil, j.translate(err, "", 0)
	}
	return lanes, nil
}

// Depth implements [store.Queue]. The server counts all effects of the lane.
func (j *Journal) Depth(ctx context.Context, lane string) (d store.Depth, err error) {
	err = j.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var oldest *time.Time
		d = store.Depth{}
		err := conn.QueryRow(ctx, j.sql.depth, []byte(lane)).Scan(&d.Due, &d.Waiting, &d.Claimed, &d.Dead, &oldest)
		if oldest != nil {
			d.Oldest = oldest.UTC()
		}
		return err
	})
	if err != nil {
		return store.Depth{}, j.translate(err, "", 0)
	}
	return d, nil
}

// Dead implements [store.Queue].
func (j *Journal) Dead(ctx context.Context, lane string, limit int) ([]store.DeadEffect, error) {
	var found []effectRow
	err := j.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, j.sql.dead, []byte(lane), int64(max(limit, 0)))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[effectRow])
		return err
	})
	if err != nil {
		return nil, j.translate(err, "", 0)
	}
	var all []store.DeadEffect
	for _, r := range found {
		ref, effect, err := r.open(j.schema)
		if err != nil {
			return nil, err
		}
		all = append(all, store.DeadEffect{Ref: ref, Effect: effect, Attempts: int(r.Attempts), Error: string(r.Error)})
	}
	return all, nil
}

// Requeue implements [store.Queue]. The effect takes the place that its commit has among
// those of its lane. When a connection broke meanwhile it returns store.ErrUnknownOutcome.
func (j *Journal) Requeue(ctx context.Context, ref store.EffectRef) error {
	changed := new(int64)
	err := j.call(ctx, once, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, j.sql.requeue, []byte(ref.Thread), int64(ref.Revision), int64(ref.Index))
		*changed = tag.RowsAffected()
		return err
	})
	switch {
	case err != nil:
		return j.translate(err, ref.Thread, ref.Revision)
	case *changed == 0:
		return fmt.Errorf("postgres: effect %s: %w", ref, store.ErrNoEffect)
	}
	return nil
}
