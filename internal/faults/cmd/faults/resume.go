package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/decide"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// checkResume has processes race to resume runs, and kills processes that suspend and
// resume them.
func checkResume(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("resume", flag.ContinueOnError)
	rounds := flags.Int("races", 1000, "waiting runs that two processes resume at the same time")
	threads := flags.Int("threads", 1000, "runs that are suspended and resumed by processes that are killed")
	seed := flags.Uint64("seed", 1, "who is first and when a kill comes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fixpoint-resume-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f := figures{out: stdout, check: fmt.Sprintf("resume seed %d", *seed)}

	start := time.Now()
	r, err := decide.Race(ctx, decide.RaceOptions{Dir: dir, Store: memstore.New(memstore.Options{}), Seed: *seed, Rounds: *rounds})
	f.atLeast("runs raced for by two processes", r.Rounds, *rounds)
	f.tell("decisions delivered", r.Deliveries)
	f.exactly("that won", r.Won, r.Rounds)
	f.tell("that won in the first process", r.WonBy[0])
	f.tell("told that it was applied already", r.Repeated)
	f.tell("refused", r.Refused)
	f.tell("decisions delivered later, which changed nothing", r.Later)
	f.exactly("tool bodies", r.Bodies, r.Rounds)
	f.tell("seconds", int(time.Since(start).Seconds()))
	if err = errors.Join(err, r.Err()); err != nil {
		return err
	}

	start = time.Now()
	k, err := decide.Kill(ctx, decide.KillOptions{Dir: dir, Seed: *seed, Threads: *threads, Lines: 40})
	f.atLeast("runs suspended and resumed", k.Threads, *threads)
	f.tell("kills meanwhile", k.Kills)
	f.tell("resumptions, those after a crash included", k.Resumes)
	f.tell("calls that a kill cut off", k.Interrupted)
	f.exactly("runs lost", k.Lost, 0)
	f.exactly("runs resumed twice", k.Double, 0)
	f.tell("seconds", int(time.Since(start).Seconds()))
	return errors.Join(err, k.Err(), f.err())
}
