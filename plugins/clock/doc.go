// Package clock is a plugin that lets the model know the time: date and time when a
// run starts, and how long the run has taken when it has taken a while.
//
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{clock.New(clock.Options{})}, Model: model})
//
// The section "clock" of an agent spec says when; these are the defaults:
//
//	"clock": {"at": ["1m", "5m", "10m", "15m", "20m"], "then_every": "10m", "zone": "UTC"}
//
// # What is told
//
// The date and time are told in front of the run's first model call, and stay in the
// history. How long the run has taken is told in front of a later call, behind the tool
// results, once it has passed the next of the marks in "at", and after the last of them
// every "then_every"; of several passed at once only the last is told, and none twice.
// With "note": "one_shot" one call sees such a note, otherwise it stays in the history.
//
// Time that the run stood still, waiting for an answer or for a new process, does not
// count. If that was a minute or more, the date and time are told anew when it goes on.
// What a tool call took before it began to wait, or a step before its process ended, is
// part of the standstill.
//
// # What it registers
//
// Hooks on before_inference and after_inference, both in tier 0 and with
// OnError(Skip), and the key Elapsed, for others to read. Nothing else is kept, so the
// count goes on in another process.
//
// The hooks read Options.Now, once each time that they run, and when there is something to
// tell the machine's description of the zone; nothing else outside. The clock must tell the same time as the engine's Config.Now, since it is compared with
// RunInfo.Started. With a clock that does not depend on real time, such as
// enginetest.Clock, runs are deterministic.
package clock
