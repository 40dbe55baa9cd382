package inference

import "context"

// Transform changes the request of one inference. It gets a request of its own, may change it freely, and returns the
// one to use; the thread's history is out of its reach. Transforms run one after the other, each on the last one's
// result, and may be called by several runs at a time. An error fails the inference.
// What the agent's state and sections are, phase.FromContext tells.
type Transform interface {
	Transform(ctx context.Context, r Request) (Request, error)
}

// TransformFunc makes a Transform of a function.
type TransformFunc func(ctx context.Context, r Request) (Request, error)

// Transform calls f.
func (f TransformFunc) Transform(ctx context.Context, r Request) (Request, error) { return f(ctx, r) }
