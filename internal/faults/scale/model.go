//go:build unix

package scale

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Engine is what the model knows of one database, or one stream.
type Engine struct {
	Name   string
	Single time.Duration // that one write takes when nothing else is done
	Rate   float64       // writes in a second when many are done at the same time
	Read   float64       // how much of a write a load costs the server
	Empty  float64       // the same of a claim that finds nothing
	Conns  int           // connections that a worker has; 0 if its calls share one
	Most   int           // connections that the engine takes well, all workers together; 0 is no limit
}

// Load is what a cluster is to do.
type Load struct {
	Workers int     // of 16 runs at the same time each
	Shards  int     // databases or streams, which the threads are spread over; each worker serves one
	Busy    float64 // the part of all slots that is to be used, were the store to take no time
	Steps   int     // model calls of a run, each but the last with one tool call and one effect
	Think   time.Duration
	Notices bool // every submission wakes all workers of the shard
	Seed    uint64
	For     time.Duration // of virtual time, as long a time before it does not count
}

// What a run does to its store, as Measure counts it: commits for its begin and end, and for
// each step with a tool; and so on.
const (
	slots        = 16
	runCommits   = 7
	stepCommits  = 6
	inboxCommits = 2 // the submission and the outcome
	runLeases    = 2
	runLoads     = 7
	runClaims    = 2 // a claim and its settlement
	idleCalls    = 2 // of a worker, in a second
	leaseEvery   = 10 * time.Second
)

// Writes returns how many writes a run is, without those that prolong its lease.
func (l Load) Writes() int {
	return runCommits + stepCommits*(l.Steps-1) + inboxCommits + runLeases + runClaims
}

// Outlook is what the model says.
type Outlook struct {
	Offered float64       // runs in a second that were submitted
	Runs    float64       // that ended, in a second
	Used    float64       // part of the time that the server of a shard was busy
	Write   time.Duration // a write takes in the middle
	Slow    time.Duration // and at the 99th percentile
	Run     time.Duration // a run takes from its submission to its end, in the middle
	Slots   float64       // part of the slots that was used
	Conns   int           // connections to each shard's server
	Herd    float64       // claims in a second and shard that found nothing because a notice woke many
}

// String returns a line of it.
func (o Outlook) String() string {
	return fmt.Sprintf("offered %.0f runs/s, done %.0f; server %.0f %% busy; write %s, p99 %s; run %s; %.0f %% of slots; %d connections a shard; %.0f empty claims/s a shard",
		o.Offered, o.Runs, 100*o.Used, o.Write.Round(10*time.Microsecond), o.Slow.Round(10*time.Microsecond), o.Run.Round(time.Millisecond), 100*o.Slots, o.Conns, o.Herd)
}

// Predict runs the model of one shard and multiplies. The server of a shard is a queue that
// does writes at Rate, one after the other, each of which takes Single at least; reads and
// empty claims take their part of a write there. Runs come at random, at a constant rate, and
// wait for a slot; a model call takes Think on average, spread exponentially; all
// workers are the same, and none fails.
func Predict(e Engine, l Load) Outlook {
	workers := max(1, l.Workers/l.Shards) // of the shard
	s := &shard{
		engine: e, load: l, random: rand.New(rand.NewPCG(l.Seed, 31)), free: workers * slots, workers: workers,
		service: time.Duration(float64(time.Second) / e.Rate),
		rate:    l.Busy * float64(workers*slots) / alone(e, l).Seconds(),
	}
	s.run()
	n := float64(l.Shards)
	out := Outlook{
		Offered: s.rate * n, Runs: float64(s.done) / l.For.Seconds() * n, Used: min(1, float64(s.work)/float64(l.For)),
		Slots: float64(s.held) / float64(l.For) / float64(workers*slots), Conns: workers * e.Conns,
		Herd: float64(s.herd) / l.For.Seconds(),
	}
	out.Write, out.Slow = quantile(s.writes, 0.5), quantile(s.writes, 0.99)
	out.Run = quantile(s.runs, 0.5)
	return out
}

// alone is how long a run takes while nobody else does anything.
func alone(e Engine, l Load) time.Duration {
	return time.Duration(l.Steps)*l.Think + time.Duration(l.Writes())*e.Single
}

func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// shard is one simulated server with its workers.
type shard struct {
	engine  Engine
	load    Load
	random  *rand.Rand
	service time.Duration
	rate    float64 // of submissions
	workers int

	now     time.Duration
	next    events
	serial  int
	until   time.Duration // the server has work till then
	free    int           // slots
	waiting []time.Duration
	herding time.Duration // the claims that the last notice made are over then

	done   int
	work   time.Duration // of the server, after the start
	held   time.Duration // by runs, all slots together
	herd   int
	writes []time.Duration
	runs   []time.Duration
}

// event is something that happens later.
type event struct {
	at     time.Duration
	serial int // for those of the same time
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].serial < e[j].serial
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func (s *shard) after(d time.Duration, do func()) {
	s.serial++
	heap.Push(&s.next, event{s.now + d, s.serial, do})
}

func (s *shard) random1(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-s.random.Float64()) * float64(mean))
}

// counted reports whether the start is over.
func (s *shard) counted() bool { return s.now >= s.load.For }

func (s *shard) run() {
	s.after(0, s.submit)
	s.after(0, s.idle)
	for len(s.next) > 0 {
		e := heap.Pop(&s.next).(event)
		if s.now = e.at; s.now >= 2*s.load.For {
			return
		}
		e.do()
	}
}

// serve puts work on the server, in parts of a write, and returns when it is done.
func (s *shard) serve(parts float64) time.Duration {
	cost := time.Duration(parts * float64(s.service))
	s.until = max(s.until, s.now) + cost
	if s.counted() {
		s.work += cost
	}
	return s.until
}

// write does so many writes one after the other.
func (s *shard) write(n int, then func()) {
	if n == 0 {
		then()
		return
	}
	took := max(s.serve(1)-s.now, s.engine.Single)
	if s.counted() {
		s.writes = append(s.writes, took)
	}
	s.after(took, func() { s.write(n-1, then) })
}

func (s *shard) submit() {
	s.after(s.random1(time.Duration(float64(time.Second)/s.rate)), s.submit)
	at := s.now
	s.write(1, func() { s.enqueue(at) })
}

func (s *shard) enqueue(at time.Duration) {
	s.waiting = append(s.waiting, at)
	if idle := min(s.workers, s.free) - 1; s.load.Notices && idle > 0 && s.now >= s.herding {
		// Each worker with a free slot looks once, however many notices come meanwhile.
		s.herding = s.serve(float64(idle) * s.engine.Empty)
		if s.counted() {
			s.herd += idle
		}
	}
	s.begin()
}

func (s *shard) begin() {
	if s.free == 0 || len(s.waiting) == 0 {
		return
	}
	s.free--
	submitted, began := s.waiting[0], s.now
	s.waiting = s.waiting[1:]
	s.serve(runLoads * s.engine.Read)
	s.write(runClaims+runLeases+runCommits/2, func() { s.step(0, submitted, began) })
}

func (s *shard) step(n int, submitted, began time.Duration) {
	think := s.random1(s.load.Think)
	s.serve(float64(think) / float64(leaseEvery)) // to prolong the lease
	s.after(think, func() {
		if n == s.load.Steps-1 {
			s.write(runCommits-runCommits/2+inboxCommits-1, func() { s.end(submitted, began) })
			return
		}
		s.write(stepCommits, func() { s.step(n+1, submitted, began) })
	})
}

func (s *shard) end(submitted, began time.Duration) {
	s.free++
	s.held += max(0, s.now-max(began, s.load.For))
	if s.counted() {
		s.done++
		s.runs = append(s.runs, s.now-submitted)
	}
	s.begin()
}

// idle looks for work, once a second for each worker.
func (s *shard) idle() {
	s.serve(idleCalls * s.engine.Empty * float64(s.workers) / 10)
	s.after(time.Second/10, s.idle)
}
