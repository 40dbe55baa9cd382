package trace_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// story makes a sequence of events of bytes: any event, in any order, of a few runs,
// calls and tickets, as an engine would never tell them.
func story(data []byte) (events []engine.Event) {
	now := enginetest.Epoch()
	next := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % n
	}
	names := []string{"", "a", "b", "a/1/a", "a/1/b", "\xff\n"}
	name := func() string { return names[next(len(names))] }
	for len(data) > 0 {
		now = now.Add(time.Duration(next(256)) * time.Millisecond)
		h := engine.Header{Time: now, Run: name(), Parent: name(), Agent: name(), Step: next(3), Phase: phase.Phase(next(10))}
		took := time.Duration(next(256)-10) * time.Millisecond
		when := now.Add(time.Duration(next(256)-128) * time.Millisecond)
		var retries []engine.Retry
		for range next(3) {
			retries = append(retries, engine.Retry{Began: when.Add(time.Duration(next(256)) * time.Millisecond), Duration: time.Duration(next(256)-10) * time.Millisecond})
		}
		call := inference.ToolCall{ID: name(), Name: name()}
		ticket := gate.Ticket{ID: name(), Call: name()}
		events = append(events, []engine.Event{
			engine.RunStarted{Header: h, Input: name()}, engine.RunFinished{Header: h}, engine.RunSuspended{Header: h}, engine.RunResumed{Header: h},
			engine.StepStarted{Header: h}, engine.StepFinished{Header: h}, engine.PhaseStarted{Header: h, Call: name(), Hooks: next(3)},
			engine.PhaseFinished{Header: h, Rounds: next(2)}, engine.HookFinished{Header: h, Hook: name(), Tier: next(2), Began: when, Duration: took, Retries: retries},
			engine.Conflict{Header: h}, engine.Committed{Header: h}, engine.RoundFinished{Header: h}, engine.ActionFinished{Header: h, Began: when, Duration: took, Retries: retries},
			engine.EffectFinished{Header: h, ID: effects.ID{Run: name()}, Duration: took}, engine.GateVoted{Header: h, Gate: name(), Began: when, Duration: took},
			engine.GateResolved{Header: h}, engine.GateClashed{Header: h}, engine.CallEdited{Header: h}, engine.TicketOpened{Header: h, Ticket: ticket},
			engine.TicketAnswered{Header: h, Ticket: name(), Call: name()}, engine.ToolStarted{Header: h, Call: call},
			engine.ToolFinished{Header: h, Call: call, Duration: took}, engine.InferenceStarted{Header: h}, engine.InferenceChunk{Header: h},
			engine.InferenceFinished{Header: h, ToolCalls: []inference.ToolCall{call}}, engine.OverrideApplied{Header: h},
			engine.RequestTransformed{Header: h}, engine.Continued{Header: h}, engine.HandedOff{Header: h}, engine.Warning{Header: h},
		}[next(30)])
	}
	return events
}

// FuzzObserve tells stories that no engine tells. The trace must not fail, and its
// file must still be one that viewers take.
func FuzzObserve(f *testing.F) {
	f.Add([]byte("a run"))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr := newTrace()
		for _, e := range story(data) {
			tr.Observe(e)
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkChrome(t, tr.chrome.Bytes())
	})
}

// The stretches of time that are covered, against counting each unit by itself.
func TestStretches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var parts [][2]time.Duration
		covered := map[int]bool{}
		for range rng.IntN(12) {
			from := rng.IntN(40) - 5
			to := from + rng.IntN(15) - 3
			parts = append(parts, [2]time.Duration{time.Duration(from), time.Duration(to)})
			for i := max(from, 0); i < to; i++ {
				covered[i] = true
			}
		}
		require.Equal(t, time.Duration(len(covered)), trace.Covered(parts), parts)
	}
}
