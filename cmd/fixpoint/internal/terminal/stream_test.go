package terminal_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// streaming is a model that says what it is given.
type streaming []inference.Chunk

func (s streaming) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	return inference.Collect(s.Stream(ctx, r))
}

func (s streaming) Stream(context.Context, inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		for _, c := range s {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// walk shows an answer: the events of an engine come late by lag chunks.
func walk(t *testing.T, level terminal.Level, s terminal.Screen, lag int, m streaming) (shown string, p *terminal.Printer) {
	t.Helper()
	var out bytes.Buffer
	s.Out = &out
	p = terminal.NewPrinter(s)
	v := terminal.NewView(p, level)
	h := at(1, phase.BeforeInference)
	v.Observe(engine.InferenceStarted{Header: h, Model: "m"})
	var late []engine.Event
	stream := v.Watch(m).(inference.Streamer).Stream(t.Context(), inference.Request{})
	resp, err := inference.Collect(func(yield func(inference.Chunk, error) bool) {
		for c, err := range stream {
			if c.Text != "" {
				late = append(late, engine.InferenceChunk{Header: h, Text: c.Text})
			}
			for len(late) > lag {
				v.Observe(late[0])
				late = late[1:]
			}
			if !yield(c, err) {
				return
			}
		}
	})
	require.NoError(t, err)
	for _, e := range late {
		v.Observe(e)
	}
	v.Observe(engine.InferenceFinished{Header: h, Text: resp.Message.Text, ToolCalls: resp.Message.ToolCalls, Usage: resp.Usage})
	return out.String(), p
}

func text(pieces ...string) (s streaming) {
	for _, p := range pieces {
		s = append(s, inference.Chunk{Text: p})
	}
	return s
}

// However a text is cut into pieces, and however late its events come, its lines are the
// same, and calls and thoughts stand where they began.
func TestStream(t *testing.T) {
	m := append(streaming{{Reasoning: "Hm, "}, {Reasoning: "well."}}, text("\nOne ", "two\nthree", "\n", "\n", "four\x1b[2J", "\r\n\n")...)
	m = append(m, inference.Chunk{ToolCall: inference.ToolCallDelta{ID: "a", Name: "list"}}, inference.Chunk{ToolCall: inference.ToolCallDelta{Args: "{}"}},
		inference.Chunk{Usage: inference.Usage{InputTokens: 5, OutputTokens: 3, ReasoningTokens: 2}})
	const want = "    model    thinks\n    model    One two\n             three\n\n             four\uFFFD[2J\n    model    asks for list\n    model    (8 tokens)\n"
	for lag := range 8 {
		got, _ := walk(t, terminal.Normal, terminal.Screen{}, lag, m)
		require.Equal(t, want, got, lag)
	}
	got, _ := walk(t, terminal.Verbose, terminal.Screen{}, 0, m)
	require.Contains(t, got, "  thought    Hm, well.\n    model    One two\n")
	require.Contains(t, got, "(tokens: 5 in, 3 out (2 of thoughts))")
	got, _ = walk(t, terminal.Quiet, terminal.Screen{}, 0, m)
	require.Empty(t, got)
}

// On a screen lines are shown as they fill up, and words are neither cut nor lost.
func TestStreamFitsTheScreen(t *testing.T) {
	const said = "The quick brown fox jumps over the lazy dog and runs on, into the wood."
	whole, _ := walk(t, terminal.Normal, terminal.Screen{Width: 40}, 0, text(said))
	for size := 1; size < 9; size++ {
		var m streaming
		for rest := said; rest != ""; {
			n := min(size, len(rest))
			m = append(m, inference.Chunk{Text: rest[:n]})
			rest = rest[n:]
		}
		got, _ := walk(t, terminal.Normal, terminal.Screen{Width: 40}, 0, m)
		require.Equal(t, whole, got, size)
	}
	for line := range strings.Lines(whole) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 40, line)
	}
	require.Contains(t, strings.Join(strings.Fields(whole), " "), "The quick brown fox jumps over the lazy dog and runs on, into the wood.")
}

// An answer that was shown as it came is not shown again at the end; another one is.
func TestNoTextTwice(t *testing.T) {
	for said, times := range map[string]int{"Hello.": 1, "Another.": 2} {
		var out bytes.Buffer
		p := terminal.NewPrinter(terminal.Screen{Out: &out})
		v := terminal.NewView(p, terminal.Normal)
		h := at(1, phase.BeforeInference)
		v.Observe(engine.InferenceStarted{Header: h})
		v.Observe(engine.InferenceChunk{Header: h, Text: said})
		v.Observe(engine.InferenceFinished{Header: h, Text: said})
		p.Brief(&engine.Result{Reason: phase.ReasonNatural, Text: "Hello."}, terminal.Normal)
		require.Equal(t, times, strings.Count(out.String(), "Hello.")+strings.Count(out.String(), "Another."), out.String())
	}
}

// Notes of a model stand between the lines of its answer, and wait for it to be asked.
func TestTell(t *testing.T) {
	var out bytes.Buffer
	v := terminal.NewView(terminal.NewPrinter(terminal.Screen{Out: &out}), terminal.Normal)
	h := at(1, phase.BeforeInference)
	v.Tell("retry", "early")
	require.Empty(t, out.String())
	v.Observe(engine.InferenceStarted{Header: h})
	v.Observe(engine.InferenceChunk{Header: h, Text: "Half a"})
	v.Tell("retry", "again\x1b[2J")
	v.Observe(engine.InferenceChunk{Header: h, Text: " line."})
	v.Observe(engine.InferenceFinished{Header: h, Text: "Half a line."})
	v.Tell("server", "gone")
	v.Tell("server", strings.Repeat("x", 1000))
	v.Observe(engine.StepFinished{Header: h})
	require.Equal(t, "    retry    early\n    model    Half a\n    retry    again\uFFFD[2J\n              line.\n    model    asks for nothing more (0 tokens)\n   server    gone\n   server    "+strings.Repeat("x", 399)+"…\n", out.String())
}
