// Package otel turns what an engine tells of its runs into OpenTelemetry spans and
// metrics, by the semantic conventions for generative AI. It needs the API of
// OpenTelemetry only; the program brings the SDK and its exporters.
//
//	obs, err := otel.New(otel.Options{Tracers: tracerProvider, Meters: meterProvider})
//	eng, err := engine.New(engine.Config{Observers: []engine.Observer{obs}, ...})
//	...
//	obs.Close() // ends what is open; then shut the providers down
//
// # Conventions
//
// The conventions are those of version 1.41.0, the last that has generative AI among
// the others; they are in development and moved to a repository of their own after it.
// By them are:
//
//   - "invoke_agent {agent}", a run or its part up to a suspension;
//   - "chat {model}", a model call, of kind client, with tokens, finish reason and the
//     time to the first chunk;
//   - "execute_tool {tool}", the body of a tool, which a blocked call does not have;
//   - the histograms gen_ai.client.token.usage, by model and token type, and
//     gen_ai.client.operation.duration, of all three operations, with the buckets of the
//     conventions.
//
// gen_ai.conversation.id is the thread. gen_ai.provider.name is what Options.Provider
// says, or "_OTHER". error.type is the reason of a run ("error", "cancelled", ...), the
// outcome of a call ("error", "timed_out", "blocked", ...), or "model_error",
// "hook_error", "gate_error", "action_error", "effect_error" or "phase_error".
//
// # Own spans
//
// All else is named by the engine's words, with attributes below "fixpoint.":
//
//	invoke_agent clerk
//	  step
//	    phase before_inference
//	      hook budget/before_inference/0
//	      hook memory/before_inference/0       lost a conflict
//	      hook memory/before_inference/0       its second try, with a link to the first
//	      round
//	        action compact
//	      effect mail
//	    chat small
//	    call                                   from the gates to the result
//	      phase tool_gate
//	        gate permission/tool_gate/0
//	        wait confirm                       for a person
//	      execute_tool pay
//	        invoke_agent helper                if the tool delegates
//
// A phase in which nothing happened is left out unless Options.EmptyPhases says
// otherwise. Commits, conflicts, resolutions of gates, edits, overrides, handoffs and
// warnings are events of the span that they happened in. Times are those of the
// engine's events and clock. A round begins when what came before it in its phase was
// over; of what was given up on at a deadline the beginning is an estimate, marked with
// fixpoint.abandoned. What is open when its run ends without it, or at Close, is marked
// with fixpoint.unfinished.
//
// # Content
//
// Prompts, answers, arguments, results, questions for people and their reasons are not
// recorded unless Options.Content is set. Names, keys and entries of tables, reasons of
// gates and texts of errors and warnings always are. What Options.Rules hide, which are
// those of a trace with its defaults, is in no text of spans and metrics, names and ids
// included. Every text is made valid UTF-8 and cut to a bound.
//
// # Own metrics
//
//	fixpoint.hook.duration    s  fixpoint.plugin, fixpoint.hook, fixpoint.phase, fixpoint.hook.status
//	fixpoint.phase.rounds        fixpoint.phase; of phases with hooks or rounds
//	fixpoint.conflicts           fixpoint.key, fixpoint.conflict.fate
//	fixpoint.retries             fixpoint.plugin, fixpoint.phase
//	fixpoint.gate.decisions      fixpoint.gate.decision, fixpoint.gate.cause, fixpoint.plugin; each pass of all gates over a call
//	fixpoint.calls               fixpoint.tool.outcome
//	fixpoint.effects             fixpoint.effect, fixpoint.outcome: ok or error
//	fixpoint.runs                gen_ai.agent.name, fixpoint.run.reason; "waiting" for a suspension
//	fixpoint.events.dropped      fixpoint.drop.reason: gap in a run's events, closed
//
// No metric has an id of a run, thread, call or entry. Whatever comes, an attribute of a
// metric has at most 256 values; further ones count as "_OTHER". Names of tools are in
// metrics only when the tool exists.
//
// # Traces and processes
//
// An event has no context, so a run begins a trace of its own, unless Follow was told
// whose it continues. A run that is resumed is a new span; it has a link to the span
// that was suspended if this Observer saw it, and the same fixpoint.run.id in any case.
// To have both in one trace, also from another process, without keeping anything, give
// the SDK an IDGenerator: the trace's id then comes from that of the run. Whether the
// trace is sampled is the SDK's decision, as ever.
//
// A tool that makes calls of its own finds its span in its context when it is wrapped
// with Observer.Tool. Models get no such span: the engine tells them nothing of the run.
//
// # Cost
//
// Observe makes spans and waits for nobody, as long as the span processor does not: use
// a batch processor. Spans and metrics of an exporter that is down are the SDK's to
// drop. An Observer has no goroutines, and at most Options.MaxRuns runs are open: one
// whose end is not told, since its engine gave the Observer up or its process lost it,
// is ended when room is needed, or by Close.
package otel
