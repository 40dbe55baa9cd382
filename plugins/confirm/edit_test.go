package confirm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

const toB = `{"choice":"edit","args":{"path":"b"}}`

// Capabilities G5, M2, B5. Edited arguments run instead: all gates judge them, and the
// one who wrote them is not asked about them again.
func TestEditThenRun(t *testing.T) {
	var judged []string
	w := newWorld(t, setup{answers: []phase.Answer{value(toB)}, plugins: []engine.Plugin{
		gating("guard", func(pc *phase.Context) gate.Decision {
			judged = append(judged, string(pc.Call().Args))
			return gate.Abstain()
		}),
	}}, call("c1", "save", `{"path":"a"}`))
	w.run(t)
	require.Equal(t, []string{`save {"path":"b"}`}, w.ran)
	require.Len(t, w.asked, 1)
	require.Equal(t, `{"path":"a"}`, judged[0])
	require.Equal(t, `{"path":"b"}`, judged[len(judged)-1], "the guard saw what runs")
	edits := enginetest.Select[engine.CallEdited](w.rec.Events())
	require.Len(t, edits, 1)
	require.Equal(t, confirm.Name, edits[0].Plugin)
}

// Capability M2. A guard blocks edited arguments like any, and a tool refuses those that
// it does not take; both with a reason, and nothing runs.
func TestEditedArgumentsAreJudgedLikeAny(t *testing.T) {
	guard := gating("guard", func(pc *phase.Context) gate.Decision {
		if strings.Contains(string(pc.Call().Args), "secret") {
			return gate.Block("secrets stay as they are")
		}
		return gate.Abstain()
	})
	edit := func(args string) phase.Answer { return value(inference.JSON(`{"choice":"edit","args":` + args + `}`)) }
	for args, says := range map[string]string{
		`{"path":"secret"}`: "blocked: secrets stay as they are",
		`{"paht":"b"}`:      "blocked: confirm changed the arguments to ones that the tool refuses",
		`{"path":5}`:        "blocked: confirm changed the arguments to ones that the tool refuses",
	} {
		w := newWorld(t, setup{answers: []phase.Answer{edit(args)}, plugins: []engine.Plugin{guard}}, call("c1", "save", `{"path":"a"}`))
		w.run(t)
		require.Empty(t, w.ran)
		require.Equal(t, []string{"save blocked"}, w.outcomes())
		require.Contains(t, w.last(t), says)
	}
}

// Capability B5. Report 15. An approval is about exactly the arguments shown: when something
// else changes them after it, be they the person's own or not, the person is asked anew
// about the final ones.
func TestAskedAnewAfterAForeignEdit(t *testing.T) {
	for name, c := range map[string]struct {
		first phase.Answer
		edits string // what the formatter changes once there was an answer
	}{
		"approved arguments": {value(`{"choice":"yes"}`), `{"path":"a"}`},
		"own arguments":      {value(toB), `{"path":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			formatter := gating("formatter", func(pc *phase.Context) gate.Decision {
				calls, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
				if len(calls.Answers) == 1 && string(pc.Call().Args) == c.edits {
					return gate.Edit(`{"path":"final"}`)
				}
				return gate.Abstain()
			})
			w := newWorld(t, setup{answers: []phase.Answer{c.first, value(`{"choice":"yes"}`)}, plugins: []engine.Plugin{formatter}},
				call("c1", "save", `{"path":"a"}`))
			w.run(t)
			require.Len(t, w.asked, 2)
			require.Equal(t, `{"path":"a"}`, string(shown(t, w.asked[0]).Args))
			require.Equal(t, `{"path":"final"}`, string(shown(t, w.asked[1]).Args))
			require.NotEqual(t, w.asked[0].Fingerprint, w.asked[1].Fingerprint)
			require.Equal(t, []string{`save {"path":"final"}`}, w.ran)
		})
	}
}

// Somebody who changes the person's arguments back to those that he edited makes a
// quarrel without an end: the call is blocked and the reason says so.
func TestQuarrelOverArguments(t *testing.T) {
	stubborn := gating("stubborn", func(pc *phase.Context) gate.Decision { return gate.Edit(`{"path":"a"}`) })
	w := newWorld(t, setup{answers: []phase.Answer{value(toB)}, plugins: []engine.Plugin{stubborn}}, call("c1", "save", `{"path":"a"}`))
	w.run(t)
	require.Empty(t, w.ran)
	require.Contains(t, w.last(t), "did not come to rest")
}

// The edit of an answer's own Args is bound to what it edits as well, without a second
// question; and one that changes nothing is a yes.
func TestOtherWaysToEdit(t *testing.T) {
	for _, c := range []struct {
		answer phase.Answer
		ran    string
	}{
		{phase.Answer{Approved: true, Args: `{"path":"b"}`}, `save {"path":"b"}`},
		{phase.Answer{Approved: true, Args: `{"path":"b"}`, Value: toB}, `save {"path":"b"}`},
		{value(`{"choice":"edit","args":{ "path": "a" }}`), `save {"path":"a"}`},
	} {
		w := newWorld(t, setup{answers: []phase.Answer{c.answer}}, call("c1", "save", `{"path":"a"}`))
		w.run(t)
		require.Equal(t, []string{c.ran}, w.ran)
		require.Len(t, w.asked, 1)
	}
}

// An edit offered for a tool that takes none is an error that says so, and no silent
// refusal: the question stands, and the answer that edited behind its back blocks.
func TestToolsThatTakeNoEdits(t *testing.T) {
	w := newWorld(t, setup{section: `{"no_edit":["kind:write"],"unattended":"wait"}`}, call("c1", "save", `{"path":"a"}`))
	res := w.run(t)
	require.NotContains(t, shown(t, res.Tickets[0]).Choices, confirm.Edit)
	_, err := w.resume(t, value(toB))
	require.ErrorIs(t, err, engine.ErrBadAnswer)
	require.ErrorContains(t, err, "this tool does not take edited arguments; say yes or no to those shown")
	require.Equal(t, res.Tickets, w.thread.Tickets())

	_, err = w.resume(t, phase.Answer{Approved: true, Args: `{"path":"b"}`})
	require.NoError(t, err)
	require.Empty(t, w.ran)
	require.Contains(t, w.last(t), "edited the arguments, which save does not take")
}
