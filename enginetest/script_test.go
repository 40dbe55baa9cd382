package enginetest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/stretchr/testify/require"
)

func request(messages ...inference.Message) inference.Request {
	return inference.Request{Model: "m", Messages: messages}
}

func TestScriptPositionFollowsFromTheRequest(t *testing.T) {
	s := enginetest.NewScript(enginetest.Say("one"), enginetest.Say("two"), enginetest.Say("three"))
	require.Equal(t, 3, s.Len())
	history := []inference.Message{inference.User("go")}
	for _, want := range []string{"one", "two", "three"} {
		for range 2 { // asking again changes nothing
			got, err := s.Generate(t.Context(), request(history...))
			require.NoError(t, err)
			require.Equal(t, want, got.Message.Text)
			require.Equal(t, inference.RoleAssistant, got.Message.Role)
			require.Equal(t, inference.StopEnd, got.Stop)
			require.Equal(t, "m", got.Model)
		}
		history = append(history, inference.Assistant(want), inference.System("between"))
	}
	_, err := s.Generate(t.Context(), request(history...))
	require.ErrorIs(t, err, enginetest.ErrScriptOver)
	require.ErrorContains(t, err, "step 4")
	got, err := s.Generate(t.Context(), request(inference.User("anew")))
	require.NoError(t, err)
	require.Equal(t, "one", got.Message.Text)
}

func TestScriptServesConcurrentRuns(t *testing.T) {
	config, _ := enginetest.Config(t)
	s := enginetest.NewScript(
		enginetest.Call("c1", "look", map[string]string{"at": "a"}), enginetest.Call("c2", "look", nil), enginetest.Say("done"))
	config.Model = s
	eng := enginetest.Engine(t, config)
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))}
	var wg sync.WaitGroup
	results := make([]*engine.Result, 20)
	for i := range results {
		wg.Go(func() { results[i], _ = eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, in) })
	}
	wg.Wait()
	for _, res := range results {
		require.Equal(t, "done", res.Text)
		require.Equal(t, 3, res.Steps)
	}
	require.Len(t, s.Requests(), 60)
	s.Reset()
	require.Empty(t, s.Requests())
}

func TestScriptRecordsCopiesOfRequests(t *testing.T) {
	s := enginetest.NewScript(enginetest.Say("x"))
	req := request(inference.User("go"))
	_, err := s.Generate(t.Context(), req)
	require.NoError(t, err)
	req.Messages[0].Text = "changed by the caller"
	s.Requests()[0].Messages[0].Text = "changed by a reader"
	require.Equal(t, "go", s.Requests()[0].Messages[0].Text)
}

func TestScriptCopiesItsAnswers(t *testing.T) {
	a := enginetest.Call("c1", "look", nil)
	s := enginetest.NewScript(a)
	a.ToolCalls[0].Name = "changed"
	for range 2 {
		got, err := s.Generate(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, "look", got.Message.ToolCalls[0].Name)
		got.Message.ToolCalls[0].Name = "changed"
	}
}

func TestAnswersArePutTogether(t *testing.T) {
	first := enginetest.Say("I look").Costing(inference.Usage{InputTokens: 3})
	both := first.And(enginetest.Call("c1", "a", nil), enginetest.Call("c2", "b", inference.JSON("{not json")),
		enginetest.Say(" twice").Costing(inference.Usage{InputTokens: 4, OutputTokens: 1}))
	require.Empty(t, first.ToolCalls)
	got, err := enginetest.NewScript(both).Generate(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, inference.Response{
		Message: inference.Assistant("I look twice", inference.ToolCall{ID: "c1", Name: "a"}, inference.ToolCall{ID: "c2", Name: "b", Args: "{not json"}),
		Usage:   inference.Usage{InputTokens: 7, OutputTokens: 1}, Stop: inference.StopToolUse, Model: "m",
	}, got)

	_, err = enginetest.NewScript(enginetest.Call("c1", "a", func() {})).Generate(t.Context(), request())
	require.ErrorContains(t, err, "JSON")
}

func TestScriptFails(t *testing.T) {
	boom, other := errors.New("boom"), errors.New("other")
	s := enginetest.NewScript(enginetest.Say("half").And(enginetest.Fail(boom), enginetest.Fail(other)), enginetest.Say("after"))
	for range 2 { // the request is the same, and so is the answer
		got, err := s.Generate(t.Context(), request())
		require.ErrorIs(t, err, boom)
		require.ErrorIs(t, err, other)
		require.Equal(t, "half", got.Message.Text)
		require.Empty(t, got.Stop)
	}
	res, err := enginetest.Engine(t, engine.Config{Model: s}).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorIs(t, res.Err, boom)
}

func TestScriptFunctionMayLie(t *testing.T) {
	s := enginetest.NewScript(enginetest.Answer{Fn: func(r inference.Request) (inference.Response, error) {
		r.Messages[0].Text = "changed"
		return inference.Response{Message: inference.User("not my role")}, nil
	}})
	req := request(inference.User("go"))
	got, err := s.Generate(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, inference.RoleUser, got.Message.Role)
	require.Equal(t, "go", req.Messages[0].Text)
}

func TestScriptWaitsAndIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := enginetest.NewScript(enginetest.Answer{Text: "late", Wait: func(ctx context.Context) error {
			select {
			case <-time.After(time.Hour):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}})
		start := time.Now()
		got, err := s.Generate(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, "late", got.Message.Text)
		require.Equal(t, time.Hour, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = s.Generate(ctx, request())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = enginetest.NewScript(enginetest.Say("x")).Generate(ctx, request())
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestStreamGivesTheSameAnswer(t *testing.T) {
	boom := errors.New("boom")
	part := inference.Part{Kind: inference.PartReasoning, Text: "hm"}
	for name, a := range map[string]enginetest.Answer{
		"empty": {},
		"text":  enginetest.Say("  two words,\n\nthree  lines \n"),
		"calls": enginetest.Say("x ").And(enginetest.Call("c1", "a", map[string]int{"n": 1}), enginetest.Call("c2", "b", nil)),
		"usage": enginetest.Say("x").Costing(inference.Usage{InputTokens: 1, OutputTokens: 2, CachedTokens: 1}),
		"fails": enginetest.Say("half a").And(enginetest.Fail(boom)),
		"parts": {Fn: func(inference.Request) (inference.Response, error) {
			return inference.Response{Message: inference.Message{Role: inference.RoleAssistant, Parts: []inference.Part{part}}, Stop: inference.StopFiltered}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.NewScript(a)
			want, wantErr := s.Generate(t.Context(), request())
			got, err := inference.Collect(s.Stream(t.Context(), request()))
			require.Equal(t, want, got)
			require.Equal(t, wantErr, err)
		})
	}
	var words []string
	for c, err := range enginetest.NewScript(enginetest.Say("one two three")).Stream(t.Context(), request()) {
		require.NoError(t, err)
		words = append(words, c.Text)
	}
	require.Equal(t, []string{"one ", "two ", "three", ""}, words)
}

func TestStreamStops(t *testing.T) {
	s := enginetest.NewScript(enginetest.Say("a b c").And(enginetest.Call("c1", "x", nil), enginetest.Fail(errors.New("end"))))
	total := 0
	for range s.Stream(t.Context(), request()) {
		total++
	}
	for stop := 1; stop <= total; stop++ { // breaking out is fine after any chunk
		n := 0
		for range s.Stream(t.Context(), request()) {
			if n++; n == stop {
				break
			}
		}
		require.Equal(t, stop, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var text strings.Builder
	var last error
	for c, err := range s.Stream(ctx, request()) {
		text.WriteString(c.Text)
		last = err
		cancel()
	}
	require.Equal(t, "a ", text.String())
	require.ErrorIs(t, last, context.Canceled)
}
