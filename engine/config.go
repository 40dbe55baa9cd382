package engine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// Config is what New builds an engine from. New copies it; plugins, models and
// the other interface values are shared by all runs and must be safe for
// concurrent use.
type Config struct {
	// Plugins in registration order, which decides every tie.
	Plugins []Plugin

	// Model answers requests of agents whose model_id is not in Models.
	Model inference.Model
	// Models by model_id. When it is not empty and Model is nil, an agent must name
	// one of them.
	Models map[string]inference.Model
	// Stream asks models that can stream to do so; chunks become events.
	Stream bool

	// Agents can be handed off to and delegated to by id.
	Agents []AgentSpec

	// GateDefault says what becomes of a tool call that no gate has an opinion on.
	GateDefault GateDefault
	// Resolver answers tickets in place. Without one, a ticket's default counts,
	// and without that the run waits.
	Resolver gate.Resolver

	// Schemas checks answers to tickets that have a schema. Without it such tickets are
	// not asked.
	Schemas SchemaChecker
	// Vault keeps secret answers until their tool call is over, so that they survive
	// the process. Nil keeps them in memory.
	Vault Vault

	// EffectMode says whether a phase waits for its effects.
	EffectMode effects.Mode

	// Journal keeps threads where they outlive the process. A commit counts once it
	// is kept there. Nil keeps them in memory, at no cost. The engine does not close it.
	Journal Journal
	// Owner names this engine among those that share the journal. With it, and a
	// journal that is a Leaser, a run has the lease of its thread while it is under
	// way, and Run and Resume return ErrLeaseHeld while somebody else has it. Without
	// it, of two engines that run one thread the later one learns of it when it commits.
	Owner string

	Limits Limits

	// Observers get the events of every run.
	Observers []Observer
	// Logger gets them too, as log lines. Nil logs nothing.
	Logger *slog.Logger

	// Now is the clock of events and reports; nil means time.Now.
	Now func() time.Time
	// NewID makes ids of runs and threads; nil means random ones. It must never
	// return an id twice.
	NewID func() string

	// CheckFreeze verifies after each gather that no hook changed a value of a key
	// declared Shared. It costs a walk over those values; enginetest turns it on.
	CheckFreeze bool
}

// GateDefault says whether a tool call may run when no gate has an opinion.
type GateDefault uint8

// The defaults.
const (
	DefaultAllow GateDefault = iota
	DefaultDeny
)

// Limits bound what runs may use. A zero field means the default named with it;
// a negative one is an error.
type Limits struct {
	PhaseRounds     int           // action rounds per phase, and passes of the gates over one call: 16
	Continues       int           // continuations after a natural end, per run: 8
	Concurrency     int           // hooks, gates or tools that run at the same time: 1024
	CommitRetries   int           // repeats of one hook or action over conflicts with writers outside its phase: 64
	DeadLetters     int           // dead letters kept per thread, the oldest dropped first: 256
	Depth           int           // nesting of delegated runs: 8
	FanOut          int           // delegates of one run that work at the same time: 16
	History         int           // revisions kept per thread for At and Diff: 16
	HookTimeout     time.Duration // for hooks, gates and transforms without a Timeout of their own: none
	ToolTimeout     time.Duration // for one tool call: none
	ActionTimeout   time.Duration // for action handlers without a Timeout of their own: none
	EffectTimeout   time.Duration // for effect handlers without a Timeout of their own: none
	EffectQueue     int           // undelivered background effects per run: 1024
	JournalTimeout  time.Duration // for keeping one commit, repeats included: 30 s
	Lease           time.Duration // that a run has its thread for without renewing it: 30 s
	OutboxDelay     time.Duration // before another process may deliver a durable effect, where there are others: 1 min
	EffectTries     int           // deliveries of a durable effect before it is given up: 8
	SlowHook        time.Duration // a hook that takes longer is warned about: 5 s
	Grace           time.Duration // for RunEnd, background effects and observers at the end of a run, and for Engine.Close: 10 s
	EventBuffer     int           // events an observer may be behind: 4096
	DelegateTimeout time.Duration // for one delegated run: none
}

// standardLimits are the defaults. Those that are left out have none.
func standardLimits() Limits {
	return Limits{
		PhaseRounds: 16, Continues: 8, Concurrency: 1024, CommitRetries: 64, DeadLetters: 256, Depth: 8, FanOut: 16, History: 16,
		EffectQueue: 1024, EffectTries: 8, OutboxDelay: time.Minute, EventBuffer: 4096,
		JournalTimeout: 30 * time.Second, Lease: 30 * time.Second, SlowHook: 5 * time.Second, Grace: 10 * time.Second,
	}
}

func (l Limits) withDefaults() (Limits, error) {
	var errs []error
	given, standard := reflect.ValueOf(&l).Elem(), reflect.ValueOf(standardLimits())
	for i := range given.NumField() {
		switch v := given.Field(i); {
		case v.Int() < 0:
			errs = append(errs, fmt.Errorf("%w: Limits.%s is negative (%v)", ErrConfig, given.Type().Field(i).Name, v))
		case v.IsZero():
			v.Set(standard.Field(i))
		}
	}
	return l, errors.Join(errs...)
}

func (c Config) withDefaults() (Config, error) {
	limits, err := c.Limits.withDefaults()
	c.Limits = limits
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = rand.Text
	}
	if c.GateDefault > DefaultDeny {
		err = errors.Join(err, fmt.Errorf("%w: GateDefault %d; use DefaultAllow or DefaultDeny", ErrConfig, c.GateDefault))
	}
	if c.EffectMode > effects.Background {
		err = errors.Join(err, fmt.Errorf("%w: EffectMode %d; use effects.Inline or effects.Background", ErrConfig, c.EffectMode))
	}
	for i, o := range c.Observers {
		if o == nil {
			err = errors.Join(err, fmt.Errorf("%w: Observers[%d] is nil", ErrConfig, i))
		}
	}
	for id, m := range c.Models {
		if m == nil {
			err = errors.Join(err, fmt.Errorf("%w: Models[%q] is nil", ErrConfig, id))
		}
	}
	return c, err
}
