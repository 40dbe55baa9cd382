package modeltest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

var answerTests = []test{
	{"text", func(t *testing.T, p Provider) {
		p.check(t, p.said("The sky ", "is ", "blue."))
	}},
	{"text as it comes", testTextAsItComes},
	{"empty", func(t *testing.T, p Provider) {
		p.check(t, p.said())
	}},
	{"unicode", func(t *testing.T, p Provider) {
		p.check(t, p.said("Grüße, ", "\u4e16\u754c \U0001F980 ", "\u202e<&> \"quoted\" \\ back\n\ttab \u0001 ", "e\u0301"))
	}},
	{"huge text", func(t *testing.T, p Provider) {
		pieces := make([]string, 40)
		for i := range pieces {
			pieces[i] = strings.Repeat(fmt.Sprintf("%d\u00e9 ", i), 10_000)
		}
		p.check(t, p.said(pieces...))
	}},
	{"one call", func(t *testing.T, p Provider) {
		p.check(t, p.called(oslo))
	}},
	{"call without arguments", func(t *testing.T, p Provider) {
		p.check(t, p.called(Call{ID: "call_0", Name: "now", Args: []string{"{}"}}))
	}},
	{"long numbers", func(t *testing.T, p Provider) {
		// No float64 has them: an identifier would become another one.
		p.check(t, p.called(Call{ID: "call_n", Name: "weather", Args: []string{
			`{"city":"9007199254740993","id":9007199254740993,"ids":[-12345678901234567`, `890,0],"text":"a \"12345678901234567890","of":{"x":18446744073709551615}}`,
		}}))
	}},
	{"several calls", func(t *testing.T, p Provider) {
		p.check(t, p.called(oslo, rome, Call{ID: "call_c", Name: "now", Args: []string{"{}"}}))
	}},
	{"text and calls", func(t *testing.T, p Provider) {
		a := p.called(oslo, rome)
		a.Text = []string{"I shall ", "look."}
		p.check(t, a)
	}},
	{"interleaved calls", func(t *testing.T, p Provider) {
		if p.Lacks.Interleave || p.Lacks.SplitArgs {
			t.Log("the service sends one call after the other")
			return
		}
		a := p.called(oslo, rome)
		a.Interleave = true
		p.check(t, a)
	}},
	{"malformed arguments", testMalformedArguments},
	{"usage", testUsage},
	{"stop reasons", testStopReasons},
	{"reasoning", func(t *testing.T, p Provider) {
		if p.Lacks.Reasoning {
			t.Log("the service does not show what its models think")
			return
		}
		a := p.called(oslo)
		a.Reasoning = []string{"They want ", "to know."}
		a.Text = []string{"Well."}
		for _, r := range p.check(t, a) {
			require.NotEmpty(t, r.Message.Parts)
			require.Equal(t, inference.PartReasoning, r.Message.Parts[0].Kind)
			require.Equal(t, "They want to know.", r.Message.Parts[0].Text)
		}
	}},
	{"image", func(t *testing.T, p Provider) {
		if p.Lacks.ImageAnswers {
			t.Log("the service's models answer with no images")
			return
		}
		a := p.said("Here it is.")
		a.Image = image
		for _, r := range p.check(t, a) {
			require.Len(t, r.Message.Parts, 1)
			got := r.Message.Parts[0]
			got.Extra = ""
			require.Equal(t, image, got)
		}
	}},
	{"members nobody knows", func(t *testing.T, p Provider) {
		a := p.called(oslo, rome)
		a.Text, a.Noise = []string{"I shall ", "look."}, true
		p.check(t, a)
	}},
	{"concurrent use", testConcurrentUse},
}

var (
	oslo  = Call{ID: "call_a", Name: "weather", Args: []string{`{"city":"Osl`, `o \"<&>\" \u00e6`, `","days":2}`}}
	rome  = Call{ID: "call_b", Name: "weather", Args: []string{`{"ci`, `ty":"Rome",`, `"days":3}`}}
	image = inference.Part{Kind: inference.PartImage, MediaType: "image/png", Data: "\x89PNG\r\n\x1a\n not really"}
)

func (p Provider) said(pieces ...string) Answer {
	return Answer{Model: p.Model + "-2026", Text: pieces, Usage: Usage{Input: 11, Output: 7}, Stop: inference.StopEnd}
}

func (p Provider) called(calls ...Call) Answer {
	return Answer{Model: p.Model + "-2026", Calls: calls, Usage: Usage{Input: 23, Cached: 4, Output: 9}, Stop: inference.StopToolUse}
}

// check lets the service give the answer in both modes, compares what the model makes of it with the answer and with
// each other, and returns it.
func (p Provider) check(t *testing.T, a Answer) []inference.Response {
	t.Helper()
	var got []inference.Response
	s := serve(t, p, answering(a))
	for _, m := range modes {
		r, err := s.ask(context.Background(), m, p.hello())
		require.NoError(t, err, m.name)
		require.NoError(t, inference.ValidateResponse(r), m.name)
		require.Equal(t, strings.Join(a.Text, ""), r.Message.Text, m.name)
		require.Equal(t, a.Stop, r.Stop, m.name)
		require.Equal(t, a.Model, r.Model, m.name)
		require.Equal(t, a.Usage.inference(), r.Usage, m.name)
		require.Len(t, r.Message.ToolCalls, len(a.Calls), m.name)
		for i, c := range r.Message.ToolCalls {
			require.Equal(t, a.Calls[i].Name, c.Name, "%s: call %d", m.name, i)
			require.Equal(t, spelled(inference.JSON(a.Calls[i].JSON())), spelled(c.Args), "%s: call %d", m.name, i)
			if !p.Lacks.CallIDs {
				require.Equal(t, a.Calls[i].ID, c.ID, "%s: call %d", m.name, i)
			}
			r.Message.ToolCalls[i].Args = spelled(c.Args)
		}
		got = append(got, r)
	}
	require.Equal(t, got[0], got[1], "the answer in one piece and the stream")
	require.Len(t, s.sent(), len(modes), "the adapter or its SDK asked again by itself")
	return got
}

// spelled gives equal arguments one text. None is the empty object, and what is no JSON stays.
func spelled(args inference.JSON) inference.JSON {
	if args == "" {
		return "{}"
	}
	if text, err := args.Canonical(); err == nil {
		return text
	}
	return args
}

func (u Usage) inference() inference.Usage {
	return inference.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Cached, ReasoningTokens: u.Reasoning}
}

// testTextAsItComes holds every piece back until the piece before it has been seen.
func testTextAsItComes(t *testing.T, p Provider) {
	pieces := []string{"first ", "second ", "third."}
	seen := make(chan struct{})
	s := serve(t, p, func(s *service, w http.ResponseWriter, r *http.Request, _ Wire) {
		rest := p.Stream(p.said(pieces...))
		for _, piece := range pieces {
			var head []string
			head, rest = split(t, rest, piece)
			s.frames(w, head...)
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
		s.frames(w, rest...)
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var got []string
	for c, err := range s.model.(inference.Streamer).Stream(ctx, p.hello()) {
		require.NoError(t, err)
		if c.Text != "" {
			got = append(got, c.Text)
			select {
			case seen <- struct{}{}:
			case <-ctx.Done():
				t.Fatal("modeltest: text arrived too late, when the stream was over")
			}
		}
	}
	require.Equal(t, pieces, got)
}

// testMalformedArguments wants arguments that are no JSON to be handed on as they are: the engine tells the model.
func testMalformedArguments(t *testing.T, p Provider) {
	if p.Lacks.MalformedArgs {
		t.Log("the service cannot send arguments that are no JSON")
		return
	}
	bad := Call{ID: "call_bad", Name: "weather", Args: []string{`{"city": "Os`, `lo", "days": }`}}
	for _, m := range modes {
		if !m.stream && p.Lacks.MalformedWhole {
			continue
		}
		s := serve(t, p, answering(p.called(oslo, bad)))
		r, err := s.ask(context.Background(), m, p.hello())
		require.NoError(t, err, m.name)
		require.NoError(t, inference.ValidateResponse(r), m.name)
		require.Len(t, r.Message.ToolCalls, 2, m.name)
		require.Equal(t, inference.JSON(bad.JSON()), r.Message.ToolCalls[1].Args, m.name)
		require.Equal(t, spelled(inference.JSON(oslo.JSON())), spelled(r.Message.ToolCalls[0].Args), m.name)
	}
}

// testUsage counts over chunks and over answers; cached and reasoning tokens must not count twice.
func testUsage(t *testing.T, p Provider) {
	a := p.said("Yes.")
	a.Usage = Usage{Input: 1000, Cached: 900, Output: 50, Reasoning: 40}
	if p.Lacks.Reasoning {
		a.Usage.Reasoning = 0
	}
	p.check(t, a)

	a.Usage = Usage{} // a service that does not count
	p.check(t, a)
}

func testStopReasons(t *testing.T, p Provider) {
	reasons := []inference.StopReason{inference.StopEnd, inference.StopMaxTokens}
	if !p.Lacks.Filtered {
		reasons = append(reasons, inference.StopFiltered)
	}
	for _, reason := range reasons {
		a := p.said("So be it")
		a.Stop = reason
		p.check(t, a)
	}
}

// testConcurrentUse asks from many goroutines at once; each must get the answer to its own question.
func testConcurrentUse(t *testing.T, p Provider) {
	const callers = 24
	s := serve(t, p, func(s *service, w http.ResponseWriter, _ *http.Request, wire Wire) {
		for i := range callers {
			if name := caller(i); strings.Contains(string(wire.Body), name) {
				a := p.called(Call{ID: "call_" + name, Name: "weather", Args: []string{`{"city":"`, name, `"}`}})
				a.Text = []string{"Hello, ", name}
				s.answer(w, wire, a)
				return
			}
		}
		http.Error(w, "a request of nobody", http.StatusTeapot)
	})
	done := make(chan error, callers)
	for i := range callers {
		go func() {
			r := p.hello()
			r.Messages = []inference.Message{inference.User("I am " + caller(i))}
			for j := range 4 {
				got, err := s.ask(context.Background(), modes[(i+j)%2], r)
				if err == nil && (got.Message.Text != "Hello, "+caller(i) || len(got.Message.ToolCalls) != 1 ||
					!strings.Contains(string(got.Message.ToolCalls[0].Args), caller(i))) {
					err = fmt.Errorf("%s was told %+v", caller(i), got.Message)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		require.NoError(t, <-done)
	}
}

func caller(i int) string { return fmt.Sprintf("caller-%02d", i) }
