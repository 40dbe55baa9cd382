package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
)

// The examples need a server, so they are compiled only.

func Example() {
	ctx := context.Background()
	journal, err := postgres.Open(ctx, "postgres://app@db1,db2/app?target_session_attrs=read-write", postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Close()
	if caps := journal.Caps(); !caps.Synced || caps.Replicas < 2 {
		log.Print("an acknowledged commit does not survive the loss of the primary")
	}

	commit := store.Commit{ID: [16]byte{1}, Thread: "t1", Record: []byte("\x01hello")}
	revision, err := journal.Append(ctx, commit)
	if errors.Is(err, store.ErrUnknownOutcome) {
		revision, err = journal.Append(ctx, commit) // the same id: it lands at most once
	}
	fmt.Println(revision, err)
}

// What a connection string cannot say, such as a password that is made anew for each
// connection, goes into the configuration of the pool.
func ExampleNew() {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig("host=db1,db2 user=app dbname=app target_session_attrs=read-write pool_max_conns=32")
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConnLifetime = 15 * time.Minute
	journal, err := postgres.New(ctx, config, postgres.Options{Schema: "agents", NoMigrate: true})
	switch {
	case errors.Is(err, postgres.ErrSchemaOlder):
		log.Fatal("run the program that migrates first")
	case err != nil:
		log.Fatal(err)
	}
	defer journal.Close()
}
