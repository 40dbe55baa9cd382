package serve

import (
	"context"
	"net/http"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// thread is a thread that somebody is at: a request that starts, decides, cancels or
// deletes, one at a time, or a run.
type thread struct {
	id   string        // the engine's
	turn chan struct{} // has an element while a request has its turn
	refs int           // guarded by Server.mu, as is the next
	run  *going
}

// going is a run that is under way.
type going struct {
	id       string // the engine's
	th       *engine.Thread
	stream   *stream
	cancel   context.CancelCauseFunc
	from     uint64        // position in the stream at which this part of it began
	finished chan struct{} // closed when it is not under way any more
	err      error         // why nothing ran; set before finished is closed
}

// at gives a request its turn at a thread. done ends it.
func (s *Server) at(ctx context.Context, id string) (t *thread, done func(), err error) {
	s.mu.Lock()
	t = s.threads[id]
	if t == nil {
		t = &thread{id: id, turn: make(chan struct{}, 1)}
		s.threads[id] = t
	}
	t.refs++
	s.mu.Unlock()
	select {
	case t.turn <- struct{}{}:
		return t, func() { <-t.turn; s.leave(t) }, nil
	case <-ctx.Done():
		s.leave(t)
		return nil, nil, ctx.Err()
	}
}

func (s *Server) leave(t *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.refs--; t.refs == 0 {
		delete(s.threads, t.id)
	}
}

// underWay returns the run of a thread that is under way here, or nil.
func (s *Server) underWay(thread string) *going {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.threads[thread]; t != nil {
		return t.run
	}
	return nil
}

// busy returns the run of a thread that is under way here, or nil, for a request that has
// its turn there. A run whose end or questions were told is not in the way of those who
// heard of them: it is about to let go, and is waited for.
func (s *Server) busy(ctx context.Context, t *thread) (*going, error) {
	g := s.underWay(t.id)
	if g == nil {
		return nil, nil
	}
	if l := phase.RunLifecycle.Get(g.th.Snapshot()); l.Run != g.id || l.Status != phase.Waiting && l.Status != phase.Done {
		return g, nil
	}
	select {
	case <-g.finished:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look opens a thread as it is now: that of its run, or as the journal has it. One
// without runs is hidden.
func (s *Server) look(ctx context.Context, id string) (*engine.Thread, error) {
	g := s.underWay(id)
	if g != nil {
		return g.th, nil
	}
	th, err := s.engine.OpenThread(ctx, id)
	if err != nil {
		return nil, err
	}
	if newest(th.Snapshot()) == 0 {
		return nil, hidden()
	}
	return th, nil
}

// known is a run that was found, with the thread as it was then.
type known struct {
	id     string // the engine's
	thread string // likewise
	number uint64
	record RunRecord
	th     *engine.Thread
	snap   *state.Snapshot
}

// find looks for the run that the path of a request names, among those of the caller.
func (s *Server) find(c caller, r *http.Request) (known, error) {
	name := r.PathValue("run")
	thread, number, ok := ofRun(name)
	if !ok || !goodID(name) {
		return known{}, hidden()
	}
	th, err := s.look(r.Context(), c.inside(thread))
	if err != nil {
		return known{}, err
	}
	k := known{id: c.inside(name), thread: c.inside(thread), number: number, th: th, snap: th.Snapshot()}
	if k.record, ok = Runs.Get(k.snap, number); !ok || k.record.Run != k.id {
		return known{}, hidden()
	}
	return k, nil
}

// way is how a run comes to be under way.
type way uint8

const (
	fresh     way = iota // it starts
	resumed              // it goes on
	calledOff            // it goes on only to end, which is never too much
)

// launch lets a run go on in a goroutine of its own, if the caller may have one more.
// The caller of launch has the turn at the thread, and nothing is under way there.
func (s *Server) launch(c caller, t *thread, th *engine.Thread, run string, how way, do func(context.Context) (*engine.Result, error)) (*going, error) {
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), principalKey{}, c.principal))
	g := &going{id: run, th: th, cancel: cancel, finished: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		cancel(nil)
		return nil, ended()
	}
	if err := s.mayRun(c); err != nil && how != calledOff {
		cancel(nil)
		return nil, err
	}
	g.stream = s.streams.start(c, run, how == fresh)
	g.from = g.stream.end()
	s.runs[c.space]++
	s.active++
	t.refs++
	t.run = g
	go func() {
		defer cancel(nil)
		res, err := do(ctx)
		g.err = err
		s.ended(c, t, g, res, how)
	}()
	return g, nil
}

// mayRun is asked with s.mu held.
func (s *Server) mayRun(c caller) error {
	if s.runs[c.space] >= s.options.Limits.Runs {
		f := refuse(http.StatusTooManyRequests, "too_many_runs", "too many of your runs are under way; wait for one to end")
		f.retryAfter = 1
		return f
	}
	return nil
}

// ended takes a run out that is not under way any more.
func (s *Server) ended(c caller, t *thread, g *going, res *engine.Result, how way) {
	// Decisions that were all made before run nothing.
	ran := res != nil && (how == fresh || g.stream.end() > g.from)
	s.streams.stop(g.stream, ran, res != nil && res.Status != phase.Waiting)
	s.mu.Lock()
	t.run = nil
	if s.runs[c.space]--; s.runs[c.space] == 0 {
		delete(s.runs, c.space)
	}
	s.mu.Unlock()
	close(g.finished)
	s.leave(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.closing {
		close(s.idle)
	}
}

// begun waits until a run told something, or is over: then it is known whether anything
// ran at all.
func (g *going) begun(ctx context.Context) error {
	for {
		p := g.stream.after(g.from)
		if len(p.lines) > 0 || p.gap {
			return nil
		}
		select {
		case <-g.finished:
			return g.err
		case <-p.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
