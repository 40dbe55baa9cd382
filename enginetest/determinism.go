package enginetest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// Shuffle disturbs the timing of whoever calls it: it returns at once, yields to
// other goroutines or sleeps for up to a fraction of a millisecond, at random from
// a seed. It may be called concurrently.
type Shuffle func()

// CheckDeterminism runs the scenario n times, with GOMAXPROCS 1, 2 and 8 in turn
// and a Shuffle of another seed each time, and fails the test at the first run that
// does not give the same lines as the first. The first run is not shuffled.
//
// A scenario builds everything anew, calls the shuffle in its hooks, gates, tools,
// handlers and models, and returns the lines of a Recorder. Since GOMAXPROCS is the
// process's, the test must not run in parallel with others; it is set back at the
// end.
func CheckDeterminism(t TB, n int, scenario func(shuffle Shuffle) []string) {
	t.Helper()
	procs := [...]int{1, 2, 8}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var want []string
	for i := range n {
		p := procs[i%len(procs)]
		runtime.GOMAXPROCS(p)
		shuffle := Shuffle(func() {})
		if i > 0 {
			shuffle = newShuffle(uint64(i))
		}
		got := scenario(shuffle)
		if i == 0 {
			want = got
			if len(want) == 0 {
				t.Fatalf("enginetest: the scenario gave no lines; return those of a Recorder")
			}
			continue
		}
		if diff := difference(want, got); diff != "" {
			t.Errorf("enginetest: run %d of %d, with GOMAXPROCS %d, was not like the first: %s", i+1, n, p, diff)
			return
		}
	}
}

func newShuffle(seed uint64) Shuffle {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func() {
		mu.Lock()
		what, much := rng.IntN(16), rng.IntN(8)
		mu.Unlock()
		switch what {
		case 0:
		case 1:
			time.Sleep(time.Duration(much) * 20 * time.Microsecond)
		default:
			for range much {
				runtime.Gosched()
			}
		}
	}
}
