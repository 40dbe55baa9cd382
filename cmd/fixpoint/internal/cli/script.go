package cli

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

// scripted is a script that begins anew, with the newest message of the user, where it
// cannot go on: when it is at its end, or speaks of results that are not there. So it
// has something to say to every prompt of a thread. It does not stream: its answers are
// there at once.
type scripted struct{ script *enginetest.Script }

// Generate gives the answer that is next.
func (s scripted) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	resp, err := s.script.Generate(ctx, r)
	if anew, ok := afresh(r); ok && stuck(err) {
		if again, other := s.script.Generate(ctx, anew); !stuck(other) {
			return again, other
		}
	}
	return resp, err
}

func stuck(err error) bool {
	return errors.Is(err, enginetest.ErrScriptOver) || errors.Is(err, enginetest.ErrBadScript)
}

// afresh leaves out what was said before the newest message of the user, if anything
// was.
func afresh(r inference.Request) (inference.Request, bool) {
	for i := len(r.Messages) - 1; i > 0; i-- {
		if r.Messages[i].Role == inference.RoleUser {
			r.Messages = r.Messages[i:]
			return r, true
		}
	}
	return r, false
}
