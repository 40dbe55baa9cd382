package decide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/desk"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// Clerk is the child process of Kill.
var Clerk = child.Part{Name: "decide clerk", Run: clerk}

// KillOptions says how much Kill is to do.
type KillOptions struct {
	Dir     string // where the store goes
	Seed    uint64
	Threads int
	Lines   int // a process is killed before it has told more than so many
}

// KillReport is what Kill found. The check failed when Faults is not empty.
type KillReport struct {
	Threads     int
	Kills       int // while runs were suspended, and while they were resumed
	Resumes     int
	Lost        int // runs that waited and were not there later
	Double      int // runs whose tool began twice
	Interrupted int // runs whose tool's body a kill cut off
	Faults      []string
}

// Err returns the faults as an error, nil for none.
func (r *KillReport) Err() error { return join(r.Faults) }

// clerkJob is what a clerk is to do: run the threads from From on until they wait, or
// decide about them.
type clerkJob struct {
	Path    string `json:"path"`
	Process int    `json:"process"`
	From    int    `json:"from"`
	Threads int    `json:"threads"`
	Decide  bool   `json:"decide"`
}

func clerk(ctx context.Context, _ []string) (err error) {
	var j clerkJob
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return fmt.Errorf("decide: read the job: %w", err)
	}
	journal, err := bolt.Open(j.Path, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	say := talk.NewVoice(os.Stdout)
	eng, err := engine.New(config(newDesk(fmt.Sprintf("process %d", j.Process), say), journal, say, ""))
	if err != nil {
		return err
	}
	var next atomic.Int64
	next.Store(int64(j.From))
	const desks = 4
	ended := make(chan error, desks)
	for range desks {
		go func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= j.Threads {
					ended <- nil
					return
				}
				if err := serve(ctx, eng, n, j.Decide, say); err != nil {
					ended <- fmt.Errorf("%s: %w", threadName(n), err)
					return
				}
			}
		}()
	}
	for range desks {
		if err := <-ended; err != nil {
			return err
		}
	}
	say.Say(line{Kind: lineIdle})
	_, err = io.Copy(io.Discard, os.Stdin) // until it is killed, or its parent is gone
	return errors.Join(err, eng.Close(ctx))
}

func threadName(n int) string { return fmt.Sprintf("thread-%06d", n) }

// serve brings one thread to where it waits, or over its end.
func serve(ctx context.Context, eng *engine.Engine, n int, decide bool, say *talk.Voice) error {
	t, err := eng.OpenThread(ctx, threadName(n))
	if err != nil {
		return err
	}
	for {
		status := phase.RunLifecycle.Get(t.Snapshot()).Status
		var res *engine.Result
		switch {
		case status == phase.Waiting && !decide:
			say.Say(line{Kind: lineWaits, Thread: t.ID(), Status: status})
			return nil
		case status == phase.Waiting:
			res, err = t.Resume(ctx, desk.Spec, engine.Input{}, decision("yes"))
		case status == phase.Running:
			res, err = t.Resume(ctx, desk.Spec, engine.Input{})
		case status == phase.Done:
			// Its decision may have come from a process that was killed: it comes again.
			before := t.Snapshot().Revision()
			if _, err := t.Resume(ctx, desk.Spec, engine.Input{}, decision("yes")); err != nil {
				return err
			}
			if t.Snapshot().Revision() != before {
				return errors.New("a decision that was applied changed the thread")
			}
			say.Say(line{Kind: lineDone, Thread: t.ID(), Status: status})
			return nil
		case decide:
			say.Say(line{Kind: lineWaits, Thread: t.ID(), Status: status}) // it did, and it is lost
			return nil
		default:
			in := engine.Prompt("go")
			in.RunID = "run of " + t.ID()
			res, err = t.Run(ctx, desk.Spec, in)
		}
		if err = errors.Join(err, resultErr(res)); err != nil {
			return err
		}
	}
}

func resultErr(res *engine.Result) error {
	if res == nil {
		return nil
	}
	return res.Err
}

// killer is the parent.
type killer struct {
	KillOptions
	path      string
	random    *rand.Rand
	rep       *KillReport
	processes int
	bodies    map[string]int
	waits     map[string]bool
	done      map[string]bool
}

// Kill suspends the runs and resumes them, by processes of which each is killed: those
// that have nothing left to do as well. The error is of the check itself or of a process that failed; see also
// KillReport.Err.
func Kill(ctx context.Context, o KillOptions) (*KillReport, error) {
	k := &killer{
		KillOptions: o, path: filepath.Join(o.Dir, "threads.db"), random: rand.New(rand.NewPCG(o.Seed, 4)),
		rep: &KillReport{Threads: o.Threads}, bodies: map[string]int{}, waits: map[string]bool{}, done: map[string]bool{},
	}
	for _, stage := range []struct {
		decide bool
		over   map[string]bool
	}{{false, k.waits}, {true, k.done}} {
		for len(stage.over) < o.Threads && len(k.rep.Faults) == 0 {
			if err := k.process(ctx, stage.decide, stage.over); err != nil {
				return k.rep, err
			}
		}
	}
	return k.rep, k.audit(ctx)
}

// process starts a clerk and kills it.
func (k *killer) process(ctx context.Context, decide bool, over map[string]bool) error {
	cmd, err := Clerk.Command(ctx)
	if err != nil {
		return err
	}
	p, err := talk.Start(cmd)
	if err != nil {
		return err
	}
	from := 0
	for over[threadName(from)] {
		from++
	}
	k.processes++
	job := clerkJob{Path: k.path, Process: k.processes, From: max(0, from-2), Threads: k.Threads, Decide: decide}
	if err := p.Tell(job); err != nil {
		return errors.Join(err, p.Kill())
	}
	left, pause := 6+k.random.IntN(k.Lines), time.Duration(k.random.IntN(1500))*time.Microsecond
	idle := false
	for n := 0; ; n++ {
		if n == left || idle {
			time.Sleep(pause) // a moment between two lines
			if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
		}
		var l line
		if err := p.Hear(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(err, p.Kill())
		}
		idle = l.Kind == lineIdle
		k.hear(l)
	}
	killed, err := p.Gone()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && !killed:
		return errors.New("decide: a clerk ended by itself")
	}
	k.rep.Kills++
	return err
}

func (k *killer) hear(l line) {
	switch l.Kind {
	case lineBody:
		if k.bodies[l.Thread]++; k.bodies[l.Thread] > 1 {
			k.rep.Double++
			k.fault("%s: the tool ran again", l.Thread)
		}
	case lineGoes:
		k.rep.Resumes++
	case lineWaits:
		if l.Status != phase.Waiting {
			k.rep.Lost++
			k.fault("%s: its run waited and is gone", l.Thread)
		}
		k.waits[l.Thread] = true
	case lineDone:
		k.done[l.Thread] = true
	}
}

// audit checks what the store has in the end.
func (k *killer) audit(ctx context.Context) (err error) {
	journal, err := bolt.Open(k.path, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	d := desk.New("parent")
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{d}, Model: desk.Script(desk.Gated, 1, 1), Journal: journal})
	if err != nil {
		return err
	}
	for n := range k.Threads {
		id := threadName(n)
		t, err := eng.OpenThread(ctx, id)
		if err != nil {
			return err
		}
		snap := t.Snapshot()
		results, outcomes, err := desk.Results(snap)
		l := phase.RunLifecycle.Get(snap)
		if err != nil || len(results) != 1 || l.Status != phase.Done || l.Run != "run of "+id {
			k.rep.Lost++
			k.fault("%s: %+v, %d calls: %v", id, l, len(results), err)
		}
		works := 0
		for _, e := range d.Ledger(snap) {
			if e.What == "call 0.0" {
				works++
			}
		}
		switch o := outcomes["0.0"]; {
		case o == inference.OutcomeOK && works == 1 && k.bodies[id] == 1:
		case o == inference.OutcomeCancelled && works == 0:
			k.rep.Interrupted++ // the body may have begun or not
		default:
			k.fault("%s: the call ended with %q, its work was committed %d times, its body ran %d times", id, o, works, k.bodies[id])
		}
	}
	return nil
}

func (k *killer) fault(format string, args ...any) {
	k.rep.Faults = append(k.rep.Faults, fmt.Sprintf(format, args...))
}
