// Package decide checks that a decision is applied once, however often, by however many
// processes and in whatever circumstances it is delivered. Race has two processes decide
// about one waiting run at the same time; Kill has processes suspend runs and resume
// them, and kills them at any moment.
package decide

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/desk"
	"github.com/ddd26017/fixpoint/internal/faults/served"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
)

// RaceOptions says how much Race is to do.
type RaceOptions struct {
	Dir    string // for the socket
	Store  served.Store
	Seed   uint64
	Rounds int
}

// RaceReport is what Race found. The check failed when Faults is not empty.
type RaceReport struct {
	Rounds     int // waiting runs that were raced for
	Deliveries int // of decisions
	Won        int // that made a run go on
	Repeated   int // that were told that the decision had been applied
	Refused    int // that were told that somebody else was first
	Later      int // deliveries when all was over
	Known      int // of them told that the decision had been applied; the others were refused
	Bodies     int // of the tool that was asked about
	WonBy      [2]int
	Faults     []string
}

// Err returns the faults as an error, nil for none.
func (r *RaceReport) Err() error { return join(r.Faults) }

func join(faults []string) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, errors.New("decide: "+f))
	}
	return errors.Join(errs...)
}

const mostFaults = 20

type referee struct {
	RaceOptions
	random *rand.Rand
	peers  [2]*talk.Peer
	desk   *desk.Desk
	eng    *engine.Engine
	rep    *RaceReport
	round  tally
}

// tally is what was heard in one round.
type tally struct {
	thread string
	bodies int
	goes   int
	ends   [2]line
}

// Race runs the rounds. The error is of the check itself or of a process that failed;
// see also RaceReport.Err.
func Race(ctx context.Context, o RaceOptions) (rep *RaceReport, err error) {
	r := &referee{RaceOptions: o, random: rand.New(rand.NewPCG(o.Seed, 3)), rep: &RaceReport{}, desk: desk.New("parent")}
	socket := filepath.Join(o.Dir, "store")
	server, err := served.Serve(socket, o.Store)
	if err != nil {
		return r.rep, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r.desk.Body = func(string, string) { r.rep.Faults = append(r.rep.Faults, "the tool ran before the decision") }
	if r.eng, err = engine.New(engine.Config{
		Plugins: []engine.Plugin{r.desk}, Model: desk.Script(desk.Gated, 1, 1), Journal: o.Store,
	}); err != nil {
		return r.rep, err
	}
	for i := range r.peers {
		cmd, err := Racer.Command(ctx)
		if err != nil {
			return r.rep, err
		}
		if r.peers[i], err = talk.Start(cmd); err != nil {
			return r.rep, err
		}
		if err := r.peers[i].Tell(racerJob{Socket: socket, Owner: fmt.Sprintf("owner-%d", i)}); err != nil {
			return r.rep, err
		}
	}
	for n := 0; n < o.Rounds && err == nil && len(r.rep.Faults) < mostFaults; n++ {
		err = r.once(ctx, fmt.Sprintf("thread-%d", n), n)
	}
	for _, p := range r.peers {
		if err != nil {
			err = errors.Join(err, p.Kill())
		}
		_ = p.Hush()
		_, gone := p.Gone()
		err = errors.Join(err, gone)
	}
	return r.rep, err
}

// once has both processes decide about one run. In one half of the rounds they have
// owners, in one half the same decision, in one half each delivers it twice at once.
func (r *referee) once(ctx context.Context, thread string, n int) error {
	leased, same, times := n%2 == 0, n/2%2 == 0, 1+n/4%2
	r.round = tally{thread: thread}
	if err := r.suspend(ctx, thread); err != nil {
		return err
	}
	orders := [2]order{}
	for i := range orders {
		orders[i] = order{Thread: thread, Leased: leased, Decision: "yes", Times: times}
		if !same {
			orders[i].Decision = fmt.Sprintf("yes from %d", i)
		}
	}
	if err := r.look(thread, leased, phase.Waiting); err != nil {
		return err
	}
	for i, p := range r.peers {
		orders[i].Pause = time.Duration(r.random.IntN(300)) * time.Microsecond
		if err := p.Tell(orders[i]); err != nil {
			return err
		}
	}
	for i := range r.peers {
		if _, err := r.hear(i, lineEnd); err != nil {
			return err
		}
	}
	r.judge(times)
	if err := r.again(thread, leased, orders); err != nil {
		return err
	}
	if err := r.inspect(ctx, thread); err != nil {
		return err
	}
	return r.Store.Delete(ctx, thread)
}

// suspend makes a thread whose run waits.
func (r *referee) suspend(ctx context.Context, thread string) error {
	t, err := r.eng.OpenThread(ctx, thread)
	if err != nil {
		return err
	}
	res, err := t.Run(ctx, desk.Spec, engine.Prompt("go"))
	switch {
	case err != nil:
		return err
	case res.Status != phase.Waiting:
		return fmt.Errorf("decide: %s does not wait but is %s: %w", thread, res.Status, res.Err)
	}
	return nil
}

// look has both processes open the thread.
func (r *referee) look(thread string, leased bool, want phase.RunStatus) error {
	for _, p := range r.peers {
		if err := p.Tell(order{Thread: thread, Leased: leased}); err != nil {
			return err
		}
	}
	for i := range r.peers {
		l, err := r.hear(i, lineOpen)
		if err != nil {
			return err
		}
		if l.Status != want {
			r.fault("%s is %s, not %s", thread, l.Status, want)
		}
	}
	return nil
}

func (r *referee) hear(i int, kind string) (line, error) {
	for {
		var l line
		if err := r.peers[i].Hear(&l); err != nil {
			_, gone := r.peers[i].Gone()
			return l, errors.Join(err, gone)
		}
		switch l.Kind {
		case lineBody:
			r.round.bodies++
		case lineGoes:
			r.round.goes++
		case lineEnd:
			r.round.ends[i] = l
		}
		if l.Kind == kind {
			return l, nil
		}
	}
}

// judge checks that one delivery of all won.
func (r *referee) judge(times int) {
	t, won := r.round, 0
	for i, e := range t.ends {
		won += e.Won
		r.rep.WonBy[i] += e.Won
		r.rep.Repeated += e.Repeated
		r.rep.Refused += e.Refused
	}
	r.rep.Rounds++
	r.rep.Deliveries += 2 * times
	r.rep.Won += won
	r.rep.Bodies += t.bodies
	if won != 1 || t.goes != 1 || t.bodies != 1 {
		r.fault("%s: %d decisions won, the run went on %d times, the tool ran %d times: %+v", t.thread, won, t.goes, t.bodies, t.ends)
	}
}

// again delivers the decisions once more, to threads opened anew.
func (r *referee) again(thread string, leased bool, orders [2]order) error {
	if err := r.look(thread, leased, phase.Done); err != nil {
		return err
	}
	for i, p := range r.peers {
		orders[i].Times = 1
		if err := p.Tell(orders[i]); err != nil {
			return err
		}
		l, err := r.hear(i, lineEnd)
		if err != nil {
			return err
		}
		r.rep.Later++
		r.rep.Known += l.Repeated
		if l.Won > 0 {
			r.fault("%s: a decision delivered later won", thread)
		}
	}
	if r.round.goes != 1 || r.round.bodies != 1 {
		r.fault("%s: a decision delivered later did something", thread)
	}
	return nil
}

// inspect checks what the store has.
func (r *referee) inspect(ctx context.Context, thread string) error {
	t, err := r.eng.OpenThread(ctx, thread)
	if err != nil {
		return err
	}
	results, _, err := desk.Results(t.Snapshot())
	if err != nil || len(results) != 1 {
		r.fault("%s: %d calls: %v", thread, len(results), err)
	}
	works := 0
	for _, e := range r.desk.Ledger(t.Snapshot()) {
		if e.What == "call 0.0" {
			works++
		}
	}
	if works != 1 {
		r.fault("%s: the work was committed %d times", thread, works)
	}
	return nil
}

func (r *referee) fault(format string, args ...any) {
	r.rep.Faults = append(r.rep.Faults, fmt.Sprintf(format, args...))
}
