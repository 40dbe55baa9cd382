package bench

// Work is one way of doing a piece of work. It prepares, calls measure once with a
// step that does the work n times in a row, and cleans up. It returns the error of
// measure, or its own. The step may be called any number of times, by one goroutine,
// and only until measure returns.
type Work func(measure func(step func(n int) error) error) error

// Measure says what of a work is compared with its baseline.
type Measure uint8

// The measures.
const (
	// Time is the time of the work divided by that of the baseline; at most Limit.
	Time Measure = iota
	// Throughput is the time of the baseline divided by that of the work: how many times
	// as much the work gets done. At least Limit.
	Throughput
	// Bytes is the allocated bytes of the work divided by those of the baseline; at most
	// Limit.
	Bytes
	// Kept is the bytes of heap and stacks that one step(n) leaves in use, divided by n,
	// less those of the baseline; at most Limit. The step keeps what it made until measure
	// has returned, and is called once.
	Kept
)

// Row is one line of the table: a piece of work, what it is measured against in the
// same process, and the target.
type Row struct {
	ID       string  // of the target, "P1"; several rows may have it
	Case     string  // tells the rows of one ID apart, as key=value: "hooks=64"
	Name     string  // the work in words: "gather of 64 hooks"
	Baseline string  // what it is measured against, in words
	Impl     string  // the baseline in one word, for the names of benchmarks: "errgroup"
	Measure  Measure // what Limit is about
	Limit    float64 // the target; 0 states the number without one
	NoAllocs bool    // the target also says: not one allocation
	NoThread bool    // the target also says: no goroutine is left; for Kept
	Work     Work
	Base     Work // nil when there is nothing to compare with
}

// Key names the row among all: its ID and Case, "P1/hooks=64".
func (r Row) Key() string { return r.ID + "/" + r.Case }

// Rival is another library doing the work of a row, for comparison. It has no verdict.
type Rival struct {
	ID   string // in one word, for the names of benchmarks: "eino-pregel"
	Row  string // Key of the row whose work it does
	Name string // library, version and way: "eino v0.7.36, Pregel graph"
	Note string // where the comparison is unfair, and what it does instead: "loses 7 of 8 writes"
	Work Work
}

// Rows returns the targets P1 to P12, in order.
func Rows() []Row {
	var all []Row
	for _, part := range [][]Row{fanoutRows(), cascadeRows(), storeRows(), memoryRows(), overlapRows(), stepRows(), runsRows(), queueRows()} {
		all = append(all, part...)
	}
	return all
}
