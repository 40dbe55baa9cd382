// Package outbox kills the dispatcher of a store's outbox between a delivery and its
// settlement, again and again, and checks at the receiver that each effect came, that
// those that came more than once did so under the same key, and that none came again
// after its settlement was acknowledged.
package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Plan says how many effects there are and how often their dispatcher dies.
type Plan struct {
	Store   string // "memstore": workers stop in the middle; else child processes are killed
	Effects int
	Every   int // deliveries in the life of a dispatcher, on average
	Seed    uint64
}

// Figures are what the receiver saw.
type Figures struct {
	Plan
	Deaths     int
	Missing    int // effects that never came
	Duplicates int // deliveries after the first
	Commits    int // that emitted them
}

// String returns the line that the command prints.
func (f Figures) String() string {
	return fmt.Sprintf("outbox store=%s effects=%d commits=%d deaths=%d missing=%d duplicates=%d other_key=0 after_settle=0 seed=%d",
		f.Store, f.Effects, f.Commits, f.Deaths, f.Missing, f.Duplicates, f.Seed)
}

// Err says which bound was not met, or nil.
func (f Figures) Err() error {
	switch {
	case f.Missing > 0:
		return fmt.Errorf("outbox: %d of %d effects never came", f.Missing, f.Effects)
	case f.Deaths == 0 || f.Duplicates == 0:
		return fmt.Errorf("outbox: %d deaths and %d duplicates, so the check sees nothing", f.Deaths, f.Duplicates)
	}
	return nil
}

const (
	threads   = 50
	perCommit = 20
)

// emit adds the effects, many to a commit and to the lanes in turn, each with a body of its
// own, and returns the key of each body.
func emit(ctx context.Context, j engine.Journal, f *Figures, lanes ...string) (emitted map[string]string, err error) {
	emitted = map[string]string{}
	bases := map[string]uint64{}
	for len(emitted) < f.Effects {
		id := fmt.Sprintf("thread/%d", f.Commits%threads)
		c := engine.JournalCommit{Thread: id, Base: bases[id], ID: [16]byte{1, byte(f.Commits), byte(f.Commits >> 8), byte(f.Commits >> 16)}, Record: []byte{1}}
		for range min(perCommit, f.Effects-len(emitted)) {
			body := fmt.Sprintf("effect-%d-%d", f.Seed, len(emitted))
			emitted[body] = engine.EffectRef{Thread: id, Revision: c.Base + 1, Index: uint32(len(c.Effects))}.String()
			c.Effects = append(c.Effects, engine.JournalEffect{Lane: lanes[len(c.Effects)%len(lanes)], Body: []byte(body)})
		}
		if bases[id], err = j.Append(ctx, c); err != nil {
			return nil, err
		}
		f.Commits++
	}
	return emitted, nil
}

// Run emits the effects and has them delivered. Files go to dir.
func Run(ctx context.Context, dir string, p Plan) (Figures, error) {
	switch p.Store {
	case "bolt":
		return runBolt(ctx, dir, p)
	case "memstore":
		return runMemory(ctx, p)
	}
	return Figures{Plan: p}, fmt.Errorf("outbox: there is no store %q; want memstore or bolt", p.Store)
}

func runBolt(ctx context.Context, dir string, p Plan) (Figures, error) {
	f := Figures{Plan: p}
	path := filepath.Join(dir, "outbox.db")
	j, err := bolt.Open(path, bolt.Options{NoSync: true}) // only what comes later is on trial
	if err != nil {
		return f, err
	}
	emitted, err := emit(ctx, j, &f, lane)
	if err := errors.Join(err, j.Close()); err != nil {
		return f, err
	}
	random := rand.New(rand.NewPCG(p.Seed, 15))
	r := newReceiver()
	for len(r.settled) < p.Effects {
		cmd, err := Dispatcher.Command(ctx, path, fmt.Sprint(f.Deaths))
		if err != nil {
			return f, err
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return f, err
		}
		if err := cmd.Start(); err != nil {
			return f, err
		}
		err = r.listen(out, 1+random.IntN(2*p.Every), cmd.Process.Kill)
		ended := cmd.Wait()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return f, fmt.Errorf("outbox: seed %d: %w %s", p.Seed, err, &stderr)
		}
		if ended == nil {
			break // nothing was due any more
		}
		if stderr.Len() > 0 {
			return f, fmt.Errorf("outbox: seed %d: the dispatcher ended by itself: %w %s", p.Seed, ended, &stderr)
		}
		f.Deaths++
	}
	r.tally(emitted, &f)
	_, err = bolt.Verify(path, bolt.Options{})
	return f, errors.Join(errors.Join(r.faults...), err)
}

// errDeath ends a worker.
var errDeath = errors.New("outbox: the dispatcher died")

func runMemory(ctx context.Context, p Plan) (Figures, error) {
	f := Figures{Plan: p}
	now := time.Unix(1_000_000, 0)
	store := memstore.New(memstore.Options{Now: func() time.Time { return now }})
	emitted, err := emit(ctx, store, &f, lane)
	if err != nil {
		return f, err
	}
	random := rand.New(rand.NewPCG(p.Seed, 16))
	r := newReceiver()
	var mu sync.Mutex
	for {
		left := 1 + random.IntN(2*p.Every)
		died := false
		err := drain(ctx, store, fmt.Sprint(f.Deaths), func(d delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if died {
				return errDeath // before the delivery
			}
			r.deliver(d)
			if left--; left == 0 {
				died = true
				return errDeath
			}
			return nil
		}, func(key string) error {
			mu.Lock()
			defer mu.Unlock()
			r.settle(key)
			return nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, errDeath) {
			return f, err
		}
		f.Deaths++
		now = now.Add(time.Hour) // the claims of the dead run out
	}
	r.tally(emitted, &f)
	return f, errors.Join(append(r.faults, store.Close())...)
}
