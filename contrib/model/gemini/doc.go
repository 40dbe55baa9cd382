// Package gemini asks Google's Gemini API, and services that speak its protocol, on the vendor's SDK.
//
//	model, err := gemini.New(gemini.Options{}) // Google, with the key in GEMINI_API_KEY
//	...
//	eng, err := engine.New(engine.Config{Model: model})
//
// # Keys
//
// Key and endpoint come from Options, else from GEMINI_API_KEY or GOOGLE_API_KEY, and GOOGLE_GEMINI_BASE_URL; no other
// variable counts. A key from the environment is not sent to an endpoint from Options. The key is sent in the header
// X-Goog-Api-Key only, not to another host after a redirect, and no error repeats it.
//
// # Parameters
//
//	upstream model      in the path
//	temperature         generationConfig.temperature
//	max_tokens          generationConfig.maxOutputTokens
//	top_p               generationConfig.topP
//	reasoning_effort    generationConfig.thinkingConfig.thinkingLevel
//
// The efforts low, medium and high are the levels of that name, max is HIGH, of which there is no more, and none is a
// thinkingBudget of 0. Models that know no levels get budgets with Options.Budgets. Not every model takes every
// parameter; what one does not take is an error of the service, of class BadRequest. Each entry of Extra is sent as a
// member of the body, whether this package knows it or not:
//
//   - generationConfig is joined with the parameters, and its thinkingConfig with the effort: with
//     {"thinkingConfig":{"includeThoughts":true}} models tell what they think, with {"responseModalities":["TEXT","IMAGE"]}
//     some answer with images, and responseJsonSchema asks for structured output,
//   - cachedContent names what was put into the cache beforehand; what requests have in common is cached without a hint,
//   - toolConfig asks for a certain tool, or for none,
//   - tools lists tools of the service's own, which come behind the agent's,
//   - safetySettings and so on.
//
// Entries that would contradict the request, such as contents, or generationConfig with a temperature, are refused.
//
// # Messages
//
// What follows in one role is sent as one turn, with the results of calls at its beginning. Messages of the role system
// are part of the system instruction if no other comes before them; later ones are sent as a text of the user, marked
// by a tag. Images, audio and files are sent with their data or their address; any other part is an error before
// anything is sent. Arguments that are not a JSON object are sent back wrapped as {"malformed_args": "..."}.
//
// In answers, thoughts are the part of kind reasoning, and media are parts of kind image, audio or file. Signatures of
// thoughts, and parts of the service's own tools, are kept in parts of kind vendor or with the media, and go back as
// they came and in their place. Texts that something else came between are joined by an empty line. Parts of other adapters' vendors are left out, and so are images that a model thinks of.
// Calls without an id get one, which the service does not see. Numbers in arguments have the digits of a float64.
//
// Tokens of thoughts are output tokens, and those that the service's own tools read are input tokens. An answer that a
// filter ended has the stop reason filtered; a prompt that was blocked is a failure of class ContentFiltered. An answer
// that ends with a call that is malformed or that the service does not accept is a failure of class Transient, since the
// model may do better the next time.
//
// # Failures
//
// Every error is a *resilient.Failure. The SDK's own retries are off, see package resilient for better ones. A quota
// that is used up for the day is of class Quota. A stream that ends without a reason is a failure. Time limits are the
// context's.
package gemini
