package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/zombie"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// checkZombie stops owners of threads for longer than their leases last.
func checkZombie(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("zombie", flag.ContinueOnError)
	o := zombie.Options{Store: memstore.New(memstore.Options{})}
	flags.IntVar(&o.Rounds, "rounds", 500, "takeovers to see")
	flags.Uint64Var(&o.Seed, "seed", 1, "when an owner is stopped and when it goes on")
	flags.DurationVar(&o.Lease, "lease", 50*time.Millisecond, "how long a lease lasts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "fixpoint-zombie-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	start := time.Now()
	rep, err := zombie.Run(ctx, o)
	f := figures{out: stdout, check: fmt.Sprintf("zombie seed %d", o.Seed)}
	f.atLeast("takeovers", rep.Rounds, o.Rounds)
	f.tell("of them with the zombie back before the run was over", rep.During)
	f.tell("rounds in which the run was over before", rep.Void)
	f.tell("commits to threads that were taken over", rep.Commits)
	f.exactly("of them by a zombie after the takeover", rep.ByZombies, 0)
	f.exactly("runs of zombies that ended as fenced off", rep.Fenced, rep.Rounds)
	f.tell("deliveries of durable effects", rep.Delivered)
	f.tell("of them for the second time, with the same id", rep.Duplicates)
	f.exactly("durable effects missing", rep.Missing, 0)
	f.tell("seconds", int(time.Since(start).Seconds()))
	return errors.Join(err, rep.Err(), f.err())
}
