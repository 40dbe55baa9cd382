package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// ErrSchemaNewer is returned by Open and Migrate for tables that a newer version of this
// package has made.
var ErrSchemaNewer = errors.New("postgres: the tables are of a newer version of the store; upgrade this program")

// ErrSchemaOlder is returned by Open for tables that are missing or old, when
// Options.NoMigrate forbids to make them.
var ErrSchemaOlder = errors.New("postgres: the tables are missing or of an older version; run postgres.Migrate with a role that may create them")

// migration makes version of the tables out of the version before.
type migration struct {
	version int
	sql     string
}

// migrations reads the files of a folder, whose names begin with their version. There is
// none missing, and they are in order.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	var all []migration
	for i, name := range names { // sorted
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("postgres: migration %s has not the number %04d", name, i+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("postgres: %w", err)
		}
		all = append(all, migration{version, string(text)})
	}
	return all, nil
}

// pending returns those that a schema at a version still needs.
func pending(all []migration, version int) ([]migration, error) {
	if version > len(all) {
		return nil, fmt.Errorf("%w: they have version %d, and this program knows %d", ErrSchemaNewer, version, len(all))
	}
	return all[version:], nil
}

// lockNumber is what an advisory lock for a schema is called.
func lockNumber(schema string) int64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte("fixpoint store " + schema))
	return int64(sum.Sum64())
}

// migrate brings the tables to the version that this program knows, under a lock, so that
// processes that start at the same time do it once. With only set it changes nothing and
// tells whether there is something to do.
func migrate(ctx context.Context, conn *pgx.Conn, schema string, only bool) error {
	all, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	version, err := schemaVersion(ctx, conn, schema)
	if err != nil {
		return err
	}
	todo, err := pending(all, version)
	switch {
	case err != nil || len(todo) == 0:
		return err
	case only:
		return fmt.Errorf("%w: schema %s has version %d, and this program wants %d", ErrSchemaOlder, schema, version, len(all))
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("postgres: migrate schema %s: %w", schema, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
	if err := migrateIn(ctx, tx, schema, all); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("postgres: migrate schema %s: %w", schema, err)
	}
	return nil
}

func migrateIn(ctx context.Context, tx pgx.Tx, schema string, all []migration) error {
	fail := func(err error) error { return fmt.Errorf("postgres: migrate schema %s: %w", schema, err) }
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockNumber(schema)); err != nil {
		return fail(err)
	}
	version, err := schemaVersion(ctx, tx, schema) // somebody else may have been here
	if err != nil {
		return err
	}
	todo, err := pending(all, version)
	if err != nil {
		return err
	}
	quoted := quote(schema)
	var there bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema).Scan(&there); err != nil {
		return fail(err)
	}
	if !there { // CREATE IF NOT EXISTS wants the right to create even when there is nothing to do
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+quoted); err != nil {
			return fail(err)
		}
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+quoted); err != nil {
		return fail(err)
	}
	if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"); err != nil {
		return fail(err)
	}
	for _, m := range todo {
		if _, err := tx.Exec(ctx, m.sql); err != nil {
			return fmt.Errorf("postgres: migrate schema %s to version %d: %w", schema, m.version, err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO migrations (version) VALUES ($1)", m.version); err != nil {
			return fail(err)
		}
	}
	return nil
}

// schemaVersion returns the version of the tables, 0 where there are none.
func schemaVersion(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, schema string,
) (version int, err error) {
	var there bool
	err = q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'migrations')", schema).Scan(&there)
	if err == nil && there {
		err = q.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+quote(schema)+".migrations").Scan(&version)
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: read the version of schema %s: %w", schema, err)
	}
	return version, nil
}
