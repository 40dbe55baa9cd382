// Package fanout calls a function side by side on a bounded number of goroutines
// and gets every result by index, whatever the calls do: one that hangs is given
// up on when the context ends, and one that ends its goroutine with
// runtime.Goexit costs no other call its turn.
//
//	squares := fanout.Each(ctx, fanout.Way{Limit: 2}, 4,
//		func(i int) int { return i * i },
//		func(cause error) int { return -1 })
//
// One does so for a single call. Repeat, Overdue and Beside call a function beside work that the
// caller does itself: again and again, or when the work is over too late.
//
// Beside the standard library it imports errgroup, to spawn.
package fanout
