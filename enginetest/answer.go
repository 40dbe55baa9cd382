package enginetest

import (
	"context"
	"errors"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
)

// Answer is one answer of a Script. Say, Call and Fail make the usual ones, and
// And puts several together. A Script copies the answers it is given.
type Answer struct {
	Text      string
	ToolCalls []inference.ToolCall
	Usage     inference.Usage
	// Stop is what the answer says about its end; "" is filled in: StopToolUse with
	// tool calls, StopEnd without.
	Stop inference.StopReason
	// Err makes the model fail. The rest of the answer is returned with it, as what
	// had arrived by then.
	Err error
	// Wait, if set, is called before the model answers: to hold the run up, or to do
	// something meanwhile. Its error is the model's. It may be called concurrently.
	Wait func(ctx context.Context) error
	// Fn, if set, answers instead of the fields above; only Wait still counts. It gets
	// a request of its own and may return anything, also what no model should. It may
	// be called concurrently.
	Fn func(inference.Request) (inference.Response, error)

	file *fileAnswer // set by ParseScript
}

// Say answers with a text.
func Say(text string) Answer { return Answer{Text: text} }

// Call answers with a tool call. The arguments are encoded as JSON, except that an
// inference.JSON is used as it is, JSON or not; nil means none. Arguments that
// cannot be encoded make an answer that fails.
func Call(id, tool string, args any) Answer {
	c := inference.ToolCall{ID: id, Name: tool}
	switch args := args.(type) {
	case nil:
	case inference.JSON:
		c.Args = args
	default:
		var err error
		if c.Args, err = inference.ToJSON(args); err != nil {
			return Fail(err)
		}
	}
	return Answer{ToolCalls: []inference.ToolCall{c}}
}

// Fail answers with an error. A request that is repeated unchanged gets the same
// error again, since a Script has no memory; see Script.
func Fail(err error) Answer { return Answer{Err: err} }

// Costing returns a with a usage.
func (a Answer) Costing(u inference.Usage) Answer {
	a.Usage = u
	return a
}

// And returns an answer with the texts, tool calls, usages and errors of a and of
// others, in that order. The first Stop, Wait and Fn that are set count.
func (a Answer) And(others ...Answer) Answer {
	a.ToolCalls = slices.Clone(a.ToolCalls)
	for _, o := range others {
		a.Text += o.Text
		a.ToolCalls = append(a.ToolCalls, o.ToolCalls...)
		a.Usage = a.Usage.Add(o.Usage)
		a.Err = errors.Join(a.Err, o.Err)
		if a.Stop == "" {
			a.Stop = o.Stop
		}
		if a.Wait == nil {
			a.Wait = o.Wait
		}
		if a.Fn == nil {
			a.Fn = o.Fn
		}
	}
	return a
}
