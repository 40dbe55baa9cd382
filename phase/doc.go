// Package phase is what a plugin author writes against: the phases of a run, the
// hooks that take part in them, and the commands that hooks return.
//
// A hook gets a frozen Context and returns a Command: state updates, scheduled
// actions and effects. It changes nothing itself.
//
//	var Turns = state.NewCounter("turns", state.Options[int64]{})
//
//	func count(ctx context.Context, pc *phase.Context) (phase.Command, error) {
//		var cmd phase.Command
//		cmd.Update(Turns.With(1))
//		return cmd, nil
//	}
//
// All hooks of a phase run at the same time on one snapshot, and what they return
// is merged in registration order. A hook that lost a conflict runs again, so it
// must be free of outside side effects; those belong in an effect (package
// effects) or in an action.
//
// An action is work that a command schedules for a phase. Its handler runs after
// the phase's hooks and may schedule more, round after round, until nothing is
// left:
//
//	var Notify = phase.NewAction[NotifyArgs]("notify", phase.StepEnd)
//
//	cmd.Schedule(Notify.New(NotifyArgs{To: "ops"}))
//
// Contexts, actions and commands that were returned are immutable and safe for
// concurrent use.
package phase
