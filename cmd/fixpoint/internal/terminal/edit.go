package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// editable returns the call that a question is about, and whether its arguments can be
// edited: they are known here, lines can be changed, and a yes runs the tool.
func (q *Prompt) editable(t gate.Ticket) (call, bool) {
	return q.call, q.known && q.keys.Line != nil && t.Mode != gate.UseAsResult
}

// edit reads other arguments for a call, beginning with the present ones where lines can
// be changed. It is "" where
// an empty line goes back to the question. What is no JSON object, or what the tool would
// refuse, is there to be changed again.
func (q *Prompt) edit(ctx context.Context, c call) (inference.JSON, error) {
	text := oneLine(c.args)
	for {
		q.cue("arguments, as JSON; an empty line goes back")
		read := q.line
		if q.keys.Line != nil {
			read = func(ctx context.Context) (string, error) { return q.keys.Line(ctx, q.said, text) }
		}
		typed, err := read(ctx)
		if err != nil || strings.TrimSpace(typed) == "" {
			return "", err
		}
		args, err := readArgs(typed)
		if err == nil && q.keys.CheckArgs != nil {
			err = q.keys.CheckArgs(c.name, args)
		}
		if err == nil {
			return args, nil
		}
		q.complain(err.Error())
		text = typed
	}
}

// oneLine writes JSON in one line, and as it is if it is no JSON.
func oneLine(args string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(args)) != nil {
		return args
	}
	return b.String()
}

// readArgs reads the arguments of a call.
func readArgs(text string) (inference.JSON, error) {
	var object map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &object)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		read := int(syntax.Offset)
		if read < len(text) || !strings.Contains(syntax.Error(), "unexpected end") {
			read-- // the character that is wrong
		}
		before := []rune(text[:max(0, min(len(text), read))])
		return "", fmt.Errorf("that is not JSON: %w, behind “%s”", syntax, string(before[max(0, len(before)-20):]))
	case err != nil || object == nil:
		return "", errors.New("arguments are a JSON object: {\"name\": value, ...}")
	}
	return inference.JSON(text), nil
}
