// Package openai asks OpenAI, and the many services that speak one of its two protocols, on the vendor's SDK.
//
//	model, err := openai.New(openai.Options{}) // OpenAI, with the key in OPENAI_API_KEY
//	...
//	eng, err := engine.New(engine.Config{Model: model})
//
// A service of your own, which may need no key:
//
//	model, err := openai.New(openai.Options{
//		BaseURL: "http://localhost:8000/v1", API: openai.ChatCompletions, Model: "llama",
//	})
//
// The protocol is [Responses] unless Options say [ChatCompletions]. With the former, conversations stay with the caller:
// the service is asked to store nothing, and what it needs to see again, such as sealed thoughts, is kept in parts of the
// message.
//
// # Keys
//
// Key and endpoint come from Options, else from OPENAI_API_KEY and OPENAI_BASE_URL; no other variable is read. A key from
// the environment is not sent to an endpoint from Options. The key is sent in the header Authorization only, and no error
// repeats it.
//
// # Parameters
//
//	                    Responses             ChatCompletions
//	upstream model      model                 model
//	temperature         temperature           temperature
//	max_tokens          max_output_tokens     max_completion_tokens, or max_tokens with OldMaxTokens
//	top_p               top_p                 top_p
//	reasoning_effort    reasoning.effort      reasoning_effort
//
// All efforts are sent as they are called. Not every model takes every parameter; what one does not take is an error of
// the service, of class BadRequest. Each entry of Extra is sent as a member of the body, whether this package knows it
// or not:
//
//   - prompt_cache_key and prompt_cache_retention are hints for the cache,
//   - parallel_tool_calls false asks for one call at a time, tool_choice for a certain one,
//   - text (Responses) and response_format (ChatCompletions) ask for structured output,
//   - stop and seed are for ChatCompletions,
//   - service_tier, metadata, safety_identifier, truncation, verbosity and so on,
//   - reasoning (Responses), such as {"summary":"auto"}, is joined with the effort,
//   - tools lists tools of the service's own, which come behind the agent's.
//
// Entries that would contradict the request, such as model, stream or temperature, are refused.
//
// # Messages
//
// A system prompt is sent as instructions (Responses) or as the first message. Images and files are sent with their data
// or their address, audio by ChatCompletions only; any other part is an error before anything is sent. There is no mark
// for results that are errors: their text tells. Arguments that are not JSON come to the engine as they are, and are
// sent back wrapped as {"malformed_args": "..."}, as some services take no others.
//
// In answers, thoughts are the part of kind reasoning, images made by the service's tool are parts of kind image, and
// items of any other sort, sealed thoughts among them, are parts of kind vendor. With Responses these items go back as
// they came and in their place; with ChatCompletions, and if they are of another adapter, parts of kinds reasoning and
// vendor are left out. An image of a model that did not come by Responses is an error. Several messages in one answer
// are joined by an empty line.
//
// A refusal of the model is its text, with the stop reason filtered. Reasoning tokens are counted too; they are part of the output
// tokens.
//
// # Failures
//
// Every error is a *resilient.Failure. The SDK's own retries are turned off, see package resilient for better ones. A
// stream that ends without the service saying so is a failure. Time limits are the context's.
package openai
