//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/crew"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
)

func init() {
	parts = append(parts, crew.Worker, crew.Approver)
	checks["workers"] = checkWorkers
	checks["cut"] = checkCut
	checks["approve"] = checkApprove
}

// shared has the flags of the checks with servers, and calls fn for each server asked for.
type shared struct {
	*storage
	store    *string
	replicas *int
}

func newShared(name string, stdout io.Writer) shared {
	s := newStorage(name, stdout)
	return shared{
		storage: s, store: s.flags.String("store", "all", "postgres, nats or all"),
		replicas: s.flags.Int("replicas", 1, "NATS servers, all in this process"),
	}
}

func (s shared) each(ctx context.Context, fn func(o crew.Options, f *figures) error) error {
	kinds, err := chosen(*s.store, servers.Kinds...)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		err := s.in(func(dir string) (err error) {
			server, err := servers.Start(ctx, kind, dir, *s.replicas)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, server.Close()) }()
			f := &figures{out: s.out, check: fmt.Sprintf("%s %s seed %d", s.flags.Name(), kind, s.seed)}
			began := time.Now()
			err = fn(crew.Options{Dir: dir, Server: server, Name: "crew", Seed: s.seed}, f)
			f.tell("seconds", int(time.Since(began).Seconds()))
			return errors.Join(err, f.err())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWorkers kills workers in three processes that share a server.
func checkWorkers(ctx context.Context, args []string, stdout io.Writer) error {
	s := newShared("workers", stdout)
	o := crew.KillOptions{Workers: 3}
	s.flags.IntVar(&o.Threads, "threads", 1000, "that have a run under way, all the time")
	s.flags.DurationVar(&o.Duration, "for", 10*time.Minute, "how long the kills go on")
	s.flags.DurationVar(&o.Pause, "pause", 5*time.Second, "between two kills, on average")
	s.flags.DurationVar(&o.Lease, "lease", 10*time.Second, "how long a lease lasts")
	s.flags.DurationVar(&o.Think, "think", 5*time.Second, "that a call of the model takes")
	s.flags.DurationVar(&o.Work, "work", 500*time.Millisecond, "that a tool takes")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return s.each(ctx, func(server crew.Options, f *figures) error {
		o := o
		server.Threads, server.Lease = o.Threads, o.Lease
		o.Options = server
		r, err := crew.Kill(ctx, o)
		f.atLeast("kills", r.Kills, 1)
		f.tell("starts of a worker that the server did not answer", r.Restarts)
		f.tell("threads in flight", r.Threads)
		f.tell("runs, all of which ended", r.Runs)
		f.tell("commits of threads", int(r.Commits))
		f.tell("tool calls", r.Calls)
		f.tell("bodies begun", r.Bodies)
		f.exactly("of them although the result was committed", r.Repeated, 0)
		f.tell("calls that a kill cut off and that did not run again", r.Cut)
		f.tell("deliveries of durable effects", r.Delivered)
		f.tell("of them for the second time, with the same id", r.Duplicates)
		f.exactly("durable effects missing", r.Missing, 0)
		f.atLeast("runs that another process went on with", r.TakenUp, 1)
		f.tell("of them later than a lease after the kill", r.Late)
		f.tell("time from a kill until that, of half of them, in ms", int(r.Middle.Milliseconds()))
		f.tell("longest time from a kill until that, in ms", int(r.Orphaned.Milliseconds()))
		f.tell("longest time from a submission to the begin of the run, in ms", int(r.Waited.Milliseconds()))
		return errors.Join(err, r.Err())
	})
}

// checkCut cuts a worker off its server.
func checkCut(ctx context.Context, args []string, stdout io.Writer) error {
	s := newShared("cut", stdout)
	o := crew.CutOptions{}
	s.flags.IntVar(&o.Rounds, "rounds", 20, "how often a worker is cut off")
	s.flags.IntVar(&o.Threads, "threads", 20, "that it has under way then")
	s.flags.BoolVar(&o.Namespace, "namespace", true, "cut the wire of a network namespace, which needs root; else a proxy")
	s.flags.DurationVar(&o.Lease, "lease", 3*time.Second, "how long a lease lasts")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return s.each(ctx, func(server crew.Options, f *figures) error {
		o := o
		server.Threads, server.Lease = o.Threads, o.Lease
		o.Options = server
		r, err := crew.Cut(ctx, o)
		f.atLeast("times a worker was cut off", r.Rounds, o.Rounds)
		f.tell("of them back while the other worker was still at it", r.During)
		f.tell("threads that it had under way", r.Threads)
		f.atLeast("of them taken over", r.TakenOver, 1)
		f.exactly("results of the cut-off worker in their state after that", r.Stale, 0)
		f.tell("bodies that it began while cut off", r.Meanwhile)
		f.atLeast("its runs that ended as fenced off", int(r.Fenced), 1)
		f.tell("bodies that it began after another worker had committed the result", r.Undead)
		f.exactly("bodies that another worker began although the result was committed", r.Repeated, 0)
		f.exactly("durable effects missing", r.Missing, 0)
		f.tell("deliveries for the second time, with the same id", r.Duplicates)
		f.tell("longest time from the cut until a run went on, in ms", int(r.Orphaned.Milliseconds()))
		return errors.Join(err, r.Err())
	})
}

// checkApprove has other processes answer for people, and others finish.
func checkApprove(ctx context.Context, args []string, stdout io.Writer) error {
	s := newShared("approve", stdout)
	threads := s.flags.Int("threads", 1000, "runs that wait for a person")
	lease := s.flags.Duration("lease", 3*time.Second, "how long a lease lasts")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return s.each(ctx, func(o crew.Options, f *figures) error {
		o.Threads, o.Lease = *threads, *lease
		r, err := crew.Approve(ctx, o)
		f.atLeast("runs that waited", r.Threads, *threads)
		f.tell("kills, before all waited and of an approver", r.Kills)
		f.atLeast("answers delivered", r.Deliveries, 2**threads)
		f.tell("activations that they were", r.Distinct)
		f.tell("of them refused", r.Refused)
		f.exactly("runs finished by another process than those that suspended them", r.Owners, *threads)
		f.exactly("runs lost", r.Lost, 0)
		f.exactly("runs that went on twice", r.Double, 0)
		f.exactly("durable effects missing", r.Missing, 0)
		return errors.Join(err, r.Err())
	})
}
