// Package trace shows what a run's time went into: each step, phase, hook, gate,
// action, effect, model call and tool call with its duration, as text for people, as
// JSON lines, and as a file for Perfetto or chrome://tracing.
//
//	t := trace.New(trace.Options{Text: os.Stderr, Chrome: file})
//	eng, err := engine.New(engine.Config{Observers: []engine.Observer{t}, Plugins: []engine.Plugin{t}, ...})
//	...
//	err = t.Close(ctx)
//
// The timeline is one line for each thing that happened, behind the time since the
// run began, with those below it that were part of it. What was open when something
// began, such as a phase, is told first; a phase in which nothing happened is left
// out. When several runs go on, lines begin with the run's id. The summary, when a
// run ends or waits, adds up what has the same name in the same place: the time it
// took, how much of that was its own and not that of its parts, and the share of the
// run's. Hooks that run at the same time can have more than 100 % together. Time spent
// waiting for people is in none of these, and has lines of its own.
//
// In the Chrome file a run is a process, and each agent that it delegates to a thread
// of it; what happens at the same time is on threads of its own. What was called again
// after a conflict has a span for each try, with an arrow from one to the next; commits
// are marks with their revisions. All ids come from
// those of the runs and from the order of a run's events, so a run that is resumed, in
// this process or another, continues the picture.
//
// # Where times come from
//
// All of it is from the engine's events and their clock, so it is as exact as they
// are. Background effects are told of at the end of a run. Events that were kept, read
// with Read, can be given to Observe and give the same pictures, but for the texts of
// marks.
//
// # Lines
//
// The lines are the events with the values that were written, behind a header with the
// version of their format; docs/trace.md in the repository explains it, and
// docs/trace.schema.json is its schema. Read reads them.
//
// What they tell is bounded, and Rules hide what nobody is to see: without any, the
// values of members such as "password", and what looks like a credential. The rules hold
// for all three writers. Detailed applies them to one event.
//
// # Writers
//
// Observe never waits: it queues the event. One goroutine encodes what is queued, and
// each writer has another; they are there while there is something to do. A codec of the
// application runs in the first alone, so that one that is slow or hangs is not felt by
// the run. What finds no place in the queue or in a writer's buffer, or comes after a
// writer failed, is dropped, and the lines, Err and Close say so. Only Close waits.
//
// # Mark
//
// A plugin's command can emit Mark with a text, which then stands in the trace where
// it happened. For that the Trace is given to the engine as a plugin too. It has no
// section, keys or hooks.
package trace
