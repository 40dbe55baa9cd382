package faultstore

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// Fault is what goes wrong with a call.
type Fault uint8

// The faults. Delay, Repeat, Stale and Crash strike appends only, and Lose strikes
// notices only; a rate for them means nothing to other operations. On operations that
// change nothing FailAfter is FailBefore.
const (
	// None is the zero value: the call is passed on.
	None Fault = iota
	// FailBefore fails the call with ErrInjected; it is not passed on.
	FailBefore
	// FailAfter passes the call on and fails it with store.ErrUnknownOutcome,
	// whatever the answer was.
	FailAfter
	// NeverAnswer passes the call on or does not, as the seed has it, and returns
	// when its context ends or the store is closed or crashes, with
	// store.ErrUnknownOutcome.
	NeverAnswer
	// Repeat passes the append on twice and returns the second answer.
	Repeat
	// Delay fails the append with store.ErrUnknownOutcome and passes it on later.
	Delay
	// Stale passes the append on, and once more later.
	Stale
	// Crash passes the append on or does not, as the seed has it, and fails it and
	// all later calls with ErrCrashed until Reopen.
	Crash
	// Lose does not pass the notice on, and says that all went well.
	Lose

	faults // their number
)

var faultNames = [faults]string{"none", "fail_before", "fail_after", "never_answer", "repeat", "delay", "stale", "crash", "lose"}

// String returns the fault's name, such as "fail_before".
func (f Fault) String() string {
	if f >= faults {
		return fmt.Sprintf("fault(%d)", uint8(f))
	}
	return faultNames[f]
}

// Op is an operation of a store.
type Op string

// The operations, by the names of their methods.
const (
	OpAppend  Op = "append"
	OpLoad    Op = "load"
	OpThreads Op = "threads"
	OpPrune   Op = "prune"
	OpDelete  Op = "delete"
	OpAcquire Op = "acquire"
	OpRenew   Op = "renew"
	OpRelease Op = "release"
	OpClaim   Op = "claim"
	OpSettle  Op = "settle"
	OpLanes   Op = "lanes"
	OpDepth   Op = "depth"
	OpDead    Op = "dead"
	OpRequeue Op = "requeue"
	OpNotify  Op = "notify"
	OpListen  Op = "listen"
)

// Event is a call and what happened to it.
type Event struct {
	Op    Op
	Name  string // thread, lane, prefix of lanes or topic
	Call  int    // number of the call among those of this operation on this name, from 1
	Fault Fault
}

// String returns the event as "append t1 #3: delay".
func (e Event) String() string { return fmt.Sprintf("%s %s #%d: %s", e.Op, e.Name, e.Call, e.Fault) }

// dice are the throws that belong to one call.
type dice struct{ state uint64 }

func (c Config) dice(op Op, name string, call int) *dice {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%d", c.Seed, op, name, call)
	return &dice{h.Sum64()}
}

// next returns a number that is evenly spread; the constants are those of splitmix64.
func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *dice) fraction() float64 { return float64(d.next()>>11) / (1 << 53) }
func (d *dice) coin() bool        { return d.next()&1 == 1 }

// pick chooses the fault of a call by the rates.
func (c Config) pick(d *dice, op Op) Fault {
	at := d.fraction()
	for f := FailBefore; f < faults; f++ {
		if op != OpAppend && slices.Contains([]Fault{Repeat, Delay, Stale, Crash}, f) || op != OpNotify && f == Lose {
			continue
		}
		if at < c.Rate[f] {
			return f
		}
		at -= c.Rate[f]
	}
	return None
}
