// Package anthropic asks Anthropic, and services that speak its Messages API, on the vendor's SDK.
//
//	model, err := anthropic.New(anthropic.Options{}) // Anthropic, with the key in ANTHROPIC_API_KEY
//	...
//	eng, err := engine.New(engine.Config{Model: model})
//
// # Keys
//
// Key and endpoint come from Options, else from ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL; no other variable is read. A
// key from the environment is not sent to an endpoint from Options. The key is sent in the header X-Api-Key only, not
// to another host after a redirect, and no error repeats it.
//
// # Parameters
//
//	upstream model      model
//	temperature         temperature
//	max_tokens          max_tokens, else that of Options: the protocol wants one
//	top_p               top_p
//	reasoning_effort    output_config.effort, with thinking {"type":"adaptive"}
//
// The effort none is sent as thinking {"type":"disabled"}. Models that know no effort get a budget of tokens to think
// instead, with Options.Budgets. Not every model takes every parameter; what one does not take is an error of the
// service, of class BadRequest. Each entry of Extra is sent as a member of the body, whether this package knows it or
// not:
//
//   - cache_control {"type":"ephemeral"} asks for the cache, as Options.Cache does for all requests,
//   - thinking, such as {"type":"adaptive","display":"summarized"}, replaces what the effort says of it,
//   - output_config, such as {"format":{...}} for structured output, is joined with the effort,
//   - tool_choice asks for a certain tool, or with disable_parallel_tool_use for one call at a time,
//   - tools lists tools of the service's own, which come behind the agent's,
//   - stop_sequences, top_k, metadata, service_tier, container and so on.
//
// Entries that would contradict the request, such as model, stream or temperature, are refused.
//
// # Messages
//
// What follows in one role is sent as one turn, with the results of calls at its beginning. Empty texts, which the
// service does not take, are left out. Messages of the role system are part of the system prompt if no other comes
// before them; later ones are sent as Options.SystemMessages says. Images and PDF files are sent with their data or
// their address, files of text with their data; any other part is an error before anything is sent. Arguments that are
// not a JSON object come to the engine as they are, and are sent back wrapped as {"malformed_args": "..."}.
//
// In answers, thoughts are the part of kind reasoning. Signed and sealed thoughts, blocks of the service's own tools and
// texts with citations are kept in parts of kind vendor besides, which go back as they came and in their place, so that
// models go on with their thoughts after a tool ran. Parts of other adapters' vendors are left out, and so are thoughts
// that led to nothing. Texts that something else came between are joined by an empty line.
//
// Input tokens include those that the cache was written with and served. A refusal has the stop reason filtered; if the
// model said nothing, its text is the service's explanation. The stop reason max_tokens also tells of a full context
// window, and other of a long turn that the service paused; to ask again, with the answer behind the messages, goes on.
//
// # Failures
//
// Every error is a *resilient.Failure. The SDK's own retries and time limits are turned off, see package resilient for
// better ones. A stream that ends without the service saying so is a failure. Time limits are the context's.
package anthropic
