package inference

import (
	"context"
	"iter"
)

// Model answers requests. It must be safe for concurrent use. The request is the model's to keep or change. When it
// returns an error it may also return what it has of the response.
type Model interface {
	Generate(ctx context.Context, r Request) (Response, error)
}

// ModelFunc makes a Model of a function.
type ModelFunc func(ctx context.Context, r Request) (Response, error)

// Generate calls f.
func (f ModelFunc) Generate(ctx context.Context, r Request) (Response, error) { return f(ctx, r) }

// Streamer is what a [Model] implements besides when it can answer piece by piece. The sequence is walked once;
// breaking out of it must release what it holds. It ends after the first error. [Collect] turns it into a response.
type Streamer interface {
	Stream(ctx context.Context, r Request) iter.Seq2[Chunk, error]
}
