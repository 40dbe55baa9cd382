package sim_test

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/sim"
)

// world runs the world of one seed in a bubble. A world that gets stuck without
// waiting for anything, which no bubble notices, ends the test after a minute.
func world(t *testing.T, seed uint64, o sim.Options) (r sim.Report) {
	t.Helper()
	stuck := time.AfterFunc(time.Minute, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("seed %d is stuck\n%s", seed, buf[:runtime.Stack(buf, true)]))
	})
	defer stuck.Stop()
	defer func() {
		if v := recover(); v != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, v))
		}
	}()
	synctest.Test(t, func(*testing.T) { r = sim.Run(seed, o) })
	return r
}

// seeds runs the worlds of many seeds, some at a time, and returns all counts.
func seeds(t *testing.T, from, n uint64, o sim.Options, failed func(sim.Report)) (all sim.Stats) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are small, and many
	var mu sync.Mutex
	var next atomic.Uint64
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for {
					k := next.Add(1) - 1
					if k >= n || t.Failed() {
						return
					}
					r := world(t, from+k, o)
					mu.Lock()
					all.Add(r.Stats)
					if len(r.Violations) > 0 {
						failed(r)
					}
					mu.Unlock()
				}
			})
		}
	})
	return all
}

// Capability B6. Capability B7. Nothing that is acknowledged is lost or done twice,
// whatever the store and the processes do: 2,000 worlds of faults, or as many as
// FIXPOINT_SEEDS says, from FIXPOINT_FROM on. FIXPOINT_SEED runs one and tells its
// story; FIXPOINT_SHOW is how many bad ones are shown.
func TestSimulation(t *testing.T) {
	if one := os.Getenv("FIXPOINT_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		require.NoError(t, err)
		r := world(t, seed, sim.Options{Trace: true})
		t.Logf("seed %d\n%s\n%s", seed, strings.Join(r.Trace, "\n"), r.Stats)
		require.Empty(t, r.Violations)
		return
	}
	n, from := number(t, "FIXPOINT_SEEDS", standardSeeds), number(t, "FIXPOINT_FROM", 1)
	start := time.Now()
	bad, most := 0, number(t, "FIXPOINT_SHOW", 10)
	all := seeds(t, from, n, sim.Options{}, func(r sim.Report) {
		if bad++; uint64(bad) <= most {
			t.Errorf("FIXPOINT_SEED=%d: %s", r.Seed, strings.Join(r.Violations, "\n\t"))
		}
	})
	if n >= 1000 {
		covered(t, all)
	}
	t.Logf("%d seeds from %d in %s, %d of them with violations: %s", n, from, time.Since(start).Round(time.Millisecond), bad, all)
}

// number reads one from the environment.
func number(t *testing.T, name string, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// covered checks that what the worlds are about did happen in them.
func covered(t *testing.T, all sim.Stats) {
	t.Helper()
	v := reflect.ValueOf(all)
	for i := range v.NumField() {
		if v.Field(i).Int() < 10 {
			t.Errorf("%s: %d", v.Type().Field(i).Name, v.Field(i).Int())
		}
	}
}
