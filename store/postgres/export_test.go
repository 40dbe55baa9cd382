package postgres

import (
	"errors"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ddd26017/fixpoint/store"
)

// What the tests of this package look at.
var (
	Quote         = quote
	Literal       = literal
	Parse         = parse
	ChannelOf     = channelOf
	EncodeNotice  = encodeNotice
	DueOf         = dueOf
	Microseconds  = microseconds
	ReadSettings  = readSettings
	NeededBy      = standbysNeeded
	LockNumber    = lockNumber
	OldestServer  = oldestServer
	DefaultSchema = defaultSchema
)

// Puzzle is puzzle.
type Puzzle = puzzle

// Add is puzzle.add.
func (p *puzzle) Add(part string) (string, []byte, bool) { return p.add(part) }

// Size is how much a puzzle holds.
func (p *puzzle) Size() int { return len(p.text) }

// Check is settings.check, and Caps is settings.caps.
func (s settings) Check() error                 { return s.check() }
func (s settings) Caps(maxBytes int) store.Caps { return s.caps(maxBytes) }

// Server is server.
type Server = server

// See is server.see.
func (s *server) See(id, timeline uint64) error { return s.see(id, timeline) }

// Classify names the outcome of an error.
func Classify(err error) string {
	return [...]string{executed: "executed", notExecuted: "not executed", unknown: "unknown", refused: "refused"}[classify(err)]
}

// ConnectAgain reports whether an error says that connecting again may help.
func ConnectAgain(err error) bool { return classifyConnect(err) == notExecuted }

// Translate is Journal.translate for a schema.
func Translate(schema string, answer *pgconn.PgError) error {
	return newJournal(Options{Schema: schema}).translate(answer, "t", 7)
}

// Migrations lists the versions of the migrations in a folder.
func Migrations(files fs.FS) ([]int, error) {
	all, err := migrations(files)
	var versions []int
	for _, m := range all {
		versions = append(versions, m.version)
	}
	return versions, err
}

// Embedded are the migrations that the package has.
var Embedded fs.FS = migrationFiles

// Pending returns how many migrations tables of a version need, of those that there are.
func Pending(known, version int) (int, error) {
	todo, err := pending(make([]migration, known), version)
	return len(todo), err
}

// Statement returns the text for a commit, and its arguments.
func Statement(schema string, c store.Commit) (string, []any) {
	j := newJournal(Options{Schema: schema})
	parts, args := j.appendArgs(c)
	return j.sql.append[parts], args
}

// Statements returns all other texts.
func Statements(schema string) []string {
	s := newStatements(schema)
	return append([]string{
		s.load, s.loadAt, s.threadsAll, s.threadsAfter, s.pruneLock, s.prunePoints, s.pruneRecords, s.pruneSnapshots, s.pruneThread,
		s.acquire, s.leaseOf, s.renew, s.release, s.promote, s.claim, s.settleDone, s.settleDead, s.settleRetry,
		s.lanes, s.depth, s.dead, s.requeue,
	}, s.deleteAll...)
}

// Verdict tells what an answer to an append means.
func Verdict(c store.Commit, moved bool, id *[16]byte, revision, epoch int64, there bool) (again bool, err error) {
	a := appended{moved: moved, id: id}
	if there {
		a.revision, a.epoch = &revision, &epoch
	}
	return a.verdict(c)
}

// Row is a row of a load.
type Row = row

// Image puts rows together.
func Image(thread string, rows []Row) (store.Image, error) {
	head, found := headOf(rows)
	if !found {
		return store.Image{}, errors.New("no thread")
	}
	return newJournal(Options{}).image(thread, head, rows)
}

// RowsOf makes the rows that the server keeps of commits, the newest snapshot first.
func RowsOf(thread string, epoch uint64, commits ...store.Commit) []Row {
	j := newJournal(Options{})
	var snapshot []Row
	var records []Row
	var at int64
	for _, c := range commits {
		parts, args := j.appendArgs(c)
		id, sum := c.ID, args[8].(int32)
		if parts.snapshot {
			sum := args[10].(int32)
			at, records = args[2].(int64), nil
			snapshot = []Row{{Kind: 1, Revision: at, Number: c.Time.Unix(), Nanos: int32(c.Time.Nanosecond()), Body: args[9].([]byte), Sum: &sum}}
			continue
		}
		records = append(records, Row{Kind: 2, Revision: args[2].(int64), Number: c.Time.Unix(), Nanos: int32(c.Time.Nanosecond()), ID: &id, Body: args[7].([]byte), Sum: &sum})
	}
	last := commits[len(commits)-1]
	head := Row{Kind: 0, Revision: int64(last.Base + 1), Number: int64(epoch), ID: &last.ID, SnapshotAt: at, First: 1}
	return append(append([]Row{head}, records...), snapshot...)
}

// EffectRow is a row of the outbox.
type EffectRow = effectRow

// Open checks a row.
func (r effectRow) Open(schema string) (store.EffectRef, store.Effect, error) { return r.open(schema) }

// OldestPoint applies a policy to a thread that begins at a time and has snapshots at others.
func OldestPoint(p store.PrunePolicy, points map[int64]time.Time, revisions ...int64) int64 {
	var all []point
	for _, r := range revisions {
		all = append(all, point{r, points[r].Unix(), int32(points[r].Nanosecond())})
	}
	return oldestPoint(p, all)
}
