package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/inference"
)

// ErrScriptOver is the model error of a request for which the script has no more
// answers.
var ErrScriptOver = errors.New("enginetest: the script has no more answers")

// Script is a model that gives answers which were written down in advance. It
// implements inference.Model and inference.Streamer; streamed, its text comes
// word by word.
//
// A Script has no position of its own. Which answer is next follows from the
// request alone: it is the one behind the answers that the assistant messages in
// it stand for. So one Script serves any number of concurrent runs, a run that is
// repeated gets the same answers, and a second run on a thread goes on where the
// first stopped. For the same reason a request that is repeated unchanged, as
// after a model error, gets the same answer again, and a transform that adds
// assistant messages to a request or takes them away moves the position.
//
// Answers of ParseScript with a false condition are skipped; see there. A Script
// is safe for concurrent use.
type Script struct {
	answers []Answer
	file    string // "" for a script made in Go

	mu       sync.Mutex
	requests []inference.Request
}

// NewScript returns a script that gives the answers in order.
func NewScript(answers ...Answer) *Script {
	s := &Script{answers: slices.Clone(answers)}
	for i := range s.answers {
		s.answers[i].ToolCalls = slices.Clone(s.answers[i].ToolCalls)
	}
	return s
}

// Len returns the number of answers in the script.
func (s *Script) Len() int { return len(s.answers) }

// Requests returns a copy of every request so far, in the order of arrival, which
// for concurrent runs is theirs to decide.
func (s *Script) Requests() []inference.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]inference.Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = r.Clone()
	}
	return out
}

// Reset forgets the recorded requests.
func (s *Script) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Generate gives the answer that is next for r.
func (s *Script) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Clone())
	s.mu.Unlock()
	a, err := s.next(r)
	if err != nil {
		return inference.Response{}, err
	}
	if a.Wait != nil {
		if err := a.Wait(ctx); err != nil {
			return inference.Response{}, err
		}
	}
	if ctx.Err() != nil {
		return inference.Response{}, context.Cause(ctx)
	}
	if a.Fn != nil {
		return a.Fn(r.Clone())
	}
	resp := inference.Response{
		Message: inference.Assistant(a.Text, a.ToolCalls...), Usage: a.Usage, Stop: a.Stop, Model: r.Model,
	}
	if resp.Stop == "" && a.Err == nil {
		resp.Stop = inference.StopEnd
		if len(a.ToolCalls) > 0 {
			resp.Stop = inference.StopToolUse
		}
	}
	return resp, a.Err
}

// Stream gives the answer that is next for r in pieces: its text word by word,
// then its parts and tool calls, then usage and stop reason, then its error.
func (s *Script) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		resp, err := s.Generate(ctx, r)
		for _, word := range words(resp.Message.Text) {
			if !yield(inference.Chunk{Text: word}, nil) {
				return
			}
			if ctx.Err() != nil {
				yield(inference.Chunk{}, context.Cause(ctx))
				return
			}
		}
		for _, p := range resp.Message.Parts {
			if !yield(inference.Chunk{Part: p}, nil) {
				return
			}
		}
		for i, c := range resp.Message.ToolCalls {
			d := inference.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, Args: string(c.Args)}
			if !yield(inference.Chunk{ToolCall: d}, nil) {
				return
			}
		}
		if !yield(inference.Chunk{Usage: resp.Usage, Stop: resp.Stop, Model: resp.Model}, nil) {
			return
		}
		if err != nil {
			yield(inference.Chunk{}, err)
		}
	}
}

// words cuts text behind its spaces and line breaks, so that the pieces joined
// are the text.
func words(text string) []string {
	var out []string
	for text != "" {
		end := strings.IndexAny(text, " \n") + 1
		for end > 0 && end < len(text) && (text[end] == ' ' || text[end] == '\n') {
			end++
		}
		if end <= 0 {
			end = len(text)
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}

// next finds the answer that r asks for. It walks the transcript from its start
// and takes, for each assistant message, the first answer behind the last taken
// whose condition holds for what stands before that message: the same decisions
// as when those answers were given.
func (s *Script) next(r inference.Request) (Answer, error) {
	view := newView()
	at := 0
	for _, m := range r.Messages {
		if m.Role == inference.RoleAssistant {
			given, err := s.from(at, view)
			if err != nil {
				return Answer{}, err
			}
			at = min(given+1, len(s.answers))
		}
		view.add(m)
	}
	at, err := s.from(at, view)
	switch {
	case err != nil:
		return Answer{}, err
	case at == len(s.answers):
		return Answer{}, s.over(view.Step)
	case s.answers[at].file != nil:
		return s.answers[at].file.answer(view)
	}
	return s.answers[at], nil
}

// from returns the position of the first answer from at on whose condition holds,
// or the number of answers.
func (s *Script) from(at int, view *view) (int, error) {
	for ; at < len(s.answers); at++ {
		f := s.answers[at].file
		if f == nil {
			break
		}
		if applies, err := f.applies(view); applies || err != nil {
			return at, err
		}
	}
	return at, nil
}

func (s *Script) over(step int) error {
	name := "the script"
	if s.file != "" {
		name = s.file
	}
	return fmt.Errorf("%w: step %d asked, and %s has %d; add an answer without tool calls as the last one", ErrScriptOver, step, name, len(s.answers))
}
