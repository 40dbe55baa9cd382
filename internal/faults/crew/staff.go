//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
)

// Options says how much to do.
type Options struct {
	Dir     string // where files go
	Server  *servers.Server
	Name    string // of the store on the server
	Seed    uint64
	Threads int
	Lease   time.Duration
}

// staff is what all checks have: a store, the outside, a client, and workers.
type staff struct {
	Options
	store  servers.Store
	client *worker.Client
	hand   *hand
	eng    *engine.Engine // to look at threads
	path   string
	out    *outside
	watch  *watch

	stop    chan struct{} // has the reader of the outside come to its end
	read    chan error
	mu      sync.Mutex
	waiting map[string]chan uint64 // by thread, what is over
	hired   int
	bodies  atomic.Int64 // that began, as far as the outside was read
}

func newStaff(ctx context.Context, o Options) (s *staff, err error) {
	s = &staff{Options: o, path: filepath.Join(o.Dir, o.Name+".outside"), watch: newWatch(o.Lease), stop: make(chan struct{}), read: make(chan error, 1), waiting: map[string]chan uint64{}}
	if s.store, err = o.Server.Address(o.Name).Open(ctx); err != nil {
		return nil, err
	}
	if s.out, err = openOutside(s.path); err != nil {
		return nil, err
	}
	// Notices about a thousand threads are no use to this process: the outside tells.
	if s.client, err = worker.NewClient(worker.ClientConfig{Journal: mute{s.store}}); err != nil {
		return nil, err
	}
	s.hand = newHand("parent", s.out, 0)
	if s.eng, err = engine.New(engine.Config{Journal: s.store, Plugins: []engine.Plugin{worker.Plugin(), s.hand}}); err != nil {
		return nil, err
	}
	s.watch.over = s.tell
	go func() {
		s.read <- follow(ctx, s.path, s.stop, func(l line) {
			s.watch.see(l)
			if l.Kind == lineBody {
				s.bodies.Add(1)
			}
		})
	}()
	return s, nil
}

// mute is a store whose notices are heard by nobody here, and reach others.
type mute struct{ servers.Store }

// Listen implements store.Notifier.
func (m mute) Listen(ctx context.Context, _ string) (<-chan []byte, error) {
	none := make(chan []byte)
	go func() { <-ctx.Done(); close(none) }()
	return none, nil
}

// finish ends the reading of the outside. What the watch has is complete then.
func (s *staff) finish() error {
	close(s.stop)
	return <-s.read
}

func (s *staff) close() error { return errors.Join(s.out.close(), s.store.Close()) }

// inbox returns where it is told what of a thread is over.
func (s *staff) inbox(thread string) chan uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.waiting[thread]
	if c == nil {
		c = make(chan uint64, 16)
		s.waiting[thread] = c
	}
	return c
}

func (s *staff) tell(thread string, seq uint64) {
	select {
	case s.inbox(thread) <- seq:
	default:
	}
}

// hire starts a worker. change may set more of its job; wrap, if not nil, changes its
// command.
func (s *staff) hire(ctx context.Context, change func(*job), wrap func(*exec.Cmd)) (*talk.Peer, string, error) {
	s.mu.Lock()
	s.hired++
	j := job{
		Address: s.Server.Address(s.Name), Outside: s.path, Owner: fmt.Sprintf("worker-%d", s.hired), Lease: s.Lease,
		Concurrency: s.Threads, Think: 10 * time.Millisecond, Work: 10 * time.Millisecond,
	}
	s.mu.Unlock()
	change(&j)
	cmd, err := Worker.Command(ctx)
	if err != nil {
		return nil, "", err
	}
	if wrap != nil {
		wrap(cmd)
	}
	peer, err := talk.Start(cmd)
	if err != nil {
		return nil, "", err
	}
	if err := peer.Tell(j); err != nil {
		return nil, "", errors.Join(err, peer.Kill())
	}
	var r report
	if err := peer.Hear(&r); err != nil {
		_, gone := peer.Gone()
		return nil, "", fmt.Errorf("crew: %s did not start: %w", j.Owner, errors.Join(err, gone))
	}
	return peer, j.Owner, nil
}

// kill kills a worker and returns when it is gone.
func (s *staff) kill(peer *talk.Peer, owner string) error {
	at := time.Now().UnixNano()
	if err := peer.Kill(); err != nil {
		return err
	}
	var r report
	for peer.Hear(&r) == nil {
	}
	killed, err := peer.Gone()
	if err == nil && !killed {
		err = fmt.Errorf("crew: %s ended by itself", owner)
	}
	s.out.write(line{Kind: lineKilled, Worker: owner, Time: at})
	return err
}

// dismiss has a worker end, and returns its counts.
func (s *staff) dismiss(peer *talk.Peer) (worker.Stats, error) {
	var r report
	err := peer.Hush()
	for err == nil {
		if heard := peer.Hear(&r); heard != nil {
			break
		}
	}
	_, gone := peer.Gone()
	return r.Stats, errors.Join(err, gone)
}

// submit submits an activation until it is known to be there.
func (s *staff) submit(ctx context.Context, a worker.Activation) (worker.Receipt, error) {
	for {
		r, err := s.client.Submit(ctx, a)
		if err == nil || ctx.Err() != nil || errors.Is(err, worker.ErrActivation) {
			return r, err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// await waits until an activation has its outcome. It looks at the inbox when the outside
// says so, or says nothing for long: a worker may have been killed before it could.
func (s *staff) await(ctx context.Context, r worker.Receipt) (worker.Outcome, error) {
	told := s.inbox(r.Thread)
	for {
		select {
		case seq := <-told:
			if seq < r.Seq {
				continue
			}
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return worker.Outcome{}, context.Cause(ctx)
		}
		status, err := s.client.Status(ctx, r.Thread)
		if err != nil {
			if ctx.Err() != nil {
				return worker.Outcome{}, err
			}
			continue
		}
		for _, o := range status.Done {
			if o.Seq == r.Seq {
				s.out.write(line{Kind: lineOver, Worker: "parent", Thread: r.Thread, Seq: r.Seq})
				return o, nil
			}
		}
		for _, d := range status.Dead {
			if d.Seq == r.Seq {
				return worker.Outcome{}, fmt.Errorf("crew: %s: activation %d was given up: %s", r.Thread, r.Seq, d.Error)
			}
		}
	}
}

// empty waits until nothing but dead effects is in the outbox.
func (s *staff) empty(ctx context.Context) error {
	for {
		lanes, err := s.store.Lanes(ctx, "")
		if err == nil && len(lanes) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("crew: the outbox does not get empty, there is %q: %w", lanes, context.Cause(ctx))
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// until waits for something.
func (s *staff) until(ctx context.Context, fn func() bool) error {
	for !fn() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pause(ctx, 5*time.Millisecond)
	}
	return nil
}
