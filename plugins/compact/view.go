package compact

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// ErrRequest is what the transform warns of when another one before it added or took
// away older messages. The place of the summary is unknown then and the request is left
// whole.
var ErrRequest = errors.New("compact: the request does not begin with the thread's messages; register the plugin before those that change which there are")

// View returns what model calls get to see of the thread's messages as they are now,
// before other transforms.
func View(pc *phase.Context) []inference.Message {
	list := blocks(pc.Messages())
	whole := joined(list)
	s, ok := standing(pc.Snapshot(), list)
	if !ok {
		return whole
	}
	return s.replace(list, whole)
}

// replace returns messages, which begin like those of the blocks, with the summary.
func (s Summary) replace(list []block, messages []inference.Message) []inference.Message {
	var out []inference.Message
	i := 0
	for _, b := range before(list, s.Upto) {
		next := i + len(b.messages)
		if s.keeps(b) {
			out = append(out, messages[i:next]...)
		}
		i = next
	}
	return append(append(out, s.message()), messages[i:]...)
}

// apply is the transform. It takes the request's messages, not the thread's, so that what
// other transforms made of them stays.
func apply(ctx context.Context, r inference.Request) (inference.Request, error) {
	pc, ok := phase.FromContext(ctx)
	if !ok || Held.Get(pc.Snapshot()).Text == "" {
		return r, nil
	}
	list := blocks(pc.Messages())
	s, ok := standing(pc.Snapshot(), list)
	if !ok {
		return r, nil
	}
	old := joined(before(list, s.Upto))
	if len(r.Messages) < len(old) || !alike(r.Messages[:len(old)], old) {
		return r, ErrRequest
	}
	r.Messages = s.replace(list, r.Messages)
	return r, nil
}
