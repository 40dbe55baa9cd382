// Package engine runs agents: it gathers the hooks of each phase, commits what
// they return, lets scheduled actions converge, delivers effects, judges tool
// calls, and turns a model and its tools into a run.
//
//	eng, err := engine.New(engine.Config{
//		Model:   model,
//		Plugins: []engine.Plugin{audit.New(), permission.New()},
//	})
//	res, err := eng.Run(ctx, engine.AgentSpec{ID: "helper"}, engine.Prompt("hello"))
//
// # A run
//
//	RunStart
//	  StepStart, BeforeInference, the model, AfterInference,
//	  for each tool call: ToolGate, BeforeToolExecute, the tool, AfterToolExecute,
//	  StepEnd                                              ... step by step
//	RunEnd                                                 ... once, however it ends
//
// A call that needs a person's answer leaves the run waiting, without a goroutine,
// until Thread.Resume.
//
// # A phase
//
// The hooks of active plugins run tier by tier; those of one tier in parallel on
// one frozen snapshot. Commands that do not fight over an Exclusive key commit
// together; the hooks of the others run again one by one, each on a fresh
// snapshot. Then the phase's actions run round by round until none is left, at
// most Limits.PhaseRounds times. Effects are delivered after the commit that
// carries them.
//
// # Where to look
//
// The code is laid out along this path: a spec is read and checked (spec*.go,
// section*.go), plugins register (plugin.go, registrar.go, manifest*.go), a run
// loops over steps (loop.go, infer.go, stop.go), a phase gathers hooks
// (gather.go, job.go, commit.go) and converges (converge.go), a tool call passes
// the choke point (tools.go, gates.go, tickets.go, settle.go), and all of it is
// told in events (event.go, observer.go). A run that waits goes on with decisions
// (resume.go, decision.go); a thread outlives its process in a journal (journal.go,
// persist.go) and can be forked (fork.go).
//
// # User code
//
// Hooks, gates, handlers, transforms, tools, models, observers and subscribers may
// panic, hang, end their goroutine or change what they were given; the engine
// survives each. What was given up on at a deadline keeps its goroutine until it
// returns, since Go cannot stop it: its context is cancelled and its result is
// dropped. No lock is held while user code runs.
//
// An Engine is immutable after New and safe for concurrent use. So are all
// methods of a Thread.
package engine
