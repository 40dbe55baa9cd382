//go:build unix

package scale

import (
	"fmt"
	"hash/fnv"
	"io"
	"time"
)

// Engines are the servers with what was measured of them on a small machine that the
// workers shared: lower bounds for one of its own.
var Engines = []Engine{
	{Name: "postgres", Single: time.Millisecond, Rate: mixed(5700, 3400), Read: 0.4, Empty: 0.3, Conns: 17, Most: 500},
	{Name: "postgres, pool_max_conns=2", Single: time.Millisecond, Rate: mixed(5700, 3400), Read: 0.4, Empty: 0.3, Conns: 3, Most: 500},
	{Name: "nats", Single: time.Millisecond, Rate: mixed(1600, 200), Read: 0.3, Empty: 0},
}

// Of the writes of a run with two tools, those that emit or settle effects, or take a lease,
// are these: the submission, the lease, two calls, what settles their effects, the outcome.
const (
	planned = 25
	batches = 7
)

// mixed is the rate of a run's writes, out of those of commits without and with effects.
func mixed(plain, effects float64) float64 {
	return planned / ((planned-batches)/plain + batches/effects)
}

// full is how busy the server of a shard may be in a plan.
const full = 0.5

// Plan writes how many shards workers need, for each engine and number of workers: the first
// power of two with which no server is more than half busy or has too many connections. The
// servers are so much faster than the one that was measured.
func Plan(out io.Writer, seed uint64, faster float64) error {
	for _, e := range Engines {
		e.Rate *= faster
		for _, workers := range []int{1, 100, 10_000} {
			for _, notices := range []bool{true, false} {
				l := Load{Workers: workers, Busy: 0.5, Steps: 3, Think: 2 * time.Second, Notices: notices, Seed: seed, For: time.Minute}
				o, ok := least(e, &l)
				if !ok {
					return fmt.Errorf("scale: no number of shards of %s is enough for %d workers", e.Name, workers)
				}
				if _, err := fmt.Fprintf(out, "%s, %d workers, notices %t: %d shards: %s\n", e.Name, workers, notices, l.Shards, o); err != nil {
					return err
				}
			}
		}
	}
	for _, shards := range []int{4, 32, 256} {
		if _, err := fmt.Fprintf(out, "10000 tenants over %d shards: the fullest has %.2f times its part if all are alike, %.2f if the nth is a part of 1/n\n",
			shards, Imbalance(10_000, shards, func(int) float64 { return 1 }), Imbalance(10_000, shards, func(n int) float64 { return 1 / float64(n+1) })); err != nil {
			return err
		}
	}
	return nil
}

func least(e Engine, l *Load) (o Outlook, ok bool) {
	for l.Shards = 1; l.Shards <= l.Workers; l.Shards *= 2 {
		workers := l.Workers / l.Shards
		hopeless := l.Busy*float64(workers*slots)/alone(e, *l).Seconds()*float64(l.Writes()) > e.Rate
		if hopeless || e.Most > 0 && workers*e.Conns > e.Most {
			continue
		}
		if o = Predict(e, *l); o.Used <= full {
			return o, true
		}
	}
	return o, false
}

// Imbalance says how many times its part the fullest of the shards has that tenants are
// spread over by a hash of their names.
func Imbalance(tenants, shards int, weight func(tenant int) float64) float64 {
	loads, sum, most := make([]float64, shards), 0.0, 0.0
	for n := range tenants {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "tenant %d", n)
		x := h.Sum64()
		x ^= x >> 32 // the low bits of FNV alone are not random enough
		loads[x%uint64(shards)] += weight(n)
		sum += weight(n)
	}
	for _, load := range loads {
		most = max(most, load)
	}
	return most * float64(shards) / sum
}
