package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

// appendParts are the parts of an append that are not always there.
type appendParts struct{ first, snapshot, effects, settles bool }

// appendSQL makes the statement for a commit. It moves the thread's row if that is where
// the commit wants it, and adds the rows only then. Otherwise it tells what there is.
//
// A repeat locks the row, which is a write: so its answer waits for the standbys, as that
// to the first time may not have done. Whoever waited for the row of another commit sees
// the tables as they were before it; the caller notices and asks again.
func appendSQL(p appendParts) string {
	var b strings.Builder
	snapshotAt, moved := "snapshot_at", "WITH moved AS (UPDATE {s}.threads SET revision = $3, last_id = $5, snapshot_at = @ WHERE thread = $1 AND revision = $2 AND epoch = $4 RETURNING 1)"
	if p.first {
		snapshotAt = "0"
		moved = `WITH moved AS (INSERT INTO {s}.threads (thread, revision, epoch, first, last_id, snapshot_at, lease_epoch, owner)
			SELECT $1::bytea, $3::bigint, 0, 1, $5::uuid, @, 0, '' WHERE $2::bigint = 0 AND $4::bigint = 0 ON CONFLICT (thread) DO NOTHING RETURNING 1)`
	}
	if p.snapshot {
		snapshotAt = "$3"
	}
	b.WriteString(strings.Replace(moved, "@", snapshotAt+"::bigint", 1))
	b.WriteString(`, record AS (INSERT INTO {s}.records (thread, revision, id, seconds, nanos, record, sum)
		SELECT $1::bytea, $3::bigint, $5::uuid, $6::bigint, $7::integer, $8::bytea, $9::integer FROM moved)`)
	next := 10
	params := func(n int) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = next
			next++
		}
		return all
	}
	if p.snapshot {
		fmt.Fprintf(&b, `, snapshot AS (INSERT INTO {s}.snapshots (thread, revision, seconds, nanos, state, sum)
			SELECT $1::bytea, $3::bigint, $6::bigint, $7::integer, $%d::bytea, $%d::integer FROM moved)`, params(2)...)
	}
	if p.effects {
		fmt.Fprintf(&b, `, effect AS (INSERT INTO {s}.effects (thread, revision, idx, lane, state, due, seconds, nanos, body, sum)
			SELECT $1::bytea, $3::bigint, e.n - 1, e.lane, CASE WHEN e.due > now() THEN 1 ELSE 0 END, greatest(e.due, now()), e.seconds, e.nanos, e.body, e.sum
			FROM moved, unnest($%d::bytea[], $%d::timestamptz[], $%d::bigint[], $%d::integer[], $%d::bytea[], $%d::integer[])
				WITH ORDINALITY AS e (lane, due, seconds, nanos, body, sum, n) ORDER BY e.n)`, params(6)...)
	}
	if p.settles {
		fmt.Fprintf(&b, `, settled AS (DELETE FROM {s}.effects f USING moved, unnest($%d::bytea[], $%d::bigint[], $%d::bigint[]) AS r (thread, revision, idx)
			WHERE f.thread = r.thread AND f.revision = r.revision AND f.idx = r.idx)`, params(3)...)
	}
	b.WriteString(`, held AS (SELECT 1 FROM {s}.threads t WHERE t.thread = $1 AND NOT EXISTS (SELECT FROM moved)
			AND EXISTS (SELECT FROM {s}.records r WHERE r.thread = $1 AND r.revision = $3 AND r.id = $5) FOR NO KEY UPDATE)
		SELECT true, NULL::uuid, NULL::bigint, NULL::bigint, 0::bigint FROM moved
		UNION ALL
		SELECT false, r.id, t.revision, t.epoch, (SELECT count(*) FROM held)
		FROM (VALUES (1)) AS one (row) LEFT JOIN {s}.threads t ON t.thread = $1 LEFT JOIN {s}.records r ON r.thread = $1 AND r.revision = $3
		WHERE NOT EXISTS (SELECT FROM moved)`)
	return b.String()
}

// appended is what the statement answers.
type appended struct {
	moved           bool
	id              *[16]byte // of the record at the revision wanted
	revision, epoch *int64    // of the thread; nil: it is not there
}

// Append implements [store.Journal]. A zero ID is never recognised as a repeat; others are
// as long as the record is kept. An epoch other than the thread's, newer ones included, is
// fenced off. While the server cannot be reached, or when a connection breaks, it tries
// again for Options.Patience, and only then returns an error: store.ErrUnknownOutcome if
// one of the tries may have landed.
func (j *Journal) Append(ctx context.Context, c store.Commit) (uint64, error) {
	if err := j.checkCommit(c); err != nil {
		return 0, err
	}
	parts, args := j.appendArgs(c)
	sql := j.sql.append[parts]
	w := writing
	w.repeat = c.ID != [16]byte{}
	for {
		a := new(appended) // the caller may leave before the answer
		err := j.call(ctx, w, func(ctx context.Context, conn *pgx.Conn) error {
			*a = appended{}
			var held int64
			return conn.QueryRow(ctx, sql, args...).Scan(&a.moved, &a.id, &a.revision, &a.epoch, &held)
		})
		if err != nil {
			return 0, j.translate(err, c.Thread, c.Base+1)
		}
		if again, err := a.verdict(c); !again {
			if err != nil {
				return 0, err
			}
			j.broadcast()
			return c.Base + 1, nil
		}
	}
}

// verdict tells what an answer means; again is true when the statement has looked at the
// thread as it was before somebody else changed it.
func (a *appended) verdict(c store.Commit) (again bool, err error) {
	var revision, epoch uint64
	if a.revision != nil {
		revision, epoch = uint64(*a.revision), uint64(*a.epoch)
	}
	switch {
	case a.moved, a.id != nil && *a.id == c.ID && c.ID != [16]byte{}:
		return false, nil
	case epoch != c.Epoch:
		return false, errFenced(c.Thread, c.Epoch, epoch)
	case revision != c.Base:
		return false, &store.Conflict{Thread: c.Thread, Base: c.Base, Have: revision}
	}
	return true, nil
}

// appendArgs copies the commit, because the statement may go on when the caller has left.
func (j *Journal) appendArgs(c store.Commit) (appendParts, []any) {
	parts := appendParts{first: c.Base == 0, snapshot: c.Snapshot != nil, effects: len(c.Effects) > 0, settles: len(c.Settles) > 0}
	revision := c.Base + 1
	record := notNil(c.Record)
	args := []any{
		[]byte(c.Thread), int64(c.Base), int64(revision), int64(c.Epoch), c.ID, c.Time.Unix(), int32(c.Time.Nanosecond()),
		record, sumOf(sumRecord, c.Thread, revision, 0, c.ID, c.Time, "", record),
	}
	if parts.snapshot {
		state := notNil(c.Snapshot)
		args = append(args, state, sumOf(sumSnapshot, c.Thread, revision, 0, [16]byte{}, c.Time, "", state))
	}
	if parts.effects {
		n := len(c.Effects)
		lanes, bodies := make([][]byte, n), make([][]byte, n)
		due, seconds, nanos, sums := make([]*time.Time, n), make([]int64, n), make([]int32, n), make([]int32, n)
		for i, e := range c.Effects {
			lanes[i], bodies[i] = []byte(e.Lane), notNil(e.Body)
			due[i], seconds[i], nanos[i] = dueOf(e.NotBefore), e.NotBefore.Unix(), int32(e.NotBefore.Nanosecond())
			sums[i] = sumOf(sumEffect, c.Thread, revision, uint64(i), [16]byte{}, e.NotBefore, e.Lane, bodies[i])
		}
		args = append(args, lanes, due, seconds, nanos, bodies, sums)
	}
	if parts.settles {
		// In one order everywhere, so that commits which settle the same do not block each other.
		refs := slices.SortedFunc(slices.Values(c.Settles), func(a, b store.EffectRef) int {
			return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Index, b.Index))
		})
		var threads [][]byte
		var revisions, indexes []int64
		for _, r := range refs {
			threads, revisions, indexes = append(threads, []byte(r.Thread)), append(revisions, int64(r.Revision)), append(indexes, int64(r.Index))
		}
		args = append(args, threads, revisions, indexes)
	}
	return parts, args
}

// notNil copies b; what is nil becomes empty, because nil is NULL.
func notNil(b []byte) []byte {
	if len(b) == 0 {
		return []byte{}
	}
	return bytes.Clone(b)
}

// checkCommit refuses what the store has no room for.
func (j *Journal) checkCommit(c store.Commit) error {
	err := errors.Join(checkName("thread id", c.Thread), j.checkSize("record", len(c.Record)), j.checkSize("snapshot", len(c.Snapshot)))
	total := len(c.Record) + len(c.Snapshot)
	for _, e := range c.Effects {
		err = errors.Join(err, checkName("lane", e.Lane), j.checkSize("effect", len(e.Body)))
		total += len(e.Body) + len(e.Lane) + 64
	}
	if err == nil && total > mostCommit {
		return fmt.Errorf("postgres: a commit of %d bytes, and the limit is %d; split it: %w", total, mostCommit, store.ErrTooLarge)
	}
	return err
}

func (j *Journal) checkSize(what string, size int) error {
	if size > j.maxBytes {
		return fmt.Errorf("postgres: a %s of %d bytes, and the limit is %d; raise Options.MaxBytes: %w", what, size, j.maxBytes, store.ErrTooLarge)
	}
	return nil
}

// broadcast lets the loads that wait here look again.
func (j *Journal) broadcast() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting > 0 {
		close(j.changed)
		j.changed = make(chan struct{})
	}
}

// bigint makes a number of the server's; what is too large for one becomes the largest.
func bigint(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
