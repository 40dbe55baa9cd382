package gate

import (
	"context"

	"github.com/ddd26017/fixpoint/phase"
)

// Resolver answers tickets in place: a terminal prompt, a chat, a rule. It is
// called outside every lock and may take as long as it likes; that time counts
// against no deadline but the run's context. An error leaves the question open, and
// is warned about unless it is ErrLeftOpen.
type Resolver interface {
	Resolve(ctx context.Context, t Ticket) (phase.Answer, error)
}

// ResolverFunc lets a function be a Resolver.
type ResolverFunc func(ctx context.Context, t Ticket) (phase.Answer, error)

// Resolve calls f.
func (f ResolverFunc) Resolve(ctx context.Context, t Ticket) (phase.Answer, error) { return f(ctx, t) }
