// Package gate decides whether a tool call may run.
//
// A gate looks at a call and gives an opinion:
//
//	gate.Func(func(ctx context.Context, pc *phase.Context) (gate.Decision, error) {
//		if pc.Call().Name == "delete_everything" {
//			return gate.Block("not on my watch"), nil
//		}
//		return gate.Abstain(), nil
//	})
//
// All gates are asked about every call, at the same time, and Resolve folds their
// opinions: the strictest wins, between equals the first registered.
//
//	Block      the call fails with that reason
//	Suspend    wait for an answer, whatever others approve
//	SetResult  skip the tool, use this result
//	Approve    allow, and no one needs to be asked
//	Ask        wait for an answer unless someone approved
//	Abstain    no opinion; if nobody has one, the run's default applies
//
// Edit changes the arguments besides, and then everybody is asked again about the
// new ones. A gate that fails in any way blocks the call unless it was registered
// with FailOpen.
//
// Gates are pure: they may be asked twice about one call. Everything in this
// package is an immutable value or a pure function, safe for concurrent use.
package gate
