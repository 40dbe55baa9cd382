// Package crash checks what a kill of the process leaves of agents that are kept in
// store/bolt. A child process runs several threads at once: steps with several tool
// calls, in sequence and in parallel, commands, actions, effects, approvals. It is
// killed with SIGKILL again and again, at any moment, also while it recovers. It tells
// its parent of each acknowledged commit, each body that begins, and each effect
// delivered; after each kill the parent compares that with the store.
package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// Options says how much to do.
type Options struct {
	Dir   string // where the store goes
	Seed  uint64
	Kills int
	Lanes int // threads at once
	Lines int // a process is killed before it has told more than about so many

	// Forgetful has the store acknowledge what it does not keep yet: a control, in which
	// the check must find what is lost.
	Forgetful bool
}

// Report is what was found. The check failed when Faults is not empty.
type Report struct {
	Kills      int
	Early      int // of them before the store was open again
	Threads    int // that had all their runs
	Acks       int // acknowledged commits
	Lost       int // of them not in the store, or changed
	Bodies     int // of tools that began
	Results    int // of calls
	Expired    int // tickets that nobody had answered in time
	Repeated   int // bodies that began although their result was committed
	Delivered  int // deliveries of durable effects
	Duplicates int // of them for the second time or later, with the same id
	Refused    int // deliveries that the handler refused
	Missing    int // durable effects never delivered
	Faults     []string
	count      int
}

const mostFaults = 20

// Err returns the faults as an error, nil for none.
func (r *Report) Err() error {
	if r.count == 0 {
		return nil
	}
	errs := []error{fmt.Errorf("crash: %d faults", r.count)}
	for _, f := range r.Faults {
		errs = append(errs, errors.New(f))
	}
	return errors.Join(errs...)
}

// boss is the parent.
type boss struct {
	Options
	path   string
	keys   *keys
	random *rand.Rand // picks moments
	sample *rand.Rand // picks what is looked at closely, which depends on how far workers came
	rep    *Report
	books  map[string]*book
	closed map[string]bool
	next   []int // by lane, the first thread that has runs to come
	starts int
}

// Run kills a worker so often, lets a last one finish, and tells what was found. The
// error is of the check itself, or of a worker that failed; see also Report.Err.
func Run(ctx context.Context, o Options) (*Report, error) {
	b := &boss{
		Options: o, path: filepath.Join(o.Dir, "threads.db"), keys: newKeys(),
		random: rand.New(rand.NewPCG(o.Seed, 1)), sample: rand.New(rand.NewPCG(o.Seed, 5)), rep: &Report{},
		books: map[string]*book{}, closed: map[string]bool{}, next: make([]int, o.Lanes),
	}
	for b.rep.Kills < o.Kills {
		if err := b.start(ctx, false); err != nil {
			return b.rep, fmt.Errorf("crash: kill %d: %w", b.rep.Kills, err)
		}
		if err := b.audit(ctx); err != nil || len(b.rep.Faults) >= mostFaults {
			return b.rep, err
		}
	}
	if err := b.start(ctx, true); err != nil {
		return b.rep, fmt.Errorf("crash: the last worker: %w", err)
	}
	if err := b.audit(ctx); err != nil {
		return b.rep, err
	}
	for _, k := range b.books {
		k.close(b.rep)
	}
	return b.rep, nil
}

// start starts a worker and hears it until it ends, which it does by a kill unless it
// is the last.
func (b *boss) start(ctx context.Context, last bool) error {
	cmd, err := Worker.Command(ctx)
	if err != nil {
		return err
	}
	p, err := talk.Start(cmd)
	if err != nil {
		return err
	}
	job := job{Path: b.path, Seed: b.Seed, Start: b.starts, Lanes: slices.Clone(b.next), Last: last, Forgetful: b.Forgetful}
	b.starts++
	left, pause := b.moment()
	if err := p.Tell(job); err != nil {
		return errors.Join(err, p.Kill())
	}
	ready := false
	for n := 0; ; n++ {
		if n == left && !last {
			time.Sleep(pause) // a moment between two lines
			if err := p.Kill(); err != nil {
				return err
			}
		}
		var l line
		if err := p.Hear(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(err, p.Kill())
		}
		ready = ready || l.Kind == lineReady
		if l.Thread != "" {
			b.book(l.Thread).hear(l, b.rep)
		}
	}
	killed, err := p.Gone()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case last && killed:
		return errors.New("somebody killed it")
	case last:
		return nil
	case !killed:
		return errors.New("the worker ended by itself")
	}
	b.rep.Kills++
	if !ready {
		b.rep.Early++
	}
	return nil
}

// moment picks when the next kill comes: after how many lines, and how much later. One
// in ten comes before the worker has opened the store or done much of its recovery.
func (b *boss) moment() (lines int, pause time.Duration) {
	pause = time.Duration(b.random.IntN(1500)) * time.Microsecond
	switch b.random.IntN(20) {
	case 0:
		return 0, pause * 10
	case 1:
		return 1 + b.random.IntN(8), pause
	default:
		return 1 + b.random.IntN(b.Lines), pause
	}
}

func (b *boss) book(thread string) *book {
	k := b.books[thread]
	if k == nil {
		k = newBook(thread)
		b.books[thread] = k
	}
	return k
}

// audit opens the store as the next process would and checks all threads in it. It
// deletes threads that nothing more will come of.
func (b *boss) audit(ctx context.Context) (err error) {
	journal, err := bolt.Open(b.path, bolt.Options{Now: clock(b.starts)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	eng, err := engine.New(config(b.keys, journal, nil, b.Seed, b.starts))
	if err != nil {
		return err
	}
	ids, err := journal.Threads(ctx, "", 1<<20)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b.book(id)
	}
	for id, k := range b.books {
		t, err := eng.OpenThread(ctx, id)
		if err != nil {
			return err
		}
		if err := k.audit(ctx, b.keys, t, b.sample, b.rep); err != nil {
			return err
		}
		if !k.whole || len(k.missing()) > 0 {
			continue
		}
		if err := journal.Delete(ctx, id); err != nil {
			return err
		}
		k.close(b.rep)
		delete(b.books, id)
		b.closed[id] = true
	}
	for lane := range b.next {
		for b.over(threadName(lane, b.next[lane])) {
			b.next[lane]++
		}
	}
	return nil
}

// over reports whether a thread has had all its runs.
func (b *boss) over(id string) bool { return b.closed[id] || b.books[id] != nil && b.books[id].whole }
