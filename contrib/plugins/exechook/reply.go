package exechook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/inference"
)

// Opinion is what a program decided.
type Opinion string

// The opinions, weakest first.
const (
	NoOpinion Opinion = ""
	Allow     Opinion = "allow"
	Ask       Opinion = "ask"
	Defer     Opinion = "defer" // wait for another system
	Deny      Opinion = "deny"  // at Stop: do not stop
)

// rank orders opinions by strictness.
func (o Opinion) rank() int {
	return slices.Index([]Opinion{NoOpinion, Allow, Ask, Defer, Deny}, o)
}

// stricter returns the stricter of two opinions.
func stricter(a, b Opinion) Opinion {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// Reply is what a program that ended well has said on its standard output.
type Reply struct {
	Opinion Opinion
	Reason  string
	// Input takes the place of the tool's arguments, under the names that programs
	// use. It is an object, or empty.
	Input inference.JSON
	// Output takes the place of the tool's result for the model.
	Output *string
	// Context is for the model.
	Context string
	// Message is for people.
	Message string
	// EndRun ends the run, with EndReason.
	EndRun    bool
	EndReason string
}

// wire is a reply as programs write it.
type wire struct {
	Continue           *bool  `json:"continue"`
	StopReason         string `json:"stopReason"`
	SuppressOutput     bool   `json:"suppressOutput"` // there is no transcript that shows it
	SystemMessage      string `json:"systemMessage"`
	Decision           string `json:"decision"`
	Reason             string `json:"reason"`
	HookSpecificOutput *struct {
		HookEventName            string          `json:"hookEventName"`
		PermissionDecision       string          `json:"permissionDecision"`
		PermissionDecisionReason string          `json:"permissionDecisionReason"`
		UpdatedInput             json.RawMessage `json:"updatedInput"`
		AdditionalContext        string          `json:"additionalContext"`
		UpdatedToolOutput        json.RawMessage `json:"updatedToolOutput"`
		UpdatedMCPToolOutput     json.RawMessage `json:"updatedMCPToolOutput"`
		Decision                 *struct {
			Behavior     string          `json:"behavior"`
			Message      string          `json:"message"`
			UpdatedInput json.RawMessage `json:"updatedInput"`
		} `json:"decision"`
	} `json:"hookSpecificOutput"`
}

// ParseReply reads what a program printed before it exited with 0. A text that does
// not begin with "{" says nothing, except that it is context at the events that take
// it. Members that are not known are ignored, as agents do; a known one of the wrong
// type, a decision that is none, and anything behind the object is an error.
func ParseReply(e Event, stdout []byte) (r Reply, err error) {
	text := bytes.TrimSpace(stdout)
	if len(text) == 0 {
		return r, nil
	}
	if text[0] != '{' {
		if events[e].addsText {
			r.Context = strings.ToValidUTF8(string(text), "\uFFFD")
		}
		return r, nil
	}
	if !utf8.Valid(text) {
		return r, errors.New("the output is not valid UTF-8")
	}
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return r, fmt.Errorf("the output is not the JSON that was expected: %w", err)
	}
	if w.Continue != nil && !*w.Continue {
		r.EndRun, r.EndReason = true, w.StopReason
	}
	r.Message, r.Reason = w.SystemMessage, w.Reason
	if r.Opinion, err = opinion("decision", w.Decision, map[string]Opinion{
		"approve": Allow, "allow": Allow, "block": Deny, "deny": Deny, "ask": Ask,
	}); err != nil {
		return Reply{}, err
	}
	s := w.HookSpecificOutput
	if s == nil {
		return r, nil
	}
	if s.HookEventName != "" && s.HookEventName != string(e) {
		return Reply{}, fmt.Errorf("hookSpecificOutput is about %q, but the event is %s", s.HookEventName, e)
	}
	r.Context = s.AdditionalContext
	said, err := opinion("permissionDecision", s.PermissionDecision, map[string]Opinion{
		"allow": Allow, "deny": Deny, "ask": Ask, "defer": Defer,
	})
	if err != nil {
		return Reply{}, err
	}
	r.add(said, s.PermissionDecisionReason)
	input := s.UpdatedInput
	if d := s.Decision; d != nil {
		said, err := opinion("behavior", d.Behavior, map[string]Opinion{"allow": Allow, "deny": Deny})
		if err != nil {
			return Reply{}, err
		}
		r.add(said, d.Message)
		if set(d.UpdatedInput) {
			input = d.UpdatedInput
		}
	}
	if set(input) {
		if input[0] != '{' {
			return Reply{}, errors.New("updatedInput is no object")
		}
		r.Input = inference.JSON(input)
	}
	for _, out := range []json.RawMessage{s.UpdatedToolOutput, s.UpdatedMCPToolOutput} {
		if set(out) && r.Output == nil {
			text := string(out)
			if out[0] == '"' && json.Unmarshal(out, &text) != nil {
				return Reply{}, errors.New("updatedToolOutput is no text")
			}
			r.Output = &text
		}
	}
	return r, nil
}

// add takes an opinion in: of several in one reply the strictest counts.
func (r *Reply) add(o Opinion, reason string) {
	if o.rank() > r.Opinion.rank() || o == r.Opinion && reason != "" {
		r.Opinion, r.Reason = o, reason
	}
}

func opinion(member, word string, known map[string]Opinion) (Opinion, error) {
	o, ok := known[word]
	if !ok && word != "" {
		return "", fmt.Errorf("%s is %q, which means nothing", member, word)
	}
	return o, nil
}

func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
