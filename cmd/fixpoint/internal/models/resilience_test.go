package models_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/models"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// streamed gives what a function says in one piece.
type streamed func() (inference.Response, error)

func (s streamed) Generate(context.Context, inference.Request) (inference.Response, error) {
	return s()
}

func (s streamed) Stream(context.Context, inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		r, err := s()
		yield(inference.Chunk{Text: r.Message.Text, Stop: r.Stop}, err)
	}
}

// guarded makes a model of scripts that have a section of resilience.
func guarded(t *testing.T, section inference.JSON, scripts map[string]inference.Model, tell func(label, text string)) (inference.Model, error) {
	t.Helper()
	source := models.Source{Env: func(string) string { return "" }, Tell: tell, Script: func(file string) (inference.Model, error) {
		m, ok := scripts[file]
		if !ok {
			return nil, errors.New("there is no " + file)
		}
		return m, nil
	}}
	spec := engine.AgentSpec{ID: "x", ModelID: "script:a"}
	if section != "" {
		spec.Sections = map[string]inference.JSON{models.Section.Name(): section}
	}
	other := engine.AgentSpec{ID: "y", ModelID: "script:a"} // has what the first one says
	made, err := source.Make([]engine.AgentSpec{other, spec}, fault)
	return made["script:a"], err
}

func away() (inference.Response, error) {
	return inference.Response{}, &resilient.Failure{Class: resilient.Overloaded, Err: errors.New("away")}
}

func says(text string, stop inference.StopReason) streamed {
	return func() (inference.Response, error) {
		return inference.Response{Message: inference.Assistant(text), Stop: stop}, nil
	}
}

// A breaker spares a model that keeps failing, and the next one answers meanwhile.
func TestBreaker(t *testing.T) {
	asked := 0
	var told []string
	m, err := guarded(t, `{"attempts":1,"fallback":["script:b"],"breaker":{"failures":2,"open_for":"1h"}}`, map[string]inference.Model{
		"a": streamed(func() (inference.Response, error) { asked++; return away() }),
		"b": says("hello", inference.StopEnd),
	}, func(label, text string) { told = append(told, label+" "+text) })
	require.NoError(t, err)
	for range 4 {
		resp, err := inference.Collect(m.(inference.Streamer).Stream(t.Context(), inference.Request{Model: "script:a"}))
		require.NoError(t, err)
		require.Equal(t, "hello", resp.Message.Text)
	}
	require.Equal(t, 2, asked)
	require.Contains(t, told, "breaker of script:a is open")
	require.Contains(t, told, "failover from script:a to script:b: resilient: overloaded: away")
}

// An answer that was cut off is gone on with, as often as the section says.
func TestContinue(t *testing.T) {
	answers := []streamed{says("one ", inference.StopMaxTokens), says("two ", inference.StopMaxTokens), says("three", inference.StopEnd)}
	next := func() (inference.Response, error) {
		s := answers[0]
		answers = answers[1:]
		return s()
	}
	var told []string
	m, err := guarded(t, `{"continue":2}`, map[string]inference.Model{"a": streamed(next)}, func(label, text string) { told = append(told, label+" "+text) })
	require.NoError(t, err)
	resp, err := m.Generate(t.Context(), inference.Request{Model: "script:a", Messages: []inference.Message{inference.User("count")}})
	require.NoError(t, err)
	require.Equal(t, "one two three", resp.Message.Text)
	require.Equal(t, []string{"continue script:a goes on with an answer that was cut off", "continue script:a goes on with an answer that was cut off"}, told)
}

// A scripted model is left as it is unless a section says otherwise, and faults say
// which fallback is meant.
func TestScriptsAndFaults(t *testing.T) {
	asked := 0
	m, err := guarded(t, "", map[string]inference.Model{"a": streamed(func() (inference.Response, error) { asked++; return away() })}, nil)
	require.NoError(t, err)
	_, err = m.Generate(t.Context(), inference.Request{})
	require.ErrorIs(t, err, resilient.Overloaded)
	require.Equal(t, 1, asked)

	_, err = guarded(t, `{"fallback":["script:zz"]}`, map[string]inference.Model{"a": says("", "")}, nil)
	require.EqualError(t, err, "model_id: fallback[0] of its resilience: there is no zz")
	err = models.Resilience{}.Validate()
	for _, name := range []string{"total", "timeouts.request", "timeouts.first", "timeouts.stall", "breaker.open_for", "attempts", "recovery"} {
		require.ErrorContains(t, err, name)
	}
	require.Equal(t, 7, strings.Count(err.Error(), "resilience: "))
}
