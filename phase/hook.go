package phase

import "context"

// Hook takes part in a phase. The engine runs all hooks of a tier at the same
// time, each on the same frozen snapshot, and merges what they return in
// registration order.
//
// A hook must be free of outside side effects: when it loses a conflict over an
// Exclusive key its command is dropped whole and it runs again, alone, on a
// fresh snapshot. What must happen once belongs in an effect or an action.
//
// Run may be called by many goroutines at once, for different runs. Hooks that
// return at once may share a goroutine, one after another; one that blocks keeps
// its goroutine to itself, and no other hook waiting for more than about a
// millisecond, nor that if the tier's hooks blocked the last time. It must honour
// ctx. An error, a panic or a missed deadline is the hook's fault alone: its
// siblings finish, and the registration's error rule says what becomes of the
// phase.
type Hook interface {
	Run(ctx context.Context, pc *Context) (Command, error)
}

// HookFunc lets a function be a Hook.
type HookFunc func(ctx context.Context, pc *Context) (Command, error)

// Run calls f.
func (f HookFunc) Run(ctx context.Context, pc *Context) (Command, error) { return f(ctx, pc) }
