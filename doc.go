// Package fixpoint is the landing page of Fixpoint, a phase-convergence state
// engine: the runtime core that an AI agent is built on. It declares nothing;
// import the packages below.
//
// Plugins register hooks on the phases of an agent's life. In a phase, all
// hooks run in parallel against one frozen snapshot of the state and return
// commands. The commands merge and commit once. Hooks that fought over the
// same Exclusive key are run again, one by one, on fresh snapshots. Actions
// that the commands scheduled then run round after round until none is left.
// Effects are delivered after the commit that carries them. An agent spec,
// plain data, says which plugins are active.
//
// # Vocabulary
//
//   - key: a typed slot of state with a name, a scope, a merge strategy and a reducer
//   - update: one pending change to one key, or to one entry of a keyed table
//   - snapshot: an immutable view of all state at one revision
//   - commit: one atomic state change; it raises the revision by one
//   - command: what a hook, an action handler or a tool returns: updates, scheduled actions and effects
//   - gather: run the hooks of a phase in parallel on one snapshot, merge, commit, retry conflicts
//   - round: a pass of the action loop that ran at least one action
//   - effect: a typed message to the outside world, delivered after its commit
//   - gate: a pure decision whether a tool call may run
//   - step: one inference and the tool calls it asked for
//   - run: RunStart, steps, RunEnd
//   - thread: a conversation; many runs
//
// # Phases
//
// A run goes through nine phases. The part in brackets is a step and repeats
// until the run ends; the three tool phases repeat for each call of the step.
//
//	RunStart
//	[ StepStart  BeforeInference  (model)  AfterInference
//	    per call: ToolGate  BeforeToolExecute  (tool)  AfterToolExecute
//	  StepEnd ]
//	RunEnd
//
// # Packages
//
// Each package imports only packages above it in this list.
//
//   - state: keys, snapshots, batches and the store that commits them
//   - inference: messages, requests, overrides, transforms and the model interface
//   - effects: typed effects, their handlers and the dispatcher
//   - phase: phases, hooks, commands and scheduled actions
//   - gate: decisions about tool calls, their resolution, tickets and policies
//   - engine: plugins, agent specs, the run loop, events, pausing and resuming, checkpoints
//   - engine/picture: text, drawings and a report of conflicts of what plugins registered
//   - enginetest: a scripted model, a fake clock, a trace recorder and checkers for tests of plugins
//   - plugins: ready-made plugins, one directory each
//   - store: places to keep checkpoints, and the conformance kit for writing another
//   - bench: benchmarks and their scenarios
//
// Start with package engine to run an agent, with package phase to write a
// hook, and with package state to declare what it remembers. The command line
// is in cmd/fixpoint, a module of its own, as are the adapters with
// third-party dependencies in contrib. Runnable programs are in examples.
package fixpoint
