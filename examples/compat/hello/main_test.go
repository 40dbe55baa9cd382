package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// Capability H1. The six hooks fire in order, and those that come after also when the tool
// or the model failed.
func TestSixHooks(t *testing.T) {
	var lines []string
	o, err := run(t.Context(), willing(), hooks(func(text string) { lines = append(lines, text) }))
	require.NoError(t, err)
	require.NoError(t, o.result.Err)
	require.Equal(t, "The tool says: 42", o.result.Text)
	require.Equal(t, []string{
		"before run:   What is twice 21?",
		"before model: messages in the history: 1, and a note for this call",
		"after model:  tool calls it asks for: 1",
		`before tool:  double {"n":21}`,
		"after tool:   ok, 42",
		"before model: messages in the history: 3, and a note for this call",
		"after model:  tool calls it asks for: 0",
		"after run:    natural",
	}, lines)

	lines = nil
	o, err = run(t.Context(), failing(), hooks(func(text string) { lines = append(lines, text) }))
	require.NoError(t, err)
	require.ErrorIs(t, o.result.Err, errOverloaded)
	require.Equal(t, []string{
		"before run:   What is twice 21?",
		"before model: messages in the history: 1, and a note for this call",
		"after model:  tool calls it asks for: 1",
		`before tool:  double {"n":-1}`,
		"after tool:   error, error: it only knows numbers from 0 on",
		"before model: messages in the history: 3, and a note for this call",
		"after model:  it failed",
		"after run:    error",
	}, lines)
}

// Capability H3. The note of a hook is in each request, once, and never in the history.
func TestNote(t *testing.T) {
	o, err := run(t.Context(), willing(), hooks(func(string) {}))
	require.NoError(t, err)
	require.Len(t, o.requests, 2)
	for i, messages := range []int{2, 4} {
		require.Len(t, o.requests[i].Messages, messages)
		require.Len(t, withoutNote(o.requests[i].Messages), messages-1)
	}
	require.Len(t, o.history, 4)
	require.Equal(t, o.history, withoutNote(o.history))
}

func withoutNote(messages []inference.Message) (rest []inference.Message) {
	for _, m := range messages {
		if m.Text != note {
			rest = append(rest, m)
		}
	}
	return rest
}

// Capability H4. Without any plugin the run has the same result and history, and but for the
// note the model is asked the same.
func TestNoHooks(t *testing.T) {
	hooked, err := run(t.Context(), willing(), hooks(func(string) {}))
	require.NoError(t, err)
	bare, err := run(t.Context(), willing())
	require.NoError(t, err)
	require.Equal(t, hooked.history, bare.history)
	require.Equal(t, hooked.result.Reason, bare.result.Reason)
	require.True(t, same(hooked, bare))
	require.Len(t, bare.requests, len(hooked.requests))
	for i, r := range hooked.requests {
		require.Equal(t, withoutNote(r.Messages), bare.requests[i].Messages)
	}

	other, err := run(t.Context(), failing())
	require.NoError(t, err)
	require.False(t, same(bare, other))
}

// Capabilities H2 and H5. The trace shows what the time went into, and the run that it
// watches is the same.
func TestTrace(t *testing.T) {
	var text bytes.Buffer
	traced, err := run(t.Context(), willing(), trace.New(trace.Options{Text: &text}))
	require.NoError(t, err)
	bare, err := run(t.Context(), willing())
	require.NoError(t, err)
	require.True(t, same(traced, bare))
	require.Equal(t, bare.requests, traced.requests)
	for _, line := range []string{
		"0.3000     model answered in 300ms",
		"0.3200     call double c1: ok in 20ms, its body 20ms",
		"0.6200 run ended: natural, after 620ms",
	} {
		require.Contains(t, text.String(), line)
	}
}

// Capability H6. A gate refuses the call, a hook that panics is skipped with a warning that
// names it, and the manifest lists hooks.
func TestWhatTheChapterLeavesOpen(t *testing.T) {
	o, err := run(t.Context(), willing(), guard(), broken())
	require.NoError(t, err)
	require.NoError(t, o.result.Err)
	require.Zero(t, o.ran)
	require.Equal(t, inference.OutcomeBlocked, o.history[2].Result.Outcome)
	require.Contains(t, o.history[2].Result.Content, "no arithmetic today")
	require.Len(t, o.warnings, 2) // one for each model call
	require.Contains(t, o.warnings[0], "plugin broken panicked")
	require.Equal(t, []engine.HookManifest{{
		ID: "broken/before_inference/0", Phase: phase.BeforeInference, Tier: -1, OnError: engine.Skip,
	}}, o.hooks)

	o, err = run(t.Context(), willing(), hooks(func(string) {}))
	require.NoError(t, err)
	require.Equal(t, 1, o.ran)
	var phases []phase.Phase
	for _, h := range o.hooks {
		phases = append(phases, h.Phase)
	}
	require.Equal(t, []phase.Phase{phase.RunStart, phase.BeforeInference, phase.AfterInference,
		phase.BeforeToolExecute, phase.AfterToolExecute, phase.RunEnd}, phases)
}

func Example() {
	if err := show(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// == six hooks take part in a run
	//   before run:   What is twice 21?
	//   before model: messages in the history: 1, and a note for this call
	//   after model:  tool calls it asks for: 1
	//   before tool:  double {"n":21}
	//   after tool:   ok, 42
	//   before model: messages in the history: 3, and a note for this call
	//   after model:  tool calls it asks for: 0
	//   after run:    natural
	// natural after 2 steps: The tool says: 42
	//
	// == the hooks are in the manifest
	// hello/run_start/0, tier 0, on error skip
	// hello/before_inference/0, tier 0, on error skip
	// hello/after_inference/0, tier 0, on error skip
	// hello/before_tool_execute/0, tier 0, on error skip
	// hello/after_tool_execute/0, tier 0, on error skip
	// hello/run_end/0, tier 0, on error skip
	//
	// == what comes after fires on failures too: the tool fails, then the model
	//   before run:   What is twice 21?
	//   before model: messages in the history: 1, and a note for this call
	//   after model:  tool calls it asks for: 1
	//   before tool:  double {"n":-1}
	//   after tool:   error, error: it only knows numbers from 0 on
	//   before model: messages in the history: 3, and a note for this call
	//   after model:  it failed
	//   after run:    error
	// error after 2 steps: engine: the model failed: the model is overloaded
	//
	// == the same run without hooks
	// natural after 2 steps: The tool says: 42
	// same result and history: true
	//
	// == a guard that refuses the call, and a hook that panics
	// natural after 2 steps: The tool says: blocked: no arithmetic today
	// tool calls that ran: 0, warnings: 2, the first:
	// engine: broken/before_inference/0 of plugin broken failed at before_inference: engine: plugin broken panicked at before_inference: a mistake; its command was dropped
	//
	// == the same run with its timing, as an observer is told of it
	//     0.0000 run id-1 of agent hello: What is twice 21?
	//     0.0000   run_start: 1 hook
	//     0.0000     hook hello/run_start/0 took 0s
	//     0.0000     effect hello.said of hello took 0s
	//     0.0000   run_start took 0s
	//     0.0000   step 1
	//     0.0000     before_inference: 1 hook
	//     0.0000       hook hello/before_inference/0 took 0s
	//     0.0000       effect hello.said of hello took 0s
	//     0.0000       action fixpoint.add_context of hello took 0s in round 1
	//     0.0000       round 1: 1 action
	//     0.0000     before_inference took 0s, 1 round
	//     0.0000     model: 2 messages, 1 tool
	//     0.3000     model answered in 300ms, 0 tokens in and 0 out, asks for 1 call
	//     0.3000     after_inference: 1 hook
	//     0.3000       hook hello/after_inference/0 took 0s
	//     0.3000       effect hello.said of hello took 0s
	//     0.3000     after_inference took 0s
	//     0.3000     call double c1
	//     0.3000       tool_gate
	//     0.3000         gates: abstain by default
	//     0.3000       tool_gate took 0s
	//     0.3000       before_tool_execute: 1 hook
	//     0.3000         hook hello/before_tool_execute/0 took 0s
	//     0.3000         effect hello.said of hello took 0s
	//     0.3000       before_tool_execute took 0s
	//     0.3200       after_tool_execute: 1 hook
	//     0.3200         hook hello/after_tool_execute/0 took 0s
	//     0.3200         effect hello.said of hello took 0s
	//     0.3200       after_tool_execute took 0s
	//     0.3200     call double c1: ok in 20ms, its body 20ms
	//     0.3200   step 1 took 320ms
	//     0.3200   step 2
	//     0.3200     before_inference: 1 hook
	//     0.3200       hook hello/before_inference/0 took 0s
	//     0.3200       effect hello.said of hello took 0s
	//     0.3200       action fixpoint.add_context of hello took 0s in round 1
	//     0.3200       round 1: 1 action
	//     0.3200     before_inference took 0s, 1 round
	//     0.3200     model: 4 messages, 1 tool
	//     0.6200     model answered in 300ms, 0 tokens in and 0 out
	//     0.6200     after_inference: 1 hook
	//     0.6200       hook hello/after_inference/0 took 0s
	//     0.6200       effect hello.said of hello took 0s
	//     0.6200     after_inference took 0s
	//     0.6200   step 2 took 300ms
	//     0.6200   run_end: 1 hook
	//     0.6200     hook hello/run_end/0 took 0s
	//     0.6200     effect hello.said of hello took 0s
	//     0.6200   run_end took 0s
	//     0.6200 run ended: natural, after 620ms
}
