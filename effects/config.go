package effects

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/internal/enum"
	"github.com/ddd26017/fixpoint/state"
)

// Mode says who runs the handlers.
type Mode uint8

const (
	// Inline is the default: Deliver runs the handlers and returns after the last one.
	Inline Mode = iota
	// Background queues the effects and returns at once; one goroutine runs the handlers in order.
	Background
)

var modes = enum.Names{Package: "effects", Texts: []string{"inline", "background"}}

// String returns "inline" or "background".
func (m Mode) String() string { return modes.Text("Mode", uint8(m)) }

// DefaultQueue is the length of the queue when Config.Queue is zero.
const DefaultQueue = 1024

// Config configures a dispatcher. The zero Config delivers inline, without time limit.
type Config struct {
	Mode Mode
	// Queue bounds how many effects may wait; zero means [DefaultQueue]. In Background mode it is the length of the
	// queue. In Inline mode it bounds the effects that handlers add while one Deliver call is at work, so that a
	// handler that emits its own effect comes to an end. What does not fit fails with [ErrOverflow], at once.
	Queue int
	// Timeout bounds each call of a handler that has no [Timeout] of its own. Zero means no limit.
	Timeout time.Duration
	// Now is the clock that durations are measured with; nil means [time.Now]. It must not panic.
	Now func() time.Time
	// Report, if set, receives every outcome exactly once, in the order of delivery. It is called outside every lock
	// and may call the dispatcher. Effects that are refused without being tried ([ErrOverflow], [ErrClosed],
	// [ErrUndelivered]) are reported by whoever refused them, so it must be safe for concurrent use. A panic in it is
	// dropped.
	Report func(Outcome)
}

func (c Config) normal() (Config, error) {
	switch {
	case c.Mode > Background:
		return c, fmt.Errorf("%w: unknown mode %d; use Inline or Background", ErrBadConfig, c.Mode)
	case c.Queue < 0:
		return c, fmt.Errorf("%w: Queue is %d; want 0 or more", ErrBadConfig, c.Queue)
	case c.Timeout < 0:
		return c, fmt.Errorf("%w: Timeout is %v; want 0 or more", ErrBadConfig, c.Timeout)
	}
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// Delivery is an effect on its way to its handler.
type Delivery struct {
	ID     ID
	Effect Effect
	// Owner is the plugin that emitted the effect.
	Owner string
	// Snapshot is the state after the commit that carried the effect.
	Snapshot *state.Snapshot
}

// Outcome says how one delivery ended.
type Outcome struct {
	ID ID
	// Name is the name of the effect.
	Name string
	// Owner is the plugin that emitted it, Handler the plugin that handles it ("" if none was found).
	Owner, Handler string
	// Err is nil if the handler returned nil. Otherwise it is a [*HandlerError] with what it returned or with
	// [ErrTimeout], a [*PanicError], one of [ErrOverflow], [ErrClosed] and [ErrUndelivered], or what
	// [Handlers.Check] would have said.
	Err error
	// Began is when the handler was called, zero if it was not.
	Began time.Time
	// Duration is the time from the call of the handler to its end, or to the moment it was left behind.
	Duration time.Duration
}

func (d Delivery) failed(err error) Outcome {
	return Outcome{ID: d.ID, Name: d.Effect.Name(), Owner: d.Owner, Err: err}
}
