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
// up. An agent that a handoff of the run brought may be told of a tool that its spec
// does not allow, if the plugin was active before too; it cannot call it.
//
// A search depends on nothing but the tools and the query. The plugin has a hook and
// a transform at before_inference: a transform sees no state, so the hook tells it
// through the request's open parameters (Param) what to leave in, by one SetOverride
// a step, and the transform takes that out again. To schedule engine.ExcludeTool for
// each of hundreds of tools would be as many commits a step.
package deferred
