//go:build unix

package scale

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store"
)

// maxCallers is how many writers there are at most.
const maxCallers = 64

// Options says what to measure.
type Options struct {
	Kind     string // one of Stores
	Dir      string // where files go
	Replicas int    // of NATS
	For      time.Duration
	Out      io.Writer // gets one line per figure
}

// Rate is what some callers did at the same time.
type Rate struct {
	Callers int
	Done    int
	Second  float64       // calls in one
	Median  time.Duration // of one call
}

// Runs is what workers did.
type Runs struct {
	Workers int
	Tools   int // that each run calls, one a step, each with a durable effect
	Length  int // of threads, in runs
	Done    int
	Second  float64
	Calls   Calls // of the workers together
	Bytes   int64 // that the store grew by
	Rows    int64 // or messages
}

// Figures are what was measured of one store.
type Figures struct {
	Bare, Commit, Effects []Rate // by number of callers: a bare write, a commit of 1 KiB, the same with two effects
	Empty                 []Rate // claims that find nothing
	Load                  []Rate // of a thread with a snapshot and a few records
	Runs                  []Runs
	Idle                  Calls // of one worker in a second
}

// Measure measures a store.
func Measure(ctx context.Context, o Options) (f *Figures, err error) {
	t, err := newTarget(ctx, o.Kind, o.Dir, max(o.Replicas, 1))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	f = &Figures{}
	tell := func(format string, args ...any) { _, _ = fmt.Fprintf(o.Out, o.Kind+": "+format+"\n", args...) }
	for _, callers := range []int{1, 16} {
		bare, err := rate(ctx, callers, o.For, t.bare)
		if err != nil {
			return f, err
		}
		commit, err := rate(ctx, callers, o.For, t.commits(0))
		if err != nil {
			return f, err
		}
		effects, err := rate(ctx, callers, o.For, t.commits(2))
		if err != nil {
			return f, err
		}
		empty, err := rate(ctx, callers, o.For/2, func(ctx context.Context, caller int) error {
			_, err := t.store.Claim(ctx, "nothing", fmt.Sprint(caller), 1, time.Second)
			return err
		})
		if err != nil {
			return f, err
		}
		load, err := t.loads(ctx, callers, o.For/2)
		if err != nil {
			return f, err
		}
		f.Bare, f.Commit, f.Effects = append(f.Bare, bare), append(f.Commit, commit), append(f.Effects, effects)
		f.Empty, f.Load = append(f.Empty, empty), append(f.Load, load)
		tell("%d writers: bare write %.0f/s (median %s); commit of 1 KiB %.0f/s (%s), %.2f of bare; with 2 effects %.0f/s (%s), %.2f of bare; empty claim %.0f/s (%s); load %.0f/s (%s)",
			callers, bare.Second, bare.Median, commit.Second, commit.Median, commit.Second/bare.Second,
			effects.Second, effects.Median, effects.Second/bare.Second, empty.Second, empty.Median, load.Second, load.Median)
	}
	for _, load := range []Runs{
		{Workers: 1, Length: 4}, {Workers: 1, Tools: 2, Length: 4}, {Workers: 4, Tools: 2, Length: 4}, {Workers: 1, Tools: 2, Length: 32},
	} {
		if err := t.runs(ctx, o.For, &load); err != nil {
			return f, err
		}
		f.Runs = append(f.Runs, load)
		n, per := float64(load.Done), func(v int64) float64 { return float64(v) / float64(load.Done) }
		tell("%d workers, %d tools a run, threads of %d runs: %.1f runs/s in %d runs, %.2f of the bare writes of 16; a run: %.1f commits of %.0f B, %.1f of inboxes of %.0f B, %.1f leases, %.1f loads, %.1f claims and %.1f empty ones, %.1f settlements, %.1f lists, %.1f notices, %.1f effects, %.2f snapshots of %.0f B; stored: %.0f B, %.1f rows",
			load.Workers, load.Tools, load.Length, load.Second, load.Done, load.Second/f.Bare[1].Second,
			per(load.Calls.Commits), ratio(load.Calls.RecordBytes, load.Calls.Commits), per(load.Calls.InboxCommits), ratio(load.Calls.InboxBytes, load.Calls.InboxCommits),
			per(load.Calls.Leases), per(load.Calls.Loads), per(load.Calls.Claims), per(load.Calls.EmptyClaims), per(load.Calls.Settles), per(load.Calls.Lists),
			per(load.Calls.Notices), per(load.Calls.Effects), float64(load.Calls.Snapshots)/n, ratio(load.Calls.SnapshotBytes, load.Calls.Snapshots), float64(load.Bytes)/n, float64(load.Rows)/n)
	}
	if f.Idle, err = t.idle(ctx); err != nil {
		return f, err
	}
	tell("a worker with nothing to do, in a second: %d calls: %d lists, %d empty claims", f.Idle.All(), f.Idle.Lists, f.Idle.EmptyClaims)
	return f, nil
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// rate has so many callers call one after the other for some time.
func rate(ctx context.Context, callers int, d time.Duration, call func(ctx context.Context, caller int) error) (Rate, error) {
	times := make([][]time.Duration, callers)
	failures := make([]error, callers)
	var group sync.WaitGroup
	began := time.Now()
	for n := range callers {
		group.Go(func() {
			for time.Since(began) < d {
				at := time.Now()
				if failures[n] = call(ctx, n); failures[n] != nil {
					return
				}
				times[n] = append(times[n], time.Since(at))
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	all := slices.Concat(times...)
	slices.Sort(all)
	r := Rate{Callers: callers, Done: len(all), Second: float64(len(all)) / elapsed.Seconds()}
	if len(all) > 0 {
		r.Median = all[len(all)/2]
	}
	return r, errors.Join(failures...)
}

// commits returns what appends 1 KiB with so many effects, each caller to a thread of its own.
// Each commit settles the effects of the one before.
func (t *target) commits(effects int) func(ctx context.Context, caller int) error {
	var bases [maxCallers]uint64
	id := newID()
	record, body := make([]byte, 1024), make([]byte, 100)
	return func(ctx context.Context, caller int) (err error) {
		c := store.Commit{Thread: fmt.Sprintf("%x %d", id[:4], caller), Base: bases[caller], ID: newID(), Time: time.Now(), Record: record}
		for i := range effects {
			c.Effects = append(c.Effects, store.Effect{Lane: "unread", Body: body})
			if c.Base > 0 {
				c.Settles = append(c.Settles, store.EffectRef{Thread: c.Thread, Revision: c.Base, Index: uint32(i)})
			}
		}
		bases[caller], err = t.store.Append(ctx, c)
		return err
	}
}

// loads loads threads of a snapshot and four records.
func (t *target) loads(ctx context.Context, callers int, d time.Duration) (Rate, error) {
	id := newID()
	thread := func(caller int) string { return fmt.Sprintf("load %x %d", id[:4], caller) }
	for caller := range callers {
		for base := range uint64(5) {
			c := store.Commit{Thread: thread(caller), Base: base, ID: newID(), Time: time.Now(), Record: make([]byte, 350)}
			if base == 0 {
				c.Snapshot = make([]byte, 2048)
			}
			if _, err := t.store.Append(ctx, c); err != nil {
				return Rate{}, err
			}
		}
	}
	return rate(ctx, callers, d, func(ctx context.Context, caller int) error {
		_, err := t.store.Load(ctx, thread(caller), 0)
		return err
	})
}

// step is the tool of the measured runs.
type step struct{ sent effects.Spec[string] }

// Name implements engine.Plugin.
func (s step) Name() string { return "scale" }

// Register implements engine.Plugin.
func (s step) Register(r *engine.Registrar) error {
	r.Tool(s)
	r.Effect(s.sent.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
	return nil
}

// Spec implements engine.Tool.
func (s step) Spec() inference.ToolSpec { return inference.ToolSpec{Name: "step", Kind: "write"} }

// Call implements engine.Tool.
func (s step) Call(context.Context, *phase.Context) (engine.Output, error) {
	out := engine.Text("done")
	out.Command.Emit(s.sent.New("done"))
	return out, nil
}

// nullModel calls the tool so many times, one a step, and takes no time.
func nullModel(tools int) inference.Model {
	return inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		steps := 0
		for _, m := range r.Messages {
			switch m.Role {
			case inference.RoleUser:
				steps = 0
			case inference.RoleAssistant:
				steps++
			}
		}
		if steps == tools {
			return inference.Response{Message: inference.Assistant("That is all.")}, nil
		}
		call := inference.ToolCall{ID: fmt.Sprintf("%d.%d", len(r.Messages), steps), Name: "step", Args: "{}"}
		return inference.Response{Message: inference.Assistant("", call)}, nil
	})
}

// start starts a worker on a counting store; over is called for each activation.
func (t *target) start(ctx context.Context, tools int, over func(worker.Report)) (*counter, func() error, error) {
	c := &counter{Store: t.store}
	w, err := worker.New(worker.Config{
		Journal: c, Quiet: true,
		Engine: func(config engine.Config) (*engine.Engine, error) {
			config.Model = nullModel(tools)
			config.Plugins = append(config.Plugins, step{effects.NewSpec[string]("scale.sent", effects.Durable())})
			return engine.New(config)
		},
		Specs:   func(context.Context, string) (engine.AgentSpec, error) { return engine.AgentSpec{ID: "scale"}, nil },
		Observe: over,
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return c, func() error { cancel(); return <-done }, nil
}

// runs submits runs as fast as workers take them: 64 wait or are under way at any time.
func (t *target) runs(ctx context.Context, d time.Duration, load *Runs) error {
	bytes, rows, err := t.size(ctx)
	if err != nil {
		return err
	}
	client, err := worker.NewClient(worker.ClientConfig{Journal: t.store})
	if err != nil {
		return err
	}
	var done atomic.Int64
	tickets := make(chan struct{}, 64)
	var told sync.Map // two workers may both tell
	over := func(r worker.Report) {
		if _, again := told.LoadOrStore(fmt.Sprint(r.Thread, r.Outcome.Seq), true); !again {
			done.Add(1)
			<-tickets
		}
	}
	counters := make([]*counter, load.Workers)
	stops := make([]func() error, load.Workers)
	for i := range load.Workers {
		if counters[i], stops[i], err = t.start(ctx, load.Tools, over); err != nil {
			return err
		}
	}
	began := time.Now()
	id := newID()
	var submitters sync.WaitGroup
	failures := make([]error, 8)
	var submitted atomic.Int64
	for n := range failures {
		submitters.Go(func() {
			for i := 0; time.Since(began) < d && failures[n] == nil; i++ {
				tickets <- struct{}{}
				submitted.Add(1)
				_, failures[n] = client.Submit(ctx, worker.Activation{
					Thread: fmt.Sprintf("run %x %d %d", id[:4], n, i/load.Length), Agent: "scale", Messages: []inference.Message{inference.User("Go on, please, with the next part of the work.")},
				})
			}
		})
	}
	submitters.Wait()
	for errors.Join(failures...) == nil && done.Load() < submitted.Load() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	elapsed := time.Since(began)
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	for _, c := range counters {
		load.Calls.add(c.calls())
	}
	load.Done, load.Second = int(done.Load()), float64(done.Load())/elapsed.Seconds()
	bytes2, rows2, failed := t.size(ctx)
	load.Bytes, load.Rows = bytes2-bytes, rows2-rows
	return errors.Join(err, failed, errors.Join(failures...), ctx.Err())
}

func (c *Calls) add(o Calls) {
	c.Commits += o.Commits
	c.InboxCommits += o.InboxCommits
	c.Leases += o.Leases
	c.Loads += o.Loads
	c.Claims += o.Claims
	c.EmptyClaims += o.EmptyClaims
	c.Settles += o.Settles
	c.Lists += o.Lists
	c.Notices += o.Notices
	c.RecordBytes += o.RecordBytes
	c.InboxBytes += o.InboxBytes
	c.Snapshots += o.Snapshots
	c.SnapshotBytes += o.SnapshotBytes
	c.Effects += o.Effects
}

// idle counts the calls of a worker that has nothing to do, as of one second.
func (t *target) idle(ctx context.Context) (Calls, error) {
	const seconds = 4
	c, stop, err := t.start(ctx, 0, func(worker.Report) {})
	if err != nil {
		return Calls{}, err
	}
	select {
	case <-time.After(seconds * time.Second):
	case <-ctx.Done():
	}
	n := c.calls()
	n.Lists, n.EmptyClaims = (n.Lists+seconds/2)/seconds, (n.EmptyClaims+seconds/2)/seconds
	return Calls{Lists: n.Lists, EmptyClaims: n.EmptyClaims}, stop()
}
