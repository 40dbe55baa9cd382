package engine

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/internal/ledger"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Thread is a conversation and its state, kept in memory for as long as the
// caller keeps the Thread. Runs of one thread follow each other; keys of
// ScopeThread keep their values from one to the next. All methods are safe for
// concurrent use.
type Thread struct {
	eng    *Engine
	id     string
	store  *state.Store
	chain  *chain // nil without a journal
	lastID atomic.Uint64
	active atomic.Pointer[run]
}

// NewThread returns an empty thread. An empty id is replaced by a new one.
func (e *Engine) NewThread(id string) (*Thread, error) {
	if e.closed.Load() {
		return nil, ErrClosed
	}
	if id == "" {
		id = e.config.NewID()
	}
	return e.newThread(id, e.config.Journal)
}

func (e *Engine) newThread(id string, journal Journal) (*Thread, error) {
	t := &Thread{eng: e, id: id}
	c := state.Config{Schema: e.schema, History: e.config.Limits.History}
	if journal != nil {
		t.chain = &chain{eng: e, thread: id, sent: ledger.New[effects.ID, EffectRef](&e.underway)}
		c.Persist = t.chain.save
	}
	var err error
	t.store, err = state.NewStore(c)
	return t, err
}

// ID returns the thread's id.
func (t *Thread) ID() string { return t.id }

// Agent returns the id of the agent that runs on the thread, or ran last, after
// handoffs; "" before the first run.
func (t *Thread) Agent() string { return activeAgent.Get(t.store.Snapshot()) }

// Snapshot returns the state as of now. It never blocks.
func (t *Thread) Snapshot() *state.Snapshot { return t.store.Snapshot() }

// At returns the state at an earlier revision, if it is among the last
// Limits.History ones.
func (t *Thread) At(revision uint64) (*state.Snapshot, bool) { return t.store.At(revision) }

// Subscribe calls fn for every commit in revision order, outside every lock, until
// cancel is called. See state.Store.Subscribe.
func (t *Thread) Subscribe(fn func(state.Commit)) (cancel func()) { return t.store.Subscribe(fn) }

// Export returns the thread's state in the given scopes, all of them when none is
// given. It fails if a value cannot be encoded.
func (t *Thread) Export(scopes ...state.Scope) (state.Dump, error) {
	return t.store.Snapshot().Export(scopes...)
}

// Import replaces the state of the dump's scopes in one commit. It is refused
// while a run is under way.
func (t *Thread) Import(d state.Dump, p state.UnknownPolicy) error {
	if t.active.Load() != nil {
		return ErrBusy
	}
	ctx := context.Background() // each call of the journal has its own limit
	lease, err := t.chain.acquire(ctx)
	if err != nil {
		return err
	}
	defer t.chain.giveUp(ctx, lease)
	res, err := t.store.Import(d, p)
	if err != nil {
		return err
	}
	last := lastID.Get(res.Snapshot)
	for now := t.lastID.Load(); now < last && !t.lastID.CompareAndSwap(now, last); now = t.lastID.Load() {
	}
	if t.chain == nil {
		return nil
	}
	// An import is not in the journal by itself: a commit that carries the whole state is.
	t.chain.whole.Store(true)
	_, err = t.store.Commit(state.Batch{Owner: engineName, Updates: []state.Update{lastID.With(last)}})
	return err
}

// Submit commits a command from outside the run: its updates, actions and effects.
// It waits for no phase and blocks none. A command that writes Exclusive keys
// wins against hooks that are running; they run again. plugin names who submits.
func (t *Thread) Submit(ctx context.Context, plugin string, cmd phase.Command) (*state.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r := t.active.Load()
	sc := scene{aside: r != nil}
	if r == nil {
		var err error
		if r, err = t.alone(ctx, &agent{info: phase.NewAgentInfo("", "", "", nil)}); err != nil {
			return nil, err
		}
		defer r.release()
	}
	return r.submit(ctx, sc, plugin, cmd)
}

// RunPhase runs one phase of the agent by itself: its hooks, its queued actions
// and their effects. While a run is under way it takes part in that run, with the
// run's agent. It is meant for tests, tools and handlers of effects; a run calls
// its phases itself.
func (t *Thread) RunPhase(ctx context.Context, spec AgentSpec, p phase.Phase) (*Report, error) {
	if !p.Valid() {
		return nil, unknownPhase(p)
	}
	r := t.active.Load()
	sc := scene{phase: p, aside: r != nil, told: true}
	if r == nil {
		a, err := t.eng.prepare(spec)
		if err != nil {
			return nil, err
		}
		if r, err = t.alone(ctx, a); err != nil {
			return nil, err
		}
		defer r.release()
	}
	var out struct {
		Report
		one [1]HookReport // one allocation with the report
	}
	out.Hooks = out.one[:0]
	return &out.Report, r.report(ctx, sc, &out.Report)
}

// standIn returns what takes the place of a run, for one call, when none is under
// way. The caller releases it.
func (t *Thread) standIn(a *agent) (*run, error) {
	if err := t.eng.ready(); err != nil {
		return nil, err
	}
	return t.newRun(a, Input{}, nil, nil)
}

// alone is standIn for one that commits: with the lease of the thread.
func (t *Thread) alone(ctx context.Context, a *agent) (*run, error) {
	lease, err := t.chain.acquire(ctx)
	if err != nil {
		return nil, err
	}
	r, err := t.standIn(a)
	if err != nil {
		t.chain.giveUp(ctx, lease)
		return nil, err
	}
	r.lease = lease
	return r, nil
}

// DeadLetters yields the thread's dead letters, oldest first, with the id that
// Requeue takes.
func (t *Thread) DeadLetters() iter.Seq2[uint64, DeadLetter] {
	return deadLetters.All(t.store.Snapshot())
}

// Requeue puts a dead letter back into the queue, to run when its phase comes
// next. It returns ErrNoDeadLetter when there is none of that id.
func (t *Thread) Requeue(ctx context.Context, id uint64) error {
	lease, err := t.chain.acquire(ctx)
	if err != nil {
		return err
	}
	defer t.chain.giveUp(ctx, lease)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		snap := t.store.Snapshot()
		d, ok := deadLetters.Get(snap, id)
		if !ok {
			return fmt.Errorf("%w: %d", ErrNoDeadLetter, id)
		}
		res, err := t.store.Commit(state.Batch{Owner: engineName, Base: snap, Updates: []state.Update{
			deadLetters.Delete(id),
			queue.Put(queueKey(d.Action.Phase(), d.ID), d.Pending),
		}})
		if err != nil {
			return err
		}
		if len(res.Rejected) == 0 {
			return nil
		}
	}
}
