// Package loopguard is a plugin that turns a tool call away when the very same
// call, with the same arguments, has run too often in the run. The model gets an
// error that says so and can do something else. A run that is made to go on after its
// answers ends when the model gives the same one too often.
//
// The section "loopguard" of an agent spec sets how often is often enough:
//
//	"loopguard": {"repeats": 2, "except": ["poll_*"], "answers": 3}
package loopguard
