// Package notices hands what is sent to a topic to those who listen to it in this
// process. It is the whole of a store's notifier where one process has the store, and
// the last step of it where several have:
//
//	var board notices.Board
//	heard := board.Listen(ctx, "wake")
//	board.Send("wake", []byte("t1"))
//	data := <-heard
//
// # Ownership and concurrency
//
// A Board is safe for concurrent use, and its zero value is ready. Every listener gets
// a copy of its own. Nobody waits: a listener that has [Buffered] notices before it
// misses what comes next. There is no goroutine behind a listener.
package notices
