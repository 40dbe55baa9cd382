// Package effects carries typed messages from a commit to the outside world: a notification, an audit line, a metric.
// An effect is fire and forget. It is delivered after the commit that carries it, and whatever its handler does, the
// commit stands.
//
// The smallest use, without an engine:
//
//	var Audit = effects.NewSpec[string]("audit")
//
//	handlers, err := effects.NewHandlers([]effects.Registered{{
//		Plugin: "audit",
//		Handler: Audit.Handle(func(ctx context.Context, snap *state.Snapshot, line string) error {
//			_, err := fmt.Println(line)
//			return err
//		}),
//	}})
//	d, err := effects.NewDispatcher(handlers, effects.Config{})
//	err = d.Check(Audit.New("hello"))        // before the commit
//	outcomes := d.Deliver(ctx, deliveries)   // after it
//
// # What holds
//
//   - An effect without a handler, or with a payload that cannot be carried, is refused before anything commits.
//   - Delivery is in commit order, one effect at a time, and outside every lock. A handler may read state, submit
//     commands, even run a phase; the effects that leads to are queued behind the one it handles.
//   - Effects of a commit that happened are delivered even if the run is cancelled.
//   - A handler may fail, panic, end its goroutine or outlive its [Timeout]. The effects after it are delivered all the
//     same, and every effect has exactly one [Outcome].
//   - Every delivery has an [ID] that stays the same for ever. Delivery is attempted once; for effects that must not be
//     lost, keep [Effect.JSON] and the id in an outbox within the commit, and let the receiver drop repeated ids.
package effects
