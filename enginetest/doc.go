// Package enginetest helps to test plugins, agents and the engine itself.
//
//   - Script is a model whose answers are written down in advance, in Go or in a
//     JSON file whose texts may refer to earlier tool results.
//   - Config prefills an engine configuration: a fake clock, ids from a counter,
//     the freeze check and a Recorder that keeps the events.
//   - Driver runs the hooks and actions of one phase and shows what they did.
//   - Recorder compares the events of a run with a golden file, less all times.
//   - CheckCommutative, CheckLeaks and CheckDeterminism look for the faults that
//     a single run does not show.
//
// The smallest test of a plugin:
//
//	func TestGreeter(t *testing.T) {
//		d := enginetest.Driver{Plugins: []engine.Plugin{greeter.New()}}
//		out := d.RunPhase(t, phase.RunStart)
//		if got := greeter.Greeting.Get(out.Snapshot); got != "hello" {
//			t.Fatalf("greeting is %q", got)
//		}
//	}
//
// The package needs nothing but the standard library and the engine, so a program
// may use it outside tests too, for demonstrations without a model server.
package enginetest
