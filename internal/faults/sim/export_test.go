package sim

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// Mutants are stores with one mistake each, which the simulation must find.
var Mutants = map[string]func(store) store{
	"drops an append and says that it kept it":  func(s store) store { return &drops{store: s} },
	"keeps an append twice":                     func(s store) store { return &twice{store: s} },
	"lets a former owner write":                 func(s store) store { return &unfenced{store: s} },
	"answers a conflict as a success":           func(s store) store { return &agrees{store: s} },
	"forgets which commit it took":              func(s store) store { return &forgets{store: s} },
	"loses effects":                             func(s store) store { return &effectless{store: s} },
	"settles effects that nobody delivered":     func(s store) store { return &settles{store: s} },
	"settles effects with any commit":           func(s store) store { return &eager{store: s} },
	"loads a thread without its newest record":  func(s store) store { return &stale{store: s} },
	"loads records in another order":            func(s store) store { return &shuffles{store: s} },
	"keeps another snapshot than it was given":  func(s store) store { return &mixesUp{store: s} },
	"answers with a revision that is not there": func(s store) store { return &ahead{store: s} },
	"changes a record":                          func(s store) store { return &changes{store: s} },
}

// WithMutant returns o with a mutant as the store.
func (o Options) WithMutant(m func(store) store) Options {
	o.mutant = m
	return o
}

// CrashAt returns o for a world of one process without other faults that dies at its
// n-th append, before the store has it or after.
func (o Options) CrashAt(n int, late bool) Options {
	o.change = func(p *plan) {
		*p = p.withoutFaults()
		p.clients, p.dieAt, p.dieLate = 1, n, late
	}
	return o
}

// StoreCrashAt returns o for a world of one process whose store crashes at its n-th
// append.
func (o Options) StoreCrashAt(n int) Options {
	o.change = func(p *plan) {
		*p = p.withoutFaults()
		p.clients = 1
		p.faults.At = map[int]faultstore.Fault{n: faultstore.Crash}
	}
	return o
}

// nth is true at the n-th question and at every n-th one after it.
type nth struct{ asked atomic.Int64 }

func (n *nth) is(k int64) bool { return n.asked.Add(1)%k == 0 }

type drops struct {
	store
	nth nth
}

func (m *drops) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	if m.nth.is(7) {
		return c.Base + 1, nil
	}
	return m.store.Append(ctx, c)
}

type twice struct {
	store
	nth nth
}

func (m *twice) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	rev, err := m.store.Append(ctx, c)
	if err == nil && m.nth.is(7) {
		c.Base = rev
		_, _ = rand.Read(c.ID[:])
		_, _ = m.store.Append(ctx, c)
	}
	return rev, err
}

type unfenced struct{ store }

func (m *unfenced) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	rev, err := m.store.Append(ctx, c)
	if !errors.Is(err, engine.ErrFenced) && !errors.Is(err, engine.ErrJournalConflict) {
		return rev, err
	}
	image, err := m.Load(ctx, c.Thread, 0)
	if err != nil {
		return 0, err
	}
	forced := c
	forced.Base, forced.Epoch = image.Revision, image.Epoch
	_, err = m.store.Append(ctx, forced)
	return c.Base + 1, err
}

type agrees struct{ store }

func (m *agrees) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	rev, err := m.store.Append(ctx, c)
	if errors.Is(err, engine.ErrJournalConflict) || errors.Is(err, engine.ErrFenced) {
		return c.Base + 1, nil
	}
	return rev, err
}

type forgets struct{ store }

func (m *forgets) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	image, err := m.Load(ctx, c.Thread, 0)
	if err != nil {
		return 0, err
	}
	if image.Revision != c.Base {
		return 0, &engine.JournalConflict{Thread: c.Thread, Base: c.Base, Have: image.Revision}
	}
	return m.store.Append(ctx, c)
}

type effectless struct{ store }

func (m *effectless) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	c.Effects = nil
	return m.store.Append(ctx, c)
}

type settles struct{ store }

func (m *settles) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]engine.Claim, error) {
	claims, err := m.store.Claim(ctx, lane, worker, limit, ttl)
	for _, c := range claims {
		err = errors.Join(err, m.Settle(ctx, c, engine.Settlement{}))
	}
	return nil, err
}

// eager settles with a commit what an earlier one has put into the outbox.
type eager struct {
	store
	last atomic.Pointer[engine.EffectRef]
}

func (m *eager) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	rev, err := m.store.Append(ctx, c)
	if err == nil && len(c.Effects) > 0 {
		if last := m.last.Swap(&engine.EffectRef{Thread: c.Thread, Revision: rev}); last != nil {
			claims, _ := m.store.Claim(ctx, c.Effects[0].Lane, "eager", 100, time.Millisecond)
			for _, claim := range claims {
				_ = m.store.Settle(ctx, claim, engine.Settlement{})
			}
		}
	}
	return rev, err
}

type stale struct{ store }

func (m *stale) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	image, err := m.store.Load(ctx, thread, atLeast)
	if n := len(image.Tail); err == nil && n > 0 {
		image.Tail = image.Tail[:n-1]
	}
	return image, err
}

type shuffles struct{ store }

func (m *shuffles) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	image, err := m.store.Load(ctx, thread, atLeast)
	slices.Reverse(image.Tail)
	return image, err
}

type mixesUp struct {
	store
	other atomic.Pointer[[]byte]
}

func (m *mixesUp) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	if c.Snapshot != nil {
		mine := slices.Clone(c.Snapshot)
		if other := m.other.Swap(&mine); other != nil {
			c.Snapshot = *other
		}
	}
	return m.store.Append(ctx, c)
}

type ahead struct {
	store
	nth nth
}

func (m *ahead) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	rev, err := m.store.Append(ctx, c)
	if err == nil && m.nth.is(7) {
		rev++
	}
	return rev, err
}

type changes struct {
	store
	nth nth
}

func (m *changes) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	if n := len(c.Record); n > 0 && m.nth.is(7) {
		c.Record = append(slices.Clone(c.Record[:n-1]), ' ', c.Record[n-1])
	}
	return m.store.Append(ctx, c)
}
