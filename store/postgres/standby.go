package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
)

// Status is what a server says about how it keeps commits.
type Status struct {
	Version      int    // such as 150018
	Commit       string // synchronous_commit of the store's sessions
	Fsync        bool
	FullPages    bool   // full_page_writes
	StandbyNames string // synchronous_standby_names
	Needed       int    // standbys that a commit waits for, by StandbyNames
	Timeline     uint64 // rises with each promotion; 0 where the role may not know it
	Standbys     []Standby
}

// Standby is one that is connected to the primary.
type Standby struct {
	Name  string // its application_name
	State string // such as "streaming"; "" where the role lacks pg_monitor
	Sync  string // "sync", "quorum", "potential" or "async"; "" where the role lacks pg_monitor
}

// Connected returns how many standbys are connected that commits may wait for. When there
// are fewer than Needed, commits wait until there are more.
func (s Status) Connected() (n int) {
	for _, standby := range s.Standbys {
		if standby.State == "streaming" && (standby.Sync == "sync" || standby.Sync == "quorum") {
			n++
		}
	}
	return n
}

// Status asks the server for the settings and standbys that decide what an acknowledged
// commit survives.
func (j *Journal) Status(ctx context.Context) (Status, error) {
	var s Status
	err := j.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		s = Status{}
		err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, current_setting('synchronous_commit'),
			current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', current_setting('synchronous_standby_names')`).
			Scan(&s.Version, &s.Commit, &s.Fsync, &s.FullPages, &s.StandbyNames)
		if err != nil {
			return err
		}
		if _, s.Timeline, err = identity(ctx, conn.PgConn()); err != nil {
			return err
		}
		rows, err := conn.Query(ctx, "SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(sync_state, '') FROM pg_stat_replication ORDER BY 1")
		if err != nil {
			return err
		}
		s.Standbys, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Standby])
		return err
	})
	if err != nil {
		return Status{}, fmt.Errorf("postgres: status: %w", err)
	}
	s.Needed = standbysNeeded(s.StandbyNames)
	return s, nil
}

// standbysNeeded reads from synchronous_standby_names how many standbys a commit waits for:
// "FIRST 2 (a, b, c)", "ANY 2 (a, b, c)", "2 (a, b, c)", or "a, b", which waits for one.
func standbysNeeded(names string) int {
	words := strings.FieldsFunc(strings.TrimSpace(names), func(r rune) bool { return unicode.IsSpace(r) || r == '(' })
	if len(words) == 0 {
		return 0
	}
	if !strings.ContainsRune(names, '(') {
		return 1
	}
	number := words[0]
	if len(words) > 1 && (strings.EqualFold(number, "FIRST") || strings.EqualFold(number, "ANY")) {
		number = words[1]
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 1 // a list of names that are quoted and hold a bracket
	}
	return n
}
