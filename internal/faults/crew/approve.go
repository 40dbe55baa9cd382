//go:build unix

package crew

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/phase"
)

// Approver is the child process that answers for a person.
var Approver = child.Part{Name: "crew approver", Run: approve}

// approval is what an approver is told: whose questions to answer, all with yes.
type approval struct {
	Address servers.Address `json:"address"`
	Name    string          `json:"name"`
	Threads int             `json:"threads"`
}

// answered is what it tells of each answer that was taken, and with Last that all were.
type answered struct {
	Thread string `json:"thread,omitempty"`
	Seq    uint64 `json:"seq,omitempty"`
	Last   bool   `json:"last,omitempty"`
}

// approve answers about each thread twice at the same time. Of half of the threads all
// answers are one activation, by its key; of the others each is one of its own, and it is
// the decision's id that makes them one answer.
func approve(ctx context.Context, _ []string) error {
	say := talk.NewVoice(os.Stdout)
	var a approval
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		return fmt.Errorf("crew: read the job: %w", err)
	}
	journal, err := a.Address.Open(ctx)
	if err != nil {
		return err
	}
	client, err := worker.NewClient(worker.ClientConfig{Journal: journal})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range a.Threads {
		thread := fmt.Sprintf("thread-%d", i)
		for n := range 2 {
			group.Go(func() error {
				key := "yes"
				if i%2 == 1 {
					key = fmt.Sprintf("yes %d of %s", n, a.Name)
				}
				r, err := client.Submit(ctx, worker.Activation{
					Thread: thread, Kind: worker.KindDecide, Key: key,
					Decisions: []engine.Decision{{ID: "yes", Answer: phase.Answer{Approved: true}}},
				})
				if err == nil {
					say.Say(answered{Thread: thread, Seq: r.Seq})
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	say.Say(answered{Last: true})
	return journal.Close()
}

// ApproveReport is what Approve found. The check failed when Err returns an error.
type ApproveReport struct {
	Threads    int
	Kills      int // while runs came to wait, and of an approver
	Deliveries int // of answers
	Distinct   int // activations that they were
	Applied    int // of these, by what the inboxes say
	Refused    int // of these: the run had been gone on with
	Lost       int // runs that are not over
	Double     int // runs whose tool ran more than once
	Missing    int // durable effects not delivered
	Duplicates int // deliveries of effects for the second time, with the same id
	Owners     int // runs that were finished by another process than the one that suspended them
	fault      error
}

// Err returns what was wrong, nil for nothing.
func (r *ApproveReport) Err() error { return r.fault }

// Approve has one worker process run threads until each waits for a person, which is
// killed meanwhile, and for good in the end. Two processes answer at the same time, each
// everything twice, one of which is killed and starts over. A third process finishes.
func Approve(ctx context.Context, o Options) (rep *ApproveReport, err error) {
	rep = &ApproveReport{Threads: o.Threads}
	s, err := newStaff(ctx, o)
	if err != nil {
		return rep, err
	}
	random := rand.New(rand.NewPCG(o.Seed, 23))
	suspenders := map[string]bool{}
	if err := s.suspend(ctx, rep, random, suspenders); err != nil {
		return rep, err
	}
	if err := s.answer(ctx, rep, random); err != nil {
		return rep, err
	}
	last, _, err := s.hire(ctx, func(*job) {}, nil)
	if err != nil {
		return rep, err
	}
	finished, finishing := errgroup.WithContext(ctx)
	finished.SetLimit(64)
	outcomes := make([][]worker.Outcome, o.Threads)
	for i := range o.Threads {
		finished.Go(func() error {
			for {
				status, err := s.client.Status(finishing, fmt.Sprintf("thread-%d", i))
				if err != nil {
					return err
				}
				if status.Lifecycle.Status == phase.Done && len(status.Pending) == 0 {
					outcomes[i] = status.Done
					return nil
				}
				pause(finishing, 100*time.Millisecond)
			}
		})
	}
	if err := finished.Wait(); err != nil {
		return rep, err
	}
	if err := s.empty(ctx); err != nil {
		return rep, err
	}
	if _, err := s.dismiss(last); err != nil {
		return rep, err
	}
	if err := s.finish(); err != nil {
		return rep, err
	}
	return rep, rep.judge(ctx, s, outcomes, suspenders)
}

// suspend runs all threads until they wait. The worker that did it is dead in the end.
func (s *staff) suspend(ctx context.Context, rep *ApproveReport, random *rand.Rand, suspenders map[string]bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var receipts []worker.Receipt
	for i := range s.Threads {
		r, err := s.submit(ctx, activation(task{Thread: fmt.Sprintf("thread-%d", i), Steps: 1, Ask: true}))
		if err != nil {
			return err
		}
		receipts = append(receipts, r)
	}
	waiting, at := errgroup.WithContext(ctx)
	for _, r := range receipts {
		waiting.Go(func() error {
			o, err := s.await(at, r)
			if err == nil && o.Status != phase.Waiting {
				err = fmt.Errorf("crew: %s does not wait but ended so: %+v", r.Thread, o)
			}
			return err
		})
	}
	all := make(chan error, 1)
	go func() { all <- waiting.Wait() }()
	for {
		peer, owner, err := s.hire(ctx, func(j *job) { j.Concurrency = 8 }, nil)
		if err != nil {
			return err
		}
		suspenders[owner] = true
		over := false
		select {
		case err = <-all:
			over = true
		case <-time.After(time.Duration(200+random.IntN(600)) * time.Millisecond):
			if rep.Kills >= 4 { // enough of them; let it come to an end
				err, over = <-all, true
			}
		}
		if killed := s.kill(peer, owner); err == nil {
			err = killed
		}
		rep.Kills++
		if err != nil || over {
			return err
		}
	}
}

// answer has two processes answer.
func (s *staff) answer(ctx context.Context, rep *ApproveReport, random *rand.Rand) error {
	seen := map[string]bool{}
	type heard struct {
		from int
		what answered
		err  error
	}
	start := func(n int) (*talk.Peer, error) {
		cmd, err := Approver.Command(ctx)
		if err != nil {
			return nil, err
		}
		p, err := talk.Start(cmd)
		if err == nil {
			err = p.Tell(approval{s.Server.Address(s.Name), fmt.Sprint("approver ", n), s.Threads})
		}
		return p, err
	}
	lines := make(chan heard)
	listen := func(n int, p *talk.Peer) {
		for {
			h := heard{from: n}
			h.err = p.Hear(&h.what)
			lines <- h
			if h.err != nil {
				return
			}
		}
	}
	var peers [3]*talk.Peer
	var err error
	for n := range 2 {
		if peers[n], err = start(n); err != nil {
			return err
		}
		go listen(n, peers[n])
	}
	doomed := 1 + random.IntN(s.Threads)
	for running := 2; running > 0; {
		h := <-lines
		switch {
		case h.err != nil:
			running--
			killed, err := peers[h.from].Gone()
			if err != nil {
				return err
			}
			if killed { // another one answers everything again
				if peers[2], err = start(2); err != nil {
					return err
				}
				running++
				go listen(2, peers[2])
			}
		case !h.what.Last:
			rep.Deliveries++
			seen[fmt.Sprintf("%s %d", h.what.Thread, h.what.Seq)] = true
			if h.from == 0 {
				if doomed--; doomed == 0 {
					if err := peers[0].Kill(); err != nil {
						return err
					}
					rep.Kills++
				}
			}
		}
	}
	rep.Distinct = len(seen)
	return nil
}

func (r *ApproveReport) judge(ctx context.Context, s *staff, outcomes [][]worker.Outcome, suspenders map[string]bool) error {
	var sum totals
	for i := range s.Threads {
		thread := fmt.Sprintf("thread-%d", i)
		if err := s.audit(ctx, thread, 1, &sum); err != nil {
			return err
		}
		t, err := s.eng.OpenThread(ctx, thread)
		if err != nil {
			return err
		}
		if phase.RunLifecycle.Get(t.Snapshot()).Status != phase.Done {
			r.Lost++
		}
		calls := s.hand.ledger.Get(t.Snapshot()).Slice()
		for _, c := range calls {
			if s.watch.calls[thread+"/"+c.Call].bodies != 1 {
				r.Double++
				s.watch.fault("%s: call %s ran %d times", thread, c.Call, s.watch.calls[thread+"/"+c.Call].bodies)
			}
		}
		if len(calls) > 0 && !suspenders[calls[0].Worker] {
			r.Owners++
		}
		if len(calls) != 1 {
			s.watch.fault("%s: %d calls did their work, want 1", thread, len(calls))
		}
		for _, o := range outcomes[i] {
			if o.Kind != worker.KindDecide {
				continue
			}
			switch o.Fate {
			case worker.Applied:
				r.Applied++
			case worker.Refused:
				r.Refused++
			default:
				s.watch.fault("%s: an answer ended so: %+v", thread, o)
			}
		}
	}
	r.Missing, r.Duplicates = sum.missing, s.watch.duplicates
	r.fault = s.watch.err()
	return s.close()
}
