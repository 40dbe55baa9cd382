// Package storetest is the conformance kit for stores. A store that passes it keeps
// the promises of [store.Journal] and, where it has them, of [store.Leaser],
// [store.Historian], [store.Outbox], [store.Queue] and [store.Notifier]:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Fixture {
//			return storetest.Fixture{Journal: memstore.New(memstore.Options{})}
//		})
//	}
//
// What is optional is found by looking: leases, outbox, queue and notices by the
// interfaces, size limits and several processes by [store.Caps], durability by
// [Fixture.Reopen], connections that can be cut by [Fixture.Break]. A part that a store
// does not have is left out, and the log says so.
//
// # Stores that several processes use
//
// [Fixture.Child] runs the kit's other half, Serve, in a process of its own:
//
//	cmd := exec.CommandContext(ctx, os.Args[0]) // whose TestMain opens the store and calls Serve
//	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
//	cmd.WaitDelay = time.Second
//	return cmd.Run()
//
// Work, Check and Serve are also of use on their own, to programs that kill the process
// that runs the work.
package storetest
