// Package resilient wraps models so that their failures do less harm, and holds the words in which adapters tell of
// failures: [Failure] and its [Class]; package remote below it makes one of what a service answers by HTTP. It imports the standard library and package inference only.
//
// The smallest use is a model that is asked again when that may help, and never for too long:
//
//	model, err := resilient.Wrap(model, resilient.Timeout{Request: 5 * time.Minute}, resilient.Retry{})
//
// # Layers
//
// [Wrap] puts layers around a model, the first nearest to it. [NewPool] makes one model of several. In the order in
// which they usually stand, from the inside:
//
//	Timeout   limits one attempt, and the silences in a stream
//	Retry     asks again, after a wait, and mends streams that broke
//	Breaker   stops asking a model that keeps failing
//	Pool      asks another model instead
//	Continue  goes on with an answer that was cut off at its maximum of tokens
//
// So a Retry sees each attempt that took too long, a Breaker counts answers and not attempts, a Pool does not wait for
// a model whose breaker is open, and what Continue asks for may come from another model of the pool. Another order
// works too, with another meaning: a Timeout around a Retry limits all attempts and waits together; a Retry around a
// Breaker waits until that lets it through; a Retry around a Pool asks all its models again.
//
// # Streams
//
// What a wrapper returns is an [inference.Streamer] exactly if the model is one, or in a pool any model. Streaming or
// not, the same rules hold. A stream whose consumer leaves ends, and so does the one under it, before the loop is over.
//
// Once text was passed on it cannot be taken back. So a stream that breaks after that ends with the failure unless a
// [Recovery] says how to complete the answer. Half a tool call is then never passed on. Where none is set, or there is
// no Retry, pieces are passed on as they come, and the error says not to use them. All this relies on models to end a
// stream that broke with an error, such as [io.ErrUnexpectedEOF], and never in silence.
//
// # What is kept
//
// Every attempt is paid for: answers, and errors, come with the usage of all, as far as the models told. Each attempt
// gets a clone of the request. Errors pass with what wraps them: [errors.Is] and [errors.As] find the model's own.
// Panics pass through with their value, but under a Timeout without the model's stack, since the model then runs in a
// goroutine of its own.
//
// # Concurrency and time
//
// All models and layers are safe for concurrent use, and hold no lock while they call a model or a function they were
// given. Only a Timeout starts goroutines, one per request; it waits for them, if not for more than a second after the
// request is over. Limits and waits run on package time; Retry and Breaker can be given another clock, and Retry
// another source of random numbers.
package resilient
