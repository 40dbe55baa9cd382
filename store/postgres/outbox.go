package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

const (
	// What has come due moves to the index that claims read, some at a time. All of a thread
	// goes together, so that what is older is not handed out later. The sum keeps the server
	// from looking for a thread among all that is due.
	promoteSQL = `WITH threads AS MATERIALIZED (
			SELECT DISTINCT d.thread FROM (
				SELECT thread FROM {s}.effects WHERE lane = $1 AND state IN (1, 2) AND due <= now() ORDER BY due LIMIT 1000) d),
		due AS MATERIALIZED (
			SELECT e.thread, e.revision, e.idx FROM threads t, LATERAL (
				SELECT thread, revision, idx FROM {s}.effects
				WHERE thread = t.thread AND lane = $1 AND state + 0 IN (1, 2) AND due <= now() FOR UPDATE SKIP LOCKED) e)
		UPDATE {s}.effects e SET state = 0 FROM due d WHERE e.thread = d.thread AND e.revision = d.revision AND e.idx = d.idx`

	claimSQL = `WITH free AS MATERIALIZED (
			SELECT thread, revision, idx FROM {s}.effects WHERE lane = $1 AND state = 0 ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED),
		claimed AS (
			UPDATE {s}.effects e SET state = 2, due = now() + $3::bigint * interval '1 microsecond', attempts = e.attempts + 1, token = nextval({tokens})
			FROM free f WHERE e.thread = f.thread AND e.revision = f.revision AND e.idx = f.idx
			RETURNING e.seq, e.thread, e.revision, e.idx, e.lane, e.seconds, e.nanos, e.body, e.sum, e.attempts, e.token, e.error)
		SELECT * FROM claimed ORDER BY seq`

	// If an effect was not changed they tell what there is of it.
	settleDoneSQL = `WITH done AS (DELETE FROM {s}.effects WHERE thread = $1::bytea AND revision = $2::bigint AND idx = $3::bigint
			AND token = $4::bigint AND token <> 0 AND state <> 3 RETURNING true AS yes)` + settledSQL
	settleDeadSQL = `WITH done AS (UPDATE {s}.effects SET state = 3, error = $5::bytea WHERE thread = $1::bytea AND revision = $2::bigint AND idx = $3::bigint
			AND token = $4::bigint AND token <> 0 AND state <> 3 RETURNING true AS yes)` + settledSQL
	settleRetrySQL = `WITH done AS (UPDATE {s}.effects SET state = CASE WHEN $6::timestamptz > now() THEN 1 ELSE 0 END, due = greatest($6, now()),
			token = 0, error = $5::bytea WHERE thread = $1::bytea AND revision = $2::bigint AND idx = $3::bigint
			AND token = $4::bigint AND token <> 0 AND state <> 3 RETURNING true AS yes)` + settledSQL
	settledSQL = ` SELECT d.yes, e.token, e.state FROM (VALUES (1)) AS one (row) LEFT JOIN done d ON true
		LEFT JOIN {s}.effects e ON e.thread = $1 AND e.revision = $2 AND e.idx = $3`
)

// stateDead is the state of an effect that was given up; the migration lists all.
const stateDead = 3

// effectRow is what claims and the dead are read from.
type effectRow struct {
	Seq      int64
	Thread   []byte
	Revision int64
	Index    int64
	Lane     []byte
	Seconds  int64
	Nanos    int32
	Body     []byte
	Sum      int32
	Attempts int32
	Token    int64
	Error    []byte
}

// open checks the row.
func (r effectRow) open(schema string) (ref store.EffectRef, e store.Effect, err error) {
	ref = store.EffectRef{Thread: string(r.Thread), Revision: uint64(r.Revision), Index: uint32(r.Index)}
	e = store.Effect{Lane: string(r.Lane), NotBefore: timeOf(r.Seconds, r.Nanos), Body: r.Body}
	if sumOf(sumEffect, ref.Thread, ref.Revision, uint64(r.Index), [16]byte{}, e.NotBefore, e.Lane, e.Body) != r.Sum {
		return ref, e, &CorruptError{Schema: schema, Table: "effects", Thread: ref.Thread, Revision: ref.Revision, Index: ref.Index, Reason: "the checksum does not fit"}
	}
	return ref, e, nil
}

// Claim implements [store.Outbox]. Effects come in the order of their commits, of which
// those of different threads may have come at the same time. One that is claimed or waits
// does not hold up those behind it. An effect that is damaged stays claimed, and is reported
// as store.ErrCorrupt when there is no other to claim. Claims whose answer is lost run out by
// themselves.
func (j *Journal) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	if err := checkName("lane", lane); err != nil {
		return nil, err
	}
	limit = max(limit, 0)
	var found []effectRow
	err := j.call(ctx, claiming, func(ctx context.Context, conn *pgx.Conn) (err error) {
		found = nil
		var batch pgx.Batch // one transaction, and so one time, in one round trip
		batch.Queue(j.sql.promote, []byte(lane))
		batch.Queue(j.sql.claim, []byte(lane), int64(limit), microseconds(ttl))
		results := conn.SendBatch(ctx, &batch)
		defer func() { err = errors.Join(err, results.Close()) }()
		if _, err := results.Exec(); err != nil {
			return err
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[effectRow])
		return err
	})
	if err != nil {
		return nil, j.translate(err, "", 0)
	}
	var claims []store.Claim
	var damaged error
	for _, r := range found {
		ref, effect, err := r.open(j.schema)
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		claims = append(claims, store.Claim{Ref: ref, Effect: effect, Attempts: int(r.Attempts), Token: uint64(r.Token)})
	}
	if len(claims) == 0 {
		return nil, damaged
	}
	return claims, nil // what is damaged comes again, and does not keep the rest from being delivered
}

// Settle implements [store.Outbox]. A claim that ran out still counts until somebody else
// claims the effect. An effect that is gone is settled, so to settle it as done again is no
// error, and neither is to give it up again.
func (j *Journal) Settle(ctx context.Context, c store.Claim, how store.Settlement) error {
	if err := errors.Join(checkName("thread id", c.Ref.Thread), j.checkSize("settlement's error", len(how.Error))); err != nil {
		return err
	}
	sql := j.sql.settleDone
	args := []any{[]byte(c.Ref.Thread), int64(c.Ref.Revision), int64(c.Ref.Index), int64(c.Token)}
	done := false
	switch {
	case how.Dead:
		sql, args = j.sql.settleDead, append(args, []byte(how.Error))
	case !how.RetryAt.IsZero():
		sql, args = j.sql.settleRetry, append(args, []byte(how.Error), dueOf(how.RetryAt))
	default:
		done = true
	}
	type answer struct {
		yes   *bool
		token *int64
		state *int16
	}
	for {
		a := new(answer)
		err := j.call(ctx, writing, func(ctx context.Context, conn *pgx.Conn) error {
			*a = answer{}
			return conn.QueryRow(ctx, sql, args...).Scan(&a.yes, &a.token, &a.state)
		})
		switch {
		case err != nil:
			return j.translate(err, c.Ref.Thread, c.Ref.Revision)
		case a.yes != nil, a.token == nil && done:
			return nil
		case a.token == nil, uint64(*a.token) != c.Token, c.Token == 0:
			return fmt.Errorf("postgres: effect %s was settled or claimed by somebody else: %w", c.Ref, store.ErrFenced)
		case *a.state == stateDead && how.Dead:
			return nil
		case *a.state == stateDead:
			return fmt.Errorf("postgres: effect %s was given up; requeue it: %w", c.Ref, store.ErrFenced)
		}
		// Somebody changed it meanwhile, and the answer shows it as it was before.
	}
}
