package store

import (
	"context"
	"errors"
	"time"
)

// Queue is implemented by outboxes whose lanes can be looked at and mended: workers
// serve the lanes that it lists, and people requeue what was given up. A lane's name may
// be of any bytes, also of none, up to 200 at least; nothing in it is a pattern, and two
// lanes are one only if all bytes of their names are the same.
type Queue interface {
	Outbox
	// Lanes returns the names of the lanes that start with prefix and hold effects
	// other than dead ones, due or not, sorted.
	Lanes(ctx context.Context, prefix string) ([]string, error)
	// Depth counts the effects of a lane. One that nobody used is empty.
	Depth(ctx context.Context, lane string) (Depth, error)
	// Dead returns effects of a lane that were given up, in the order of their commits,
	// at most limit of them. They are kept until a commit settles them, their thread is
	// deleted, or somebody requeues them.
	Dead(ctx context.Context, lane string, limit int) ([]DeadEffect, error)
	// Requeue makes a dead effect due again, with no attempts counted, in the place that
	// its commit has among those of its thread. It returns ErrNoEffect when there is no
	// dead effect of that name.
	Requeue(ctx context.Context, ref EffectRef) error
}

// Depth says how much is in a lane.
type Depth struct {
	Due     int       // could be claimed now
	Waiting int       // for their first time or a retry
	Claimed int       // claims that have not run out
	Dead    int       // given up
	Oldest  time.Time // when the effect that is due for longest came, or its wait or claim ended; zero if none is due
}

// DeadEffect is an effect that was given up.
type DeadEffect struct {
	Ref      EffectRef
	Effect   Effect
	Attempts int
	Error    string // of the settlement that gave it up
}

// MaxNotice is the largest notice in bytes.
const MaxNotice = 64 << 10

// Notifier is implemented by journals that can tell other processes on the same store
// that something happened. Notices are hints: each reaches a listener at most once,
// those of one Notifier in the order they were sent, and none is kept for who does not
// listen yet or cannot follow. Nothing may depend on one for more than speed. Topics have
// names as lanes have.
type Notifier interface {
	// Notify sends data to all who listen to the topic, in this process too. It returns
	// ErrTooLarge for more than MaxNotice bytes. It does not keep data, and waits for no
	// listener.
	Notify(ctx context.Context, topic string, data []byte) error
	// Listen returns what is sent to the topic from now on. The channel is closed when
	// ctx ends, the store is closed, or listening fails for good; a connection that is
	// lost for a while is made again, and what was sent meanwhile is missed. What comes
	// out of it is the caller's.
	Listen(ctx context.Context, topic string) (<-chan []byte, error)
}

// ErrNoEffect is returned by Requeue when no dead effect has that reference.
var ErrNoEffect = errors.New("store: no dead effect has that reference")
