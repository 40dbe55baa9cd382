package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]postgres.Options{
		"Schema is": {Schema: strings.Repeat("x", 64)}, "not begin with pg_": {Schema: "pg_catalog"}, `"a\x00b"`: {Schema: "a\x00b"},
		`"\xff"`: {Schema: "\xff"}, "Options.Commit": {Commit: "always"}, "Options.MaxConns": {MaxConns: -1},
		"Options.MaxBytes": {MaxBytes: 1 << 30}, "Options.Timeout": {Timeout: -1},
	} {
		err := o.Validate()
		require.ErrorContains(t, err, name)
		_, opened := postgres.Open(t.Context(), "host=/nowhere", o)
		require.Equal(t, err, opened)
	}
	require.NoError(t, postgres.Options{}.Validate())
	require.NoError(t, postgres.Options{Schema: `odd "name" 'x' {s}`, Commit: "remote_apply", Patience: -1}.Validate())
	several := postgres.Options{Commit: "x", MaxConns: -1}.Validate()
	require.ErrorContains(t, several, "Commit")
	require.ErrorContains(t, several, "MaxConns")
}

func TestConnectionString(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"postgres://u:sesame@h:port/db", "host=h password=sesame port=x", "postgres://u:sesame@h/db?sslmode=odd"} {
		_, err := postgres.Open(t.Context(), dsn, postgres.Options{})
		require.ErrorContains(t, err, "postgres: the connection string")
		require.NotContains(t, err.Error(), "sesame")
	}
	for _, tt := range []struct {
		dsn  string
		o    postgres.Options
		want int32
	}{
		{"host=h", postgres.Options{}, 16},
		{"host=h", postgres.Options{MaxConns: 3}, 3},
		{"host=h pool_max_conns=7", postgres.Options{MaxConns: 3}, 7},
		{"postgres://h/db?pool_max_conns=8", postgres.Options{}, 8},
	} {
		config, err := postgres.Parse(tt.dsn, tt.o)
		require.NoError(t, err)
		require.Equal(t, tt.want, config.MaxConns, tt.dsn)
	}
}

// No server is there, and Open says so at once, without a password.
func TestNoServer(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), "host="+t.TempDir()+" user=u password=sesame dbname=d", postgres.Options{})
	require.ErrorContains(t, err, "postgres: connect")
	require.NotContains(t, err.Error(), "sesame")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = postgres.Open(ctx, "host=/nowhere user=u", postgres.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

type neverSent struct{ error }

func (neverSent) SafeToRetry() bool { return true }

func TestClassify(t *testing.T) {
	t.Parallel()
	answer := func(severity, code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: severity, Code: code})
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "executed"},
		{answer("ERROR", "40001"), "not executed"}, // serialization
		{answer("ERROR", "40P01"), "not executed"}, // deadlock
		{answer("ERROR", "57014"), "not executed"}, // cancelled
		{answer("ERROR", "25006"), "not executed"}, // read-only
		{answer("ERROR", "57P01"), "not executed"},
		{answer("ERROR", "42P01"), "refused"}, // no such table
		{answer("ERROR", "53100"), "refused"}, // disk full
		{answer("ERROR", "XX001"), "refused"},
		{answer("ERROR", ""), "refused"},
		{answer("FATAL", "57P01"), "unknown"}, // the commit may have been before
		{answer("PANIC", "XX000"), "unknown"},
		{neverSent{io.EOF}, "not executed"},
		{fmt.Errorf("wrapped: %w", neverSent{io.EOF}), "not executed"},
		{io.ErrUnexpectedEOF, "unknown"},
		{&net.OpError{Op: "write", Err: io.ErrClosedPipe}, "unknown"},
		{context.DeadlineExceeded, "unknown"},
	} {
		require.Equal(t, tt.want, postgres.Classify(tt.err), "%v", tt.err)
	}
	require.True(t, postgres.ConnectAgain(io.EOF))
	require.True(t, postgres.ConnectAgain(answer("FATAL", "57P03"))) // it is starting
	require.True(t, postgres.ConnectAgain(answer("FATAL", "53300"))) // too many connections
	require.True(t, postgres.ConnectAgain(postgres.ErrNotPrimary))
	require.False(t, postgres.ConnectAgain(answer("FATAL", "28P01"))) // wrong password
	require.False(t, postgres.ConnectAgain(answer("FATAL", "3D000"))) // no such database
	require.False(t, postgres.ConnectAgain(store.ErrClosed))
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	for _, answer := range []*pgconn.PgError{
		{Code: "XX001"}, {Code: "XX002"}, {Code: "23505", SchemaName: "mine", TableName: "records"},
	} {
		err := postgres.Translate("mine", answer)
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorIs(t, err, answer)
		var corrupt *postgres.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, "t/7", fmt.Sprintf("%s/%d", corrupt.Thread, corrupt.Revision))
	}
	for _, answer := range []*pgconn.PgError{{Code: "23505", SchemaName: "other"}, {Code: "53100"}} {
		require.NotErrorIs(t, postgres.Translate("mine", answer), store.ErrCorrupt)
	}
}

// unquote undoes quoting: what is between the quotes, each of which is doubled inside.
func unquote(text string, quote string) (string, bool) {
	inside, ok := strings.CutPrefix(text, quote)
	inside, ok2 := strings.CutSuffix(inside, quote)
	halves := strings.ReplaceAll(inside, quote+quote, "\x01")
	return strings.ReplaceAll(halves, "\x01", quote), ok && ok2 && !strings.Contains(halves, quote)
}

func FuzzQuote(f *testing.F) {
	for _, name := range []string{"", "fixpoint", `a"b`, `"`, `'; DROP SCHEMA x; --`, `\`, `\'`, "日本"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.Contains(name, "\x01") {
			return
		}
		got, ok := unquote(postgres.Quote(name), `"`)
		require.True(t, ok)
		require.Equal(t, name, got)
		text := strings.TrimPrefix(postgres.Literal(name), "E")
		require.Empty(t, strings.Count(strings.ReplaceAll(text, `\\`, ""), `\`), "each backslash is doubled")
		got, ok = unquote(strings.ReplaceAll(text, `\\`, `\`), "'")
		require.True(t, ok)
		require.Equal(t, name, got)
	})
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	versions, err := postgres.Migrations(postgres.Embedded)
	require.NoError(t, err)
	require.NotEmpty(t, versions)
	files := fstest.MapFS{}
	for _, name := range []string{"0002_b.sql", "0001_a.sql", "0003_c.sql", "notes.txt"} {
		files["migrations/"+name] = &fstest.MapFile{}
	}
	versions, err = postgres.Migrations(files)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, versions)
	for _, bad := range []string{"0005_e.sql", "0003_again.sql", "later.sql"} {
		files["migrations/"+bad] = &fstest.MapFile{}
		_, err := postgres.Migrations(files)
		require.Error(t, err, bad)
		delete(files, "migrations/"+bad)
	}

	n, err := postgres.Pending(3, 1)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = postgres.Pending(3, 3)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = postgres.Pending(3, 4)
	require.ErrorIs(t, err, postgres.ErrSchemaNewer)
	require.ErrorContains(t, err, "version 4")
	require.NotEqual(t, postgres.LockNumber("a"), postgres.LockNumber("b"))
}

func TestSettings(t *testing.T) {
	t.Parallel()
	row := func(values ...string) (all [][]byte) {
		for _, v := range values {
			all = append(all, []byte(v))
		}
		return all
	}
	for _, tt := range []struct {
		row  [][]byte
		want store.Caps
	}{
		{row("f", "off", "150018", "on", "on", "", "on"), store.Caps{Synced: true, Replicas: 1}},
		{row("f", "off", "150018", "on", "on", "ANY 2 (a, b, c)", "on"), store.Caps{Synced: true, Replicas: 3}},
		{row("f", "off", "150018", "on", "on", "a, b", "remote_apply"), store.Caps{Synced: true, Replicas: 2}},
		{row("f", "off", "150018", "on", "on", "a", "remote_write"), store.Caps{Synced: true, Replicas: 1}}, // not on its disk
		{row("f", "off", "150018", "on", "on", "a", "local"), store.Caps{Synced: true, Replicas: 1}},
		{row("f", "off", "150018", "on", "on", "a", "off"), store.Caps{Replicas: 1}},
		{row("f", "off", "150018", "off", "on", "", "on"), store.Caps{Replicas: 1}},
		{row("f", "off", "150018", "on", "off", "", "on"), store.Caps{Replicas: 1}}, // pages may be torn
	} {
		s, err := postgres.ReadSettings(tt.row)
		require.NoError(t, err)
		require.NoError(t, s.Check())
		tt.want.MultiProcess, tt.want.MaxBytes = true, 7
		require.Equal(t, tt.want, s.Caps(7), "%s", tt.row)
	}
	for _, bad := range [][][]byte{row("t", "on", "150018", "on", "on", "", "on"), row("f", "on", "150018", "on", "on", "", "on")} {
		s, err := postgres.ReadSettings(bad)
		require.NoError(t, err)
		require.ErrorIs(t, s.Check(), postgres.ErrNotPrimary)
	}
	old, err := postgres.ReadSettings(row("f", "off", strconv.Itoa(postgres.OldestServer-1), "on", "on", "", "on"))
	require.NoError(t, err)
	require.ErrorContains(t, old.Check(), "version 12")
	for _, bad := range [][][]byte{nil, row("f"), row("f", "off", "fifteen", "on", "on", "", "on")} {
		_, err := postgres.ReadSettings(bad)
		require.Error(t, err)
	}
}

func TestStandbysNeeded(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]int{
		"": 0, "  ": 0, "a": 1, "a, b": 1, "*": 1, `"FIRST"`: 1, "FIRST 2 (a, b, c)": 2, "first 3(a,b,c)": 3, "ANY 2 (*)": 2, "any 12(a)": 12,
		"2 (a, b)": 2, "2(a)": 2, `"odd (name)"`: 1, " FIRST  1 ( a )": 1,
	} {
		require.Equal(t, want, postgres.NeededBy(names), "%q", names)
	}
}

func FuzzStandbysNeeded(f *testing.F) {
	for _, names := range []string{"", "a", "FIRST 2 (a, b)", "ANY 1(*)", "3 (", "FIRST", "ANY (", "99999999999999999999(a)", `"("`} {
		f.Add(names)
	}
	f.Fuzz(func(t *testing.T, names string) {
		n := postgres.NeededBy(names)
		require.GreaterOrEqual(t, n, 0)
		blank := strings.TrimFunc(names, func(r rune) bool { return unicode.IsSpace(r) || r == '(' }) == ""
		require.Equal(t, blank, n == 0)
	})
}

// A former primary is refused, once the new one was seen.
func TestTimeline(t *testing.T) {
	t.Parallel()
	var s postgres.Server
	require.NoError(t, s.See(1, 1))
	require.NoError(t, s.See(1, 3))
	require.ErrorIs(t, s.See(1, 2), postgres.ErrNotPrimary)
	require.NoError(t, s.See(1, 3))
	require.ErrorIs(t, s.See(2, 4), postgres.ErrNotPrimary)
	require.NoError(t, s.See(0, 0)) // a role that may not know
	require.ErrorIs(t, s.See(1, 2), postgres.ErrNotPrimary)
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	mine, other, none := [16]byte{1}, [16]byte{2}, [16]byte{}
	c := store.Commit{ID: mine, Thread: "t", Base: 4, Epoch: 2}
	for _, tt := range []struct {
		name            string
		moved           bool
		id              *[16]byte
		revision, epoch int64
		there           bool
		again           bool
		kind            error
	}{
		{name: "moved", moved: true},
		{name: "a repeat", id: &mine, revision: 9, epoch: 7, there: true},
		{name: "another commit", id: &other, revision: 5, epoch: 2, there: true, kind: store.ErrConflict},
		{name: "an older epoch", revision: 4, epoch: 3, there: true, kind: store.ErrFenced},
		{name: "no such thread", kind: store.ErrFenced},
		{name: "seen as before", revision: 4, epoch: 2, there: true, again: true},
	} {
		again, err := postgres.Verdict(c, tt.moved, tt.id, tt.revision, tt.epoch, tt.there)
		require.Equal(t, tt.again, again, tt.name)
		require.ErrorIs(t, err, tt.kind, tt.name)
	}
	c.ID, c.Epoch = none, 0
	_, err := postgres.Verdict(c, false, &none, 5, 0, true)
	require.ErrorIs(t, err, store.ErrConflict, "a commit without an id is no repeat")
	again, err := postgres.Verdict(store.Commit{Thread: "new"}, false, nil, 0, 0, false)
	require.NoError(t, err)
	require.True(t, again, "somebody else made the thread meanwhile")
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// Each statement has as many parameters as it gets arguments, and names the schema.
func TestStatements(t *testing.T) {
	t.Parallel()
	const schema = `odd "{s}" 'x\`
	largest := func(sql string) (n int) {
		for _, m := range parameter.FindAllStringSubmatch(sql, -1) {
			number, _ := strconv.Atoi(m[1])
			n = max(n, number)
		}
		return n
	}
	for n := range 16 {
		c := store.Commit{Thread: "t", Base: uint64(n & 1), Record: []byte("r")}
		if n&2 != 0 {
			c.Snapshot = []byte{}
		}
		if n&4 != 0 {
			c.Effects = []store.Effect{{Lane: "l"}, {Lane: "m"}}
		}
		if n&8 != 0 {
			c.Settles = []store.EffectRef{{Thread: "t"}}
		}
		sql, args := postgres.Statement(schema, c)
		require.Len(t, args, largest(sql), "%s", sql)
		require.Equal(t, c.Base == 0, strings.Contains(sql, "ON CONFLICT"))
		require.Contains(t, sql, postgres.Quote(schema)+".threads")
		require.NotContains(t, strings.ReplaceAll(sql, postgres.Quote(schema), ""), "{s}")
	}
	for _, sql := range postgres.Statements(schema) {
		require.Contains(t, sql, postgres.Quote(schema)+".")
		require.NotContains(t, strings.ReplaceAll(strings.ReplaceAll(sql, postgres.Quote(schema), ""), postgres.Literal(postgres.Quote(schema)+".tokens"), ""), "{")
	}
}

// The statement may go on when the caller has left with its bytes.
func TestArgumentsAreCopies(t *testing.T) {
	t.Parallel()
	c := store.Commit{Thread: "t", Record: []byte("record"), Snapshot: []byte("state"), Effects: []store.Effect{{Lane: "l", Body: []byte("body")}}}
	_, args := postgres.Statement("s", c)
	before := fmt.Sprintf("%s", args)
	for _, b := range [][]byte{c.Record, c.Snapshot, c.Effects[0].Body} {
		clear(b)
	}
	require.Equal(t, before, fmt.Sprintf("%s", args))
}

func TestTimes(t *testing.T) {
	t.Parallel()
	require.Nil(t, postgres.DueOf(time.Time{}))
	at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	require.Equal(t, at, *postgres.DueOf(at))
	require.Equal(t, at, *postgres.DueOf(at.Add(-999)), "never earlier")
	require.Equal(t, at.Add(time.Microsecond), *postgres.DueOf(at.Add(1)))
	require.Equal(t, 200_000, postgres.DueOf(time.Unix(1<<60, 0)).Year())
	require.Equal(t, 1, postgres.DueOf(time.Unix(-1<<60, 0)).Year())
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Microsecond: 1, 1001: 2, -1: 0, -1500: -1, 1<<63 - 1: 9223372036854776} {
		require.Equal(t, want, postgres.Microseconds(d), "%d", d)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	var p postgres.Puzzle
	for _, size := range []int{0, 1, 5900, 5984, 5985, 6000, store.MaxNotice} {
		for _, topic := range []string{"", "t", "a\x00\xff", strings.Repeat("x", postgres.MaxName)} {
			data := []byte(strings.Repeat("\x00\xfe", size))[:size]
			parts := postgres.EncodeNotice(7, topic, data)
			for i, part := range parts {
				require.Less(t, len(part), 8000)
				gotTopic, got, whole := p.Add(part)
				require.Equal(t, i == len(parts)-1, whole)
				if whole {
					require.Equal(t, topic, gotTopic)
					require.Equal(t, string(data), string(got))
				}
			}
		}
	}
	// Parts that are missing, or of another notice, cost that notice only.
	parts := postgres.EncodeNotice(1, "t", make([]byte, 20_000))
	require.Len(t, parts, 4)
	next := postgres.EncodeNotice(2, "t", []byte("next"))[0]
	for lost := range parts {
		for i, part := range parts {
			if i != lost {
				_, _, whole := p.Add(part)
				require.False(t, whole)
			}
		}
		_, data, whole := p.Add(next)
		require.True(t, whole)
		require.Equal(t, "next", string(data))
	}
	require.NotEqual(t, postgres.ChannelOf("a", "bc"), postgres.ChannelOf("ab", "c"))
	require.LessOrEqual(t, len(postgres.ChannelOf("a", strings.Repeat("x", 1000))), 63)
}

func FuzzPuzzle(f *testing.F) {
	f.Add(postgres.EncodeNotice(1, "topic", []byte("data"))[0], "")
	f.Add(postgres.EncodeNotice(1, "topic", make([]byte, 7000))[0], postgres.EncodeNotice(1, "topic", make([]byte, 7000))[1])
	f.Add("AQ", "!")
	f.Fuzz(func(t *testing.T, a, b string) {
		var p postgres.Puzzle
		for range 3 {
			for _, part := range []string{a, b} {
				topic, data, whole := p.Add(part)
				require.True(t, whole || topic == "" && data == nil)
				require.LessOrEqual(t, p.Size(), 3*(len(a)+len(b)))
			}
		}
	})
}

// threeCommits is a thread with a snapshot at revision 2.
func threeCommits() []store.Commit {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_901_234, time.UTC)
	return []store.Commit{
		{ID: [16]byte{1}, Thread: "t", Time: at, Record: []byte("one")},
		{ID: [16]byte{2}, Thread: "t", Base: 1, Time: at, Record: []byte("two"), Snapshot: []byte("state")},
		{ID: [16]byte{3}, Thread: "t", Base: 2, Time: at, Record: []byte("three")},
		{ID: [16]byte{4}, Thread: "t", Base: 3, Record: nil},
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	commits := threeCommits()
	image, err := postgres.Image("t", postgres.RowsOf("t", 3, commits...))
	require.NoError(t, err)
	require.Equal(t, store.Image{
		Revision: 4, Epoch: 3, LastID: [16]byte{4}, Snapshot: []byte("state"), SnapshotAt: 2,
		Tail: []store.Record{
			{Revision: 3, ID: [16]byte{3}, Time: commits[2].Time, Record: []byte("three")},
			{Revision: 4, ID: [16]byte{4}, Record: []byte{}},
		},
	}, image)

	for name, change := range map[string]func(rows []postgres.Row) []postgres.Row{
		"a record is gone":          func(rows []postgres.Row) []postgres.Row { return append(rows[:1], rows[2:]...) },
		"the last record is gone":   func(rows []postgres.Row) []postgres.Row { return append(rows[:2], rows[3:]...) },
		"the snapshot is gone":      func(rows []postgres.Row) []postgres.Row { return rows[:3] },
		"a byte of a record":        func(rows []postgres.Row) []postgres.Row { rows[1].Body[0] ^= 1; return rows },
		"a byte of the snapshot":    func(rows []postgres.Row) []postgres.Row { rows[3].Body[0] ^= 1; return rows },
		"the id of a record":        func(rows []postgres.Row) []postgres.Row { rows[1].ID = &[16]byte{9}; return rows },
		"the time of a record":      func(rows []postgres.Row) []postgres.Row { rows[1].Nanos++; return rows },
		"two records change places": func(rows []postgres.Row) []postgres.Row { rows[1].Revision, rows[2].Revision = 4, 3; return rows },
		"the sum is gone":           func(rows []postgres.Row) []postgres.Row { rows[1].Sum = nil; return rows },
		"no id":                     func(rows []postgres.Row) []postgres.Row { rows[1].ID = nil; return rows },
		"the thread's last id":      func(rows []postgres.Row) []postgres.Row { rows[0].ID = &[16]byte{9}; return rows },
		"the thread's revision":     func(rows []postgres.Row) []postgres.Row { rows[0].Revision = 5; return rows },
		"a revision below 1":        func(rows []postgres.Row) []postgres.Row { rows[0].Revision = 0; return rows },
		"the thread's snapshot":     func(rows []postgres.Row) []postgres.Row { rows[0].SnapshotAt = 1; return rows },
		"the thread's first":        func(rows []postgres.Row) []postgres.Row { rows[0].First = 3; return rows },
		"a record of another thread": func(rows []postgres.Row) []postgres.Row {
			c := threeCommits()[2]
			c.Thread = "u"
			rows[1] = postgres.RowsOf("u", 0, c)[1]
			return rows
		},
	} {
		_, err := postgres.Image("t", change(postgres.RowsOf("t", 3, threeCommits()...)))
		require.ErrorIs(t, err, store.ErrCorrupt, name)
		var corrupt *postgres.CorruptError
		require.ErrorAs(t, err, &corrupt, name)
		require.Equal(t, "t", corrupt.Thread, name)
		require.ErrorContains(t, err, `"t"`, name)
	}
}

// Rows that anything may stand in give an error or what has a sum that fits.
func FuzzImage(f *testing.F) {
	f.Add(int32(2), int64(3), int64(1), int64(2), int32(5), []byte("three"), int32(1), []byte("id"), int64(1))
	f.Add(int32(0), int64(-1), int64(1), int64(9), int32(5), []byte(nil), int32(0), []byte(nil), int64(0))
	f.Fuzz(func(t *testing.T, kind int32, revision, number, snapshotAt int64, nanos int32, body []byte, sum int32, id []byte, first int64) {
		row := postgres.Row{Kind: kind, Revision: revision, Number: number, SnapshotAt: snapshotAt, Nanos: nanos, Body: body, Sum: &sum, First: first}
		row.ID = new([16]byte)
		copy(row.ID[:], id)
		good := postgres.RowsOf("t", 3, threeCommits()...)
		for i := range good {
			rows := append([]postgres.Row{}, good...)
			rows[i] = row
			image, err := postgres.Image("t", rows)
			if err != nil {
				continue
			}
			require.Equal(t, image.Revision-image.SnapshotAt, uint64(len(image.Tail)))
		}
		effect := postgres.EffectRow{Thread: id, Revision: revision, Index: snapshotAt, Lane: body, Seconds: number, Nanos: nanos, Body: body, Sum: sum}
		if _, _, err := effect.Open("s"); err != nil {
			require.ErrorIs(t, err, store.ErrCorrupt)
		}
	})
}

func TestOldestPoint(t *testing.T) {
	t.Parallel()
	at := func(day int) time.Time { return time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC) }
	points := map[int64]time.Time{0: at(1), 3: at(3), 6: at(6), 9: at(9)}
	for _, tt := range []struct {
		policy store.PrunePolicy
		want   int64
	}{
		{store.PrunePolicy{}, 0}, {store.PrunePolicy{KeepSnapshots: 4}, 0}, {store.PrunePolicy{KeepSnapshots: 2}, 6},
		{store.PrunePolicy{Before: at(4)}, 6}, {store.PrunePolicy{Before: at(30)}, 9}, {store.PrunePolicy{KeepSnapshots: 3, Before: at(4)}, 6},
	} {
		require.Equal(t, tt.want, postgres.OldestPoint(tt.policy, points, 0, 3, 6, 9), "%+v", tt.policy)
	}
	require.Zero(t, postgres.OldestPoint(store.PrunePolicy{KeepSnapshots: 1}, points))
	require.Equal(t, int64(9), postgres.OldestPoint(store.PrunePolicy{KeepSnapshots: 1}, points, 9))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	err := &postgres.CorruptError{Schema: "s", Table: "effects", Thread: "t", Revision: 3, Index: 2, Reason: "why"}
	require.Equal(t, `postgres: s.effects is damaged, thread "t", revision 3, index 2: why; restore the database from a copy`, err.Error())
	require.True(t, errors.Is(err, store.ErrCorrupt))
}
