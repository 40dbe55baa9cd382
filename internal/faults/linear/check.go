package linear

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Kind is a store that histories are taken of.
type Kind struct {
	Name string
	Plan Plan // how hard clients press; seed and sizes are the caller's
	open func(path string, seed uint64) (Store, error)
}

// Kinds are the stores, plain and behind lost and late calls.
func Kinds() []Kind {
	return []Kind{
		{Name: "memstore", open: openMemory},
		{Name: "bolt", Plan: Plan{Impatience: 0.02}, open: openBolt},
		{Name: "memstore+faults", Plan: Plan{Patience: 20 * time.Millisecond}, open: func(path string, seed uint64) (Store, error) {
			return faulty(openMemory, path, seed)
		}},
		{Name: "bolt+faults", Plan: Plan{Patience: 50 * time.Millisecond}, open: func(path string, seed uint64) (Store, error) {
			return faulty(openBolt, path, seed)
		}},
	}
}

// still is a clock that stands.
func still() time.Time { return time.Unix(1_000_000, 0) }

func openMemory(string, uint64) (Store, error) {
	return memstore.New(memstore.Options{Now: still}), nil
}

func openBolt(path string, _ uint64) (Store, error) { return bolt.Open(path, bolt.Options{Now: still}) }

func faulty(open func(string, uint64) (Store, error), path string, seed uint64) (Store, error) {
	inner, err := open(path, seed)
	if err != nil {
		return nil, err
	}
	return faultstore.New(inner, faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{
		faultstore.FailBefore: 0.02, faultstore.FailAfter: 0.02, faultstore.Repeat: 0.02, faultstore.Delay: 0.01,
		faultstore.Stale: 0.02, faultstore.NeverAnswer: 0.002, faultstore.Crash: 0.001,
	}})
}

// Figures are what a number of histories came to.
type Figures struct {
	Store      string
	Histories  int
	Operations int
	Won        int // commits acknowledged
	Refused    int // calls that lost to another client's
	Unknown    int // calls of unknown outcome
	Illegal    int
	Undecided  int // the checker ran out of time
	Seeds      []uint64
}

// String returns the line that the command prints. The seeds are those of what was
// illegal or undecided.
func (f Figures) String() string {
	line := fmt.Sprintf("linear store=%s histories=%d operations=%d commits=%d refused=%d unknown=%d illegal=%d undecided=%d",
		f.Store, f.Histories, f.Operations, f.Won, f.Refused, f.Unknown, f.Illegal, f.Undecided)
	if len(f.Seeds) > 0 {
		line += fmt.Sprintf(" seeds=%d", f.Seeds)
	}
	return line
}

// Err says which bound was not met, or nil.
func (f Figures) Err() error {
	if f.Illegal > 0 || f.Undecided > 0 {
		return fmt.Errorf("linear: %s: %d of %d histories are illegal, %d undecided", f.Store, f.Illegal, f.Histories, f.Undecided)
	}
	return nil
}

// Run takes so many histories of a kind of store, with the seeds from plan.Seed on,
// and checks each. Files go to dir.
func (k Kind) Run(ctx context.Context, dir string, histories int, plan Plan) (Figures, error) {
	f := Figures{Store: k.Name}
	plan.Impatience, plan.Patience = k.Plan.Impatience, k.Plan.Patience
	for range histories {
		verdict, h, err := k.once(ctx, filepath.Join(dir, fmt.Sprintf("%s-%d.db", k.Name, plan.Seed)), plan)
		if err != nil {
			return f, fmt.Errorf("seed %d: %w", plan.Seed, err)
		}
		f.Histories++
		f.Operations += len(h.Operations)
		f.Won += h.Won
		f.Refused += h.Refused
		f.Unknown += h.Unknown
		switch verdict {
		case porcupine.Illegal:
			f.Illegal++
			f.Seeds = append(f.Seeds, plan.Seed)
		case porcupine.Unknown:
			f.Undecided++
			f.Seeds = append(f.Seeds, plan.Seed)
		}
		plan.Seed++
	}
	return f, nil
}

// checkTime is how long porcupine may look at one history.
const checkTime = time.Minute

func (k Kind) once(ctx context.Context, path string, plan Plan) (porcupine.CheckResult, History, error) {
	store, err := k.open(path, plan.Seed)
	if err != nil {
		return "", History{}, err
	}
	h, err := Record(ctx, store, plan)
	if err := errors.Join(err, store.Close()); err != nil {
		return "", h, err
	}
	return porcupine.CheckOperationsTimeout(model, h.Operations, checkTime), h, nil
}
