// Package deferred is a plugin for agents with many tools. The model sees none of
// those tools at first, only one that finds them: search_tools loads what it finds,
// so that the next request offers it, with its schema.
//
//	deferred.New(deferred.Options{Tools: hundreds, About: "GitHub, calendars, invoices"})
//
// The tools are registered like any other, so gates, allowed_tools and
// excluded_tools of a spec, and engine.ExcludeTool hold for them, before and after
// they are loaded. An agent that may not use search_tools is offered all of them at
// once. A tool that is called before it was loaded does not run, and the result says
// how to load it.
//
// The section "deferred" of an agent spec adjusts it:
//
//	"deferred": {"results": 5, "always": ["read_*"], "keep": "thread"}
//
// What is loaded is in the keys LoadedInRun and LoadedInThread: state, so a run that
// is resumed or forked goes on with it, and searches that run at the same time add
// up.
//
// A spec is looked at when the plugin becomes active for an agent. One that takes over
// by a handoff, from one that had the plugin active too, is therefore taken for one
// that may use all tools: a search may name a tool that its spec does not allow, which
// it still cannot call, and without search_tools it is offered none that is not always
// there.
//
// A search depends on nothing but the tools and the query. What a request offers is
// the work of a request transform, which reads the state that the request was made of.
package deferred
