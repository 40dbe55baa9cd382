// Package storetest is the conformance kit for stores. A store that passes it keeps
// the promises of [store.Journal] and, where it has them, of [store.Leaser] and
// [store.Outbox]:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Fixture {
//			return storetest.Fixture{Journal: memstore.New(memstore.Options{})}
//		})
//	}
//
// What is optional is found by looking: leases and outbox by the interfaces, size
// limits and several processes by [store.Caps], durability by
// [Fixture.Reopen]. A part that a store does not have is left out, and the log says
// so.
//
// Work, Check and Serve are the kit's workload on its own, for programs that kill
// the process that runs it.
package storetest
