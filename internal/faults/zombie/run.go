// Package zombie checks that a process which was taken for dead cannot write any more.
// Two processes use one store. One of them runs a thread and is stopped in the middle
// of it, for longer than its lease; the other one takes the thread over and finishes
// the run; the first goes on, while the other one is still at it or after that.
package zombie

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/desk"
	"github.com/ddd26017/fixpoint/internal/faults/served"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
)

// Options says how much to do.
type Options struct {
	Dir    string // for the socket
	Store  served.Store
	Seed   uint64
	Rounds int           // takeovers to see
	Lease  time.Duration // how long a lease lasts
}

// Report is what was found. The check failed when Faults is not empty.
type Report struct {
	Rounds     int // takeovers
	During     int // of them with the zombie back before the new owner had finished
	Void       int // the run was over before its owner was stopped
	Commits    int // to threads that were taken over
	ByZombies  int // of them by a former owner after the takeover
	Fenced     int // runs that ended because their owner was fenced off
	Delivered  int // deliveries of durable effects
	Duplicates int // of them for the second time, with the same id
	Missing    int // durable effects not delivered
	Faults     []string
}

// Err returns the faults as an error, nil for none.
func (r *Report) Err() error {
	var errs []error
	for _, f := range r.Faults {
		errs = append(errs, errors.New("zombie: "+f))
	}
	return errors.Join(errs...)
}

func (r *Report) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

const mostFaults = 20

type boss struct {
	Options
	server *served.Server
	random *rand.Rand
	peers  [2]*talk.Peer
	desk   *desk.Desk
	eng    *engine.Engine // to look at threads
	rep    *Report
}

func owner(i int) string { return fmt.Sprintf("owner-%d", i) }

// Run runs rounds until there were so many takeovers. The error is of the check
// itself; see also Report.Err.
func Run(ctx context.Context, o Options) (rep *Report, err error) {
	b := &boss{Options: o, random: rand.New(rand.NewPCG(o.Seed, 2)), desk: desk.New("parent"), rep: &Report{}}
	socket := filepath.Join(o.Dir, "store")
	if b.server, err = served.Serve(socket, o.Store); err != nil {
		return b.rep, err
	}
	defer func() { err = errors.Join(err, b.server.Close()) }()
	if b.eng, err = engine.New(config(b.desk, o.Store, engine.Config{})); err != nil {
		return b.rep, err
	}
	for i := range b.peers {
		cmd, err := Worker.Command(ctx)
		if err != nil {
			return b.rep, err
		}
		if b.peers[i], err = talk.Start(cmd); err != nil {
			return b.rep, err
		}
		if err := b.peers[i].Tell(job{Socket: socket, Owner: owner(i), Lease: o.Lease}); err != nil {
			return b.rep, err
		}
	}
	for round := 0; b.rep.Rounds < o.Rounds && err == nil && len(b.rep.Faults) < mostFaults; round++ {
		err = b.round(ctx, fmt.Sprintf("thread-%d", round))
	}
	for _, p := range b.peers {
		if err != nil {
			err = errors.Join(err, p.Kill()) // it may be stopped
		}
		_ = p.Hush()
		_, gone := p.Gone()
		err = errors.Join(err, gone)
	}
	return b.rep, err
}

// story is what was heard about a thread.
type story struct {
	thread string
	sent   map[desk.Entry]string // effects delivered, by the id
	ends   [2]line
}

// hear reads lines of a worker until one of that kind, or its end of the order.
func (b *boss) hear(s *story, i int, kind string) (line, error) {
	for {
		var l line
		if err := b.peers[i].Hear(&l); err != nil {
			_, gone := b.peers[i].Gone()
			return l, errors.Join(err, gone)
		}
		if l.Thread != s.thread {
			return l, fmt.Errorf("zombie: %s tells of %s instead of %s", owner(i), l.Thread, s.thread)
		}
		if l.Kind == lineSent {
			b.rep.Delivered++
			id, again := s.sent[l.Entry]
			if again {
				b.rep.Duplicates++
			}
			if again && id != l.ID {
				b.rep.fault("%s: the effect of %+v came as %s and as %s", s.thread, l.Entry, id, l.ID)
			}
			s.sent[l.Entry] = l.ID
		}
		if l.Kind == lineEnd {
			s.ends[i] = l
		}
		if l.Kind == kind || l.Kind == lineEnd {
			return l, nil
		}
	}
}

// round has one owner stopped in a run and the other take over.
func (b *boss) round(ctx context.Context, thread string) error {
	old := b.random.IntN(2)
	now := 1 - old
	during := b.random.IntN(2) == 0
	s := &story{thread: thread, sent: map[desk.Entry]string{}}
	parallel := b.random.IntN(2) == 0
	if err := b.peers[old].Tell(order{Thread: thread, Parallel: parallel}); err != nil {
		return err
	}
	told := []string{lineBody, lineSent}[b.random.IntN(2)]
	for range 1 + b.random.IntN(steps*calls-1) {
		l, err := b.hear(s, old, told)
		if err != nil {
			return err
		}
		if l.Kind == lineEnd {
			return fmt.Errorf("zombie: the run ended early: %+v", l)
		}
	}
	if b.random.IntN(4) > 0 {
		time.Sleep(time.Duration(b.random.IntN(800)) * time.Microsecond) // anywhere in what follows
	}
	if err := stop(b.peers[old].Pid()); err != nil {
		return fmt.Errorf("zombie: stop %s: %w", owner(old), err)
	}
	if err := b.peers[now].Tell(order{Thread: thread, Take: true, Parallel: parallel}); err != nil {
		return err
	}
	kind := lineEnd
	if during {
		kind = lineGoes
	}
	if _, err := b.hear(s, now, kind); err != nil {
		return err
	}
	if err := proceed(b.peers[old].Pid()); err != nil {
		return err
	}
	for _, i := range []int{old, now} {
		for s.ends[i].Kind == "" {
			if _, err := b.hear(s, i, lineEnd); err != nil {
				return err
			}
		}
	}
	return b.judge(ctx, s, old, now, during)
}

// judge compares what was heard with what the store has.
func (b *boss) judge(ctx context.Context, s *story, old, now int, during bool) error {
	takeover := -1
	log := b.server.Log(s.thread)
	for i, e := range log {
		if e.Lease && e.Client == owner(now) && takeover < 0 {
			takeover = i
		}
		if takeover >= 0 && e.Client != owner(now) {
			b.rep.ByZombies++
			b.rep.fault("%s: %s made revision %d after %s had taken the lease", s.thread, e.Client, e.Revision, owner(now))
		}
	}
	end := s.ends[old]
	if takeover < 0 || s.ends[now].Waited == 0 && end.Error == "" {
		b.rep.Void++
		if end.Status != phase.Done || end.Error != "" {
			b.rep.fault("%s: nobody took over, and the run ended so: %+v", s.thread, end)
		}
	} else {
		b.rep.Rounds++
		b.rep.Commits += len(log)
		if during {
			b.rep.During++
		}
		switch {
		case end.Fenced:
			b.rep.Fenced++
		default:
			b.rep.fault("%s: the run was taken over and ended so: %+v", s.thread, end)
		}
		if end.Written {
			b.rep.fault("%s: a zombie could write after its run", s.thread)
		}
	}
	if e := s.ends[now]; e.Status != phase.Done || e.Error != "" {
		b.rep.fault("%s: the new owner ended so: %+v", s.thread, e)
	}
	b.server.Forget()
	t, err := b.eng.OpenThread(ctx, s.thread)
	if err != nil {
		return err
	}
	b.look(s, t, old, now)
	return b.Store.Delete(ctx, s.thread)
}

// look checks the thread as the store has it.
func (b *boss) look(s *story, t *engine.Thread, old, now int) {
	snap := t.Snapshot()
	if _, _, err := desk.Results(snap); err != nil {
		b.rep.fault("%s: %v", s.thread, err)
	}
	entries, taken := map[desk.Entry]bool{}, false
	works := map[string]bool{}
	for _, e := range b.desk.Ledger(snap) {
		taken = taken || e.Owner == owner(now)
		if taken && e.Owner == owner(old) {
			b.rep.fault("%s: %+v is in the state after the takeover", s.thread, e)
		}
		entries[e] = true
		if call, is := strings.CutPrefix(e.What, "call "); is {
			if works[call] {
				b.rep.fault("%s: the work of call %s was committed twice", s.thread, call)
			}
			works[call] = true
			if _, ok := s.sent[e]; !ok {
				b.rep.Missing++
				b.rep.fault("%s: the effect of %+v was not delivered", s.thread, e)
			}
		}
	}
	if len(works) != steps*calls {
		b.rep.fault("%s: %d calls did their work, want %d", s.thread, len(works), steps*calls)
	}
	for e := range s.sent {
		if !entries[e] {
			b.rep.fault("%s: the effect of %+v was delivered, and its commit refused", s.thread, e)
		}
	}
}
