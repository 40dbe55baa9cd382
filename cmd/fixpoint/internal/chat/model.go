package chat

import (
	"context"
	"iter"

	"github.com/ddd26017/fixpoint/inference"
)

// Watch returns a model that works as m does, and from which the session learns the
// schemas of the tools that it offers.
func (s *Session) Watch(m inference.Model) inference.Model {
	w := watched{m, &s.offers}
	if streamer, ok := m.(inference.Streamer); ok {
		return watchedStreamer{w, streamer}
	}
	return w
}

type watched struct {
	inference.Model
	offers *schemas
}

func (w watched) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	w.offers.learn(r.Tools)
	return w.Model.Generate(ctx, r)
}

type watchedStreamer struct {
	watched
	streamer inference.Streamer
}

func (w watchedStreamer) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	w.offers.learn(r.Tools)
	return w.streamer.Stream(ctx, r)
}
