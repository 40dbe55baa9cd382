// Package confirm is a plugin that asks a person about a tool call when nobody else
// approved it: the end of the chain of gates.
//
//	engine.Config{
//		Plugins:  []engine.Plugin{confirm.New(confirm.Options{})},
//		Schemas:  confirm.Schemas(nil), // or a checker of JSON Schemas
//		Resolver: terminal,
//	}
//
// The section "confirm" of an agent spec says which calls are asked about, and these are
// its defaults:
//
//	"confirm": {
//	  "ask": ["*"], "except": ["kind:read"],  // patterns of names, or of kinds
//	  "no_edit": [],           // tools whose arguments nobody may edit
//	  "auto": 0,               // calls of each run that need no question; -1 for all
//	  "unattended": "deny",    // or "allow", or "wait" until the run is resumed
//	  "lifetime": ""           // how long a question stands, such as "10m"
//	}
//
// # Questions and answers
//
// A question is a ticket of the kind confirm whose Params are a [Preview]: the arguments
// to be read, and a diff if [Options.Previews] has a [Previewer] for the tool. An approval
// without a value is a yes; else the value is an [Answer]:
//
//	{"choice": "yes"}
//	{"choice": "no", "reason": "not on Fridays"}
//	{"choice": "edit", "args": {"path": "b"}}
//	{"choice": "times", "n": 3}
//	{"choice": "always", "scope": "thread", "covers": "call"}
//
// The ticket has the JSON Schema of just the answers that it offers, so the engine refuses
// any other and the question stands. That needs Config.Schemas: without it the engine
// blocks the calls, and says so.
//
// An answer is about exactly the arguments shown. Edited ones become the call's: the tool
// checks them and every gate judges them like any, but the person who wrote them is not
// asked about them again. When something else changes the arguments after the answer, the
// person is asked anew, about the final ones.
//
// "times" approves this call and the next n in the run; "always" all later ones in the
// run, in the thread, or with [Options.Profiles] in all runs of an owner. Both cover calls
// of the tool if nothing is said, or exactly this call, or all. Arguments that have a name
// twice, upper and lower case aside, are covered only as they are written. What was
// granted is kept once the call is about to run: in [Grants], [Thread] and, through the
// effect [Persist], [Profile], which a run reads when it starts. Nothing granted outvotes
// a gate that blocks or suspends.
//
// # Delegates
//
// The calls of a delegate are judged by the gates of the run that delegates too. Its
// grants hold for them, except those that count calls. What a person grants in an answer
// about such a call holds for the delegate's run if the plugin is active there.
//
// The gate is pure but for the previewers, which may read the outside world. The same
// state and answers give the same questions.
package confirm
