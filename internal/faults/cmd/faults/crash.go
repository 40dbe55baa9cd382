package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/crash"
)

// checkCrash kills processes that run agents on store/bolt.
func checkCrash(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	o := crash.Options{}
	flags.IntVar(&o.Kills, "kills", 1000, "how often a process is killed")
	flags.Uint64Var(&o.Seed, "seed", 1, "what the agents do and when a kill comes")
	flags.IntVar(&o.Lanes, "threads", 4, "threads that run at once")
	flags.IntVar(&o.Lines, "lines", 400, "a process lives for at most about so many commits, bodies and effects")
	acks := flags.Int("acks", 100_000, "acknowledged commits to reach")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "fixpoint-crash-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	start := time.Now()
	rep, err := crash.Run(ctx, o)
	f := figures{out: stdout, check: fmt.Sprintf("crash seed %d", o.Seed)}
	f.atLeast("kills", rep.Kills, o.Kills)
	f.tell("of them before the store was open", rep.Early)
	f.atLeast("acknowledged commits", rep.Acks, *acks)
	f.exactly("of them lost", rep.Lost, 0)
	f.tell("tool calls with a result", rep.Results)
	f.tell("tool bodies begun", rep.Bodies)
	f.exactly("of them although the result was committed", rep.Repeated, 0)
	f.tell("tickets that ran out", rep.Expired)
	f.tell("deliveries of durable effects", rep.Delivered)
	f.tell("of them for the second time, with the same id", rep.Duplicates)
	f.exactly("durable effects missing", rep.Missing, 0)
	f.tell("seconds", int(time.Since(start).Seconds()))
	return errors.Join(err, rep.Err(), f.err())
}
