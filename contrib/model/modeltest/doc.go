// Package modeltest is the kit that every adapter of a model must pass, whatever protocol its service speaks. It runs
// the service itself, on this machine; the adapter's test only says how the service writes answers and failures, and
// where in requests things are found.
//
//	func TestConformance(t *testing.T) {
//		modeltest.Run(t, modeltest.Provider{
//			New:    func(t testing.TB, s modeltest.Setup) inference.Model { ... },
//			Model:  "some-model",
//			Whole:  func(a modeltest.Answer) modeltest.Reply { ... },  // in one piece
//			Stream: func(a modeltest.Answer) []string { ... },         // event by event
//			...
//		})
//	}
//
// [Run] refuses a [Provider] that leaves something out. What a service does not have is said in [Lacks], so that it can
// be read there; a check is never left out because nobody thought of it.
//
// # What it asks of an adapter
//
// Answers: text, reasoning, images, one and several calls, and their pieces in any order are what the service said, in
// one piece and as a stream, and both are equal. Pieces of text come through at once. Arguments that are not JSON are
// handed on as they are. Tokens are counted once, stop reasons are translated, and what nobody knows is ignored.
//
// Failures: all errors are [*resilient.Failure] with the class that the provider says, the HTTP status, the service's
// code and the time to wait, however the header writes it, and without the key, which no redirect takes to another host.
// Nothing is asked twice by itself. A stream that breaks off, however it
// does, is a failure, and what came before is kept.
//
// Ends: when the context ends, so does the call, with [resilient.Cancelled] and the context's cause, or
// [resilient.Transient] for a deadline; the service sees the connection close. That holds too for a stream that is left.
// After each test no connection and no goroutine may be left.
//
// Requests: every field of an override arrives where the provider says, or is refused or warned of. So are all sorts of
// part. Histories keep their order, calls and results their ids, and texts all their bytes. Some requests are compared
// with files, which Provider.Update writes.
package modeltest
