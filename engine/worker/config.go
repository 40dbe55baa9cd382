package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	crand "crypto/rand"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store"
)

// Config configures a worker. Journal, Engine and Specs are required; a zero field
// otherwise means the default named with it.
type Config struct {
	// Journal is the store that the workers share. It must be a Leaser and a Queue. One
	// that is a Notifier too makes activations start, and cancels take hold, at once.
	Journal store.Journal
	// Engine makes the worker's engine. It gets a configuration with what a worker needs
	// in it, journal, owner, a plugin, and an observer, and adds to that. The worker opens
	// and closes the engine.
	Engine func(engine.Config) (*engine.Engine, error)
	// Specs looks up the agent of an activation. An error counts as a failed attempt. It
	// must be safe for concurrent use.
	Specs func(ctx context.Context, agent string) (engine.AgentSpec, error)
	// Owner names the worker in leases and claims. No two workers that are alive may have
	// the same. Default: made of the host's name and random text.
	Owner string
	// Vault has the values of decisions that clients put there. It is the engine's too.
	Vault engine.Vault

	Concurrency int // runs at the same time: 16
	// Weights are the turns of a priority while others wait as well: 9, 3 and 1 for high,
	// normal and low.
	Weights map[Priority]int
	// TenantWeight says how many turns a tenant has; nil gives each one. It is called
	// from one goroutine.
	TenantWeight func(tenant string) int

	Poll        time.Duration // between two looks for work when no notice comes: 1 s
	Claim       time.Duration // before others look what became of a wake-up that the worker took: 30 s
	Backoff     time.Duration // before the second attempt, doubled with each: 1 s
	MaxBackoff  time.Duration // at most: 5 min
	MaxAttempts int           // before an activation is given up: 8
	Grace       time.Duration // for runs to end when Run is to return: 30 s
	Timeout     time.Duration // for one call of the store that is not the engine's: 10 s

	Quiet   bool         // tell nobody who watches a thread what its runs do
	Observe func(Report) // is told of every activation that is over; called from many goroutines
	Logger  *slog.Logger // nil logs nothing

	Now  func() time.Time // nil is time.Now
	Rand func() float64   // from 0 to 1, for the spread of waits; nil is random. Safe for concurrent use
}

func (c Config) withDefaults() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: Config.%s", engine.ErrConfig, fmt.Sprintf(format, args...)))
	}
	_, leases := c.Journal.(store.Leaser)
	_, queues := c.Journal.(store.Queue)
	switch {
	case c.Journal == nil:
		bad("Journal is missing")
	case !leases || !queues:
		bad("Journal must be a store.Leaser and a store.Queue")
	}
	if c.Engine == nil {
		bad("Engine is missing")
	}
	if c.Specs == nil {
		bad("Specs is missing")
	}
	for name, d := range map[string]*time.Duration{"Poll": &c.Poll, "Claim": &c.Claim, "Backoff": &c.Backoff, "MaxBackoff": &c.MaxBackoff, "Grace": &c.Grace, "Timeout": &c.Timeout} {
		if *d < 0 {
			bad("%s is negative (%v)", name, *d)
		}
	}
	if c.Concurrency < 0 || c.MaxAttempts < 0 {
		bad("Concurrency or MaxAttempts is negative")
	}
	orElse(&c.Concurrency, 16)
	orElse(&c.MaxAttempts, 8)
	orElse(&c.Poll, time.Second)
	orElse(&c.Claim, 30*time.Second)
	orElse(&c.Backoff, time.Second)
	orElse(&c.MaxBackoff, 5*time.Minute)
	orElse(&c.Grace, 30*time.Second)
	orElse(&c.Timeout, callTimeout)
	weights := map[Priority]int{High: 9, Normal: 3, Low: 1}
	for p, w := range c.Weights {
		if _, known := weights[p]; !known || w < 1 {
			bad("Weights: %q has %d; use high, normal or low, and a weight of at least 1", p, w)
		}
		weights[p] = w
	}
	c.Weights = weights
	if c.Owner == "" {
		host, _ := os.Hostname()
		c.Owner = host + "-" + crand.Text()[:10]
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = mathrand.Float64
	}
	return c, errors.Join(errs...)
}

func orElse[T comparable](v *T, standard T) {
	if *v == *new(T) {
		*v = standard
	}
}

// backoff is how long to wait after a number of failed attempts, a quarter more or less.
func (c *Config) backoff(attempts int) time.Duration {
	d := c.MaxBackoff
	if n := max(attempts, 1) - 1; n < 30 && c.Backoff<<n < c.MaxBackoff && c.Backoff<<n > 0 {
		d = c.Backoff << n
	}
	return c.spread(d)
}

func (c *Config) spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + c.Rand()/2))
}
