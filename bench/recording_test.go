package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
)

// The parts of P10 are those of the step that it measures: what was recorded has every
// event once, and the engine's commits without those of the hooks.
func TestRecordedStep(t *testing.T) {
	rec, err := recordStep()
	require.NoError(t, err)

	count := map[string]int{}
	for _, e := range rec.emitted {
		count[e.Type()]++
		h := e.Head()
		h.Seq = 7
		again := copyEvent(e, h)
		require.NotNil(t, again, "%s is not copied", e.Type())
		require.Equal(t, h, again.Head())
		require.IsType(t, e, again)
	}
	require.Equal(t, 1, count["step_started"])
	require.Equal(t, 1, count["step_finished"])
	require.Equal(t, 1, count["inference_finished"])
	require.Equal(t, stepCalls, count["tool_finished"])
	require.Equal(t, stepCalls*3, count["gate_voted"])
	require.Equal(t, 6+stepCalls*2, count["hook_finished"], "six hooks once, two for each call")
	commitsOfHooks := len(stepPhases) // each has its hooks' one commit
	require.Equal(t, count["committed"], len(rec.inStep)+commitsOfHooks)

	for _, batches := range rec.inStep {
		for _, b := range batches {
			require.False(t, isHook(b.Owner), b.Owner)
		}
	}
}

// The events come out as they went in, also when the writer is far ahead.
func TestMailbox(t *testing.T) {
	const n = 3 * mailboxSize
	q := newMailbox()
	got := make(chan []uint64, 1)
	go func() {
		var seqs []uint64
		for batch := q.take(); batch != nil; batch = q.take() {
			for _, e := range batch {
				seqs = append(seqs, e.Head().Seq)
			}
		}
		got <- seqs
	}()
	var want []uint64
	for i := range uint64(n) {
		q.put(engine.StepStarted{Header: engine.Header{Seq: i}})
		want = append(want, i)
	}
	q.close()
	require.Equal(t, want, <-got)
	require.Nil(t, q.take())
}
