//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
)

// A primary with a standby that its commits wait for, to see what a program does when the
// primary dies.
func Example_failover() {
	ctx := context.Background()
	primary, err := postgrestest.Start(ctx, postgrestest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer primary.Close()
	standby, err := primary.Standby(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer standby.Close()
	if err := primary.Set("synchronous_standby_names", `"`+standby.Name()+`"`); err != nil {
		log.Fatal(err)
	}
	journal, err := postgres.Open(ctx, postgrestest.MultiDSN(primary, standby), postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Close()
	_ = primary.Kill()
	if err := standby.Promote(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(journal.Append(ctx, store.Commit{ID: [16]byte{1}, Thread: "t1"}))
}
