package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

var (
	duMail  = effects.NewSpec[string]("mail", effects.Durable())
	duPing  = effects.NewSpec[string]("ping")
	duSent  = state.NewCounter("du.sent", state.Options[int64]{Scope: state.ScopeThread})
	duOwner = state.NewCell[string]("du.owner", state.Options[string]{Scope: state.ScopeThread})
	duLater = phase.NewAction[string]("later", phase.StepEnd)
)

// duStore is a memstore that keeps what was appended and settled, and can be made to
// misbehave.
type duStore struct {
	*memstore.Store
	caps engine.JournalCaps

	claim   func() error
	settle  func() error
	acquire func() error
	renew   func() error
	release func() error
	loadAt  func() error
	appends func(engine.JournalCommit) error // after it landed

	mu      sync.Mutex
	commits []engine.JournalCommit
	open    map[engine.EffectRef]string // effect ids of entries that are not settled
	settled int                         // entries that were settled with an append
}

func duNewStore(o memstore.Options) *duStore {
	return &duStore{Store: memstore.New(o), open: map[engine.EffectRef]string{}}
}

// set makes one of the calls do something else first; nil ends that.
func (s *duStore) set(at *func() error, fn func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = fn
}

func (s *duStore) call(at *func() error) error {
	s.mu.Lock()
	fn := *at
	s.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn()
}

func (s *duStore) Caps() engine.JournalCaps { return s.caps }

func (s *duStore) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	rev, err := s.Store.Append(ctx, c)
	if err != nil {
		return rev, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.commits, func(o engine.JournalCommit) bool { return o.ID == c.ID }) {
		return rev, nil
	}
	s.commits = append(s.commits, c)
	for i, e := range c.Effects {
		s.open[engine.EffectRef{Thread: c.Thread, Revision: rev, Index: uint32(i)}] = duID(e.Body)
	}
	for _, ref := range c.Settles {
		s.settled++
		delete(s.open, ref)
	}
	if s.appends != nil {
		err = s.appends(c)
	}
	return rev, err
}

func (s *duStore) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]engine.Claim, error) {
	if err := s.call(&s.claim); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, lane, worker, limit, ttl)
}

func (s *duStore) Settle(ctx context.Context, c engine.Claim, how engine.Settlement) error {
	err := s.call(&s.settle)
	if err == nil {
		err = s.Store.Settle(ctx, c, how)
	}
	if err == nil && how == (engine.Settlement{}) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, c.Ref)
	}
	return err
}

func (s *duStore) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	if err := s.call(&s.acquire); err != nil {
		return engine.Lease{}, err
	}
	return s.Store.Acquire(ctx, thread, owner, ttl)
}

func (s *duStore) Renew(ctx context.Context, l engine.Lease, ttl time.Duration) (engine.Lease, error) {
	if err := s.call(&s.renew); err != nil {
		return engine.Lease{}, err
	}
	return s.Store.Renew(ctx, l, ttl)
}

func (s *duStore) Release(ctx context.Context, l engine.Lease) error {
	if err := s.call(&s.release); err != nil {
		return err
	}
	return s.Store.Release(ctx, l)
}

func (s *duStore) LoadAt(ctx context.Context, thread string, revision uint64) (engine.JournalImage, error) {
	if err := s.call(&s.loadAt); err != nil {
		return engine.JournalImage{}, err
	}
	return s.Store.LoadAt(ctx, thread, revision)
}

// duID returns the effect id in an outbox entry.
func duID(body []byte) string {
	var p struct{ ID string }
	if err := json.Unmarshal(body[1:], &p); err != nil {
		panic(err)
	}
	return p.ID
}

// ids lists the effect ids that are in the outbox.
func (s *duStore) ids() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// emitted lists the effect ids that ever were in the outbox, in order.
func (s *duStore) emitted() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commits {
		for _, e := range c.Effects {
			ids = append(ids, duID(e.Body))
		}
	}
	return ids
}

// duPost is who gets the mail.
type duPost struct {
	mu   sync.Mutex
	got  []string // "id text"
	sent []int64  // duSent in the snapshot that came with each
	fail func(ctx context.Context, text string) error
}

func (p *duPost) mails() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func (p *duPost) fails(fail func(ctx context.Context, text string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = fail
}

func (p *duPost) plugin(options ...effects.HandlerOption) engine.Plugin {
	return gaPlugin("post", func(r *engine.Registrar) {
		r.Key(duSent, duOwner)
		r.Effect(duMail.Handle(func(ctx context.Context, snap *state.Snapshot, text string) error {
			id, _ := effects.IDFrom(ctx)
			p.mu.Lock()
			p.got, p.sent = append(p.got, id.String()+" "+text), append(p.sent, duSent.Get(snap))
			fail := p.fail
			p.mu.Unlock()
			if fail != nil {
				return fail(ctx, text)
			}
			return nil
		}, options...))
		r.Effect(duPing.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
		r.Action(duLater.Handle(func(_ context.Context, _ *phase.Context, text string) (cmd phase.Command, err error) {
			cmd.Update(duSent.With(1)).Emit(duMail.New(text))
			return cmd, nil
		}))
	})
}

func duEmits(list ...effects.Effect) phase.HookFunc {
	return func(context.Context, *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(duSent.With(1)).Emit(list...)
		return cmd, nil
	}
}

func duSends(texts ...string) phase.Command {
	var cmd phase.Command
	cmd.Update(duSent.With(int64(len(texts))))
	for _, text := range texts {
		cmd.Emit(duMail.New(text))
	}
	return cmd
}

func duEngine(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	if c.NewID == nil {
		c.NewID = gaIDs()
	}
	return gaNew(t, c)
}

// Capability B7. Durable effects of hooks, of a refused and retried hook, of a tool, of
// an action, of a command from outside and of a phase by itself are in the outbox, in
// the append of their commit, with the ids under which they are delivered; effects that
// are not durable count but are not there. What was delivered is settled by the next
// append, and at the end nothing is left.
func TestOutboxHasWhatIsDelivered(t *testing.T) {
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		t.Run(mode.String(), func(t *testing.T) {
			gaNoLeak(t)
			store, post := duNewStore(memstore.Options{}), &duPost{}
			sender := gaTool{name: "sender", call: func(context.Context, *phase.Context) (engine.Output, error) {
				out := engine.Text("sent")
				out.Command = duSends("by tool")
				out.Command.Schedule(duLater.New("by action"))
				return out, nil
			}}
			eng := duEngine(t, engine.Config{
				Journal: store, EffectMode: mode,
				Model: gaCalls(inference.ToolCall{ID: "c", Name: "sender", Args: "{}"}),
				Plugins: []engine.Plugin{
					post.plugin(), gaTools(sender),
					gaOn("a", phase.StepStart, duEmits(duPing.New("x"), duMail.New("a1"), duPing.New("y"))),
					gaOn("b", phase.StepStart, duEmits(duPing.New("z"))),
					gaOn("c", phase.StepStart, duEmits(duMail.New("c1"), duMail.New("c2"))),
					gaOn("d", phase.StepStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
						cmd.Update(duOwner.With("d")).Emit(duMail.New("d1"))
						return cmd, nil
					}),
					gaOn("e", phase.StepStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
						cmd.Update(duOwner.With("e")).Emit(duPing.New("x"), duMail.New("e1"))
						return cmd, nil
					}),
				},
			})
			th, err := eng.NewThread("t")
			require.NoError(t, err)
			gaRun(t, th)
			require.Empty(t, store.ids(), "at the end of the run all is settled")

			_, err = th.Submit(t.Context(), "outside", duSends("from outside"))
			require.NoError(t, err)
			require.Empty(t, store.ids())
			gaPhase(t, th, phase.StepStart)
			require.Empty(t, store.ids())

			var delivered, texts []string
			for _, m := range post.mails() {
				var id, text string
				_, err := fmt.Sscanf(m, "%s %s", &id, &text)
				require.NoError(t, err)
				delivered, texts = append(delivered, id), append(texts, m[len(id)+1:])
			}
			require.Equal(t, store.emitted(), delivered, "the same ids in the same order")
			step := []string{"a1", "c1", "c2", "d1", "e1"}
			require.Equal(t, slices.Concat(step, []string{"by tool", "by action"}, step, []string{"from outside"}, step), texts)
			require.Equal(t, len(texts), store.settled)
			first := store.emitted()[0]
			id, err := effects.ParseID(first)
			require.NoError(t, err)
			require.Equal(t, 1, id.Index, "a ping came before it")
			c1, err := effects.ParseID(store.emitted()[1])
			require.NoError(t, err)
			require.Equal(t, effects.ID{Run: id.Run, Revision: id.Revision, Index: 4}, c1)
			e1, err := effects.ParseID(store.emitted()[4])
			require.NoError(t, err)
			require.Equal(t, effects.ID{Run: id.Run, Revision: id.Revision + 1, Index: 1}, e1, "the hook that was run again has a commit of its own")

			rep, err := eng.DeliverOutbox(t.Context())
			require.NoError(t, err)
			require.Zero(t, rep)
		})
	}
}

// Capability B7. A run that is refused by the store leaves nothing in the outbox and
// delivers nothing.
func TestOutboxWithoutTheCommit(t *testing.T) {
	store, post := duNewStore(memstore.Options{}), &duPost{}
	th, err := duEngine(t, engine.Config{Journal: store, Plugins: []engine.Plugin{post.plugin()}}).NewThread("t")
	require.NoError(t, err)
	require.NoError(t, store.Close())
	_, err = th.Submit(t.Context(), "x", duSends("never"))
	require.ErrorIs(t, err, engine.ErrJournalClosed)
	store.Reopen()
	_, err = th.Submit(t.Context(), "x", duSends("ever"))
	require.NoError(t, err)
	require.Len(t, post.mails(), 1)
	require.Empty(t, store.ids())

	// A payload that cannot be carried refuses its commit.
	bad := effects.NewSpec[func()]("bad", effects.Durable())
	require.Error(t, bad.New(func() {}).Err())
}

// Capability B7. A waiting run has its outbox empty too, in either mode.
func TestOutboxAtAPause(t *testing.T) {
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		store, post, shop := duNewStore(memstore.Options{}), &duPost{}, newPeShop()
		c := shop.config(store)
		c.EffectMode = mode
		c.Plugins = append(c.Plugins, post.plugin(), gaOn("mailer", phase.BeforeInference, duEmits(duMail.New("x"))))
		th, err := duEngine(t, c).NewThread("t")
		require.NoError(t, err)
		res, err := th.Run(t.Context(), peSpec, engine.Prompt("sell two"))
		require.NoError(t, err)
		require.Equal(t, phase.Waiting, res.Status)
		require.Empty(t, store.ids())
		require.Len(t, post.mails(), 1)
	}
}

// Capability B7. Effects of a delegate go out by the outbox of the thread that
// delegated: one whose handler fails is delivered later.
func TestOutboxOfADelegate(t *testing.T) {
	gaNoLeak(t)
	store, post := duNewStore(memstore.Options{}), &duPost{}
	post.fails(func(context.Context, string) error { return errors.New("no") })
	eng := duEngine(t, engine.Config{
		Journal: store, Plugins: []engine.Plugin{post.plugin(), gaOn("mailer", phase.RunStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Run().Parent != "" {
				cmd.Update(duSent.With(1)).Emit(duPing.New("x"), duMail.New("from below"))
			}
			return cmd, nil
		})},
		Agents: []engine.AgentSpec{{ID: "below"}, {ID: "above", Delegates: []string{"below"}}},
		Model: inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			if len(r.Messages) == 1 && r.Messages[0].Text == "go" {
				return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "c", Name: "delegate_to_below", Args: `{"input":"do"}`})}, nil
			}
			return inference.Response{Message: inference.Assistant("done")}, nil
		}),
	})
	th, err := eng.NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "above", Delegates: []string{"below"}}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, store.emitted(), store.ids(), "the handler failed")
	require.Len(t, store.ids(), 1)

	post.fails(nil)
	next := duEngine(t, engine.Config{Journal: store, Plugins: []engine.Plugin{post.plugin()}})
	rep, err := next.DeliverOutbox(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.OutboxReport{Delivered: 1}, rep)
	require.Empty(t, store.ids())
	require.Len(t, post.mails(), 2)
	require.Equal(t, post.mails()[0], post.mails()[1], "the same id and payload")
	_, err = next.OpenThread(t.Context(), "t")
	require.NoError(t, err, "the thread is as readable as before")
}
