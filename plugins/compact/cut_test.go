package compact_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
	"github.com/ddd26017/fixpoint/state"
)

// history makes a transcript out of bytes, with results that are late, lost, double or
// belong to nothing. Every message has a text of its own, beginning behind number from.
func history(data []byte, from int) (out []inference.Message) {
	var ids []string
	for i, b := range data {
		text := fmt.Sprintf("m%d %s", from+i, strings.Repeat("x", int(b>>3)*4))
		switch b % 8 {
		case 0, 1:
			out = append(out, inference.User(text))
		case 2:
			out = append(out, inference.System(text))
		case 3, 4:
			m := inference.Assistant(text)
			for n := range int(b>>3) % 4 {
				id := fmt.Sprintf("k%d-%d", from+i, n)
				ids = append(ids, id)
				m.ToolCalls = append(m.ToolCalls, inference.ToolCall{ID: id, Name: "look", Args: "{}"})
			}
			out = append(out, m)
		default:
			id := "stray"
			if len(ids) > 0 {
				id = ids[len(ids)-1-int(b>>3)%min(len(ids), 4)]
			}
			out = append(out, inference.ToolMessage(inference.ToolResult{CallID: id, Name: "look", Content: text}))
		}
	}
	return out
}

// valid reports what a vendor would refuse in a request, or nil: results are right behind
// their calls, one for each.
func valid(messages []inference.Message) error {
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		if m.Role == inference.RoleTool {
			return fmt.Errorf("message %d is the result of a call that is not there", i)
		}
		for _, c := range m.ToolCalls {
			if i++; i == len(messages) || messages[i].Role != inference.RoleTool || messages[i].Result.CallID != c.ID {
				return fmt.Errorf("call %s has no result behind it", c.ID)
			}
		}
	}
	return nil
}

const summaryMark = "[Summary"

// tokens is how the plugin estimates messages, see Settings.BytesPerToken.
func tokens(messages ...inference.Message) (n int) {
	for _, m := range messages {
		size := len(m.Text)
		for _, c := range m.ToolCalls {
			size += len(c.Name) + len(c.Args)
		}
		n += 4 + (size+3)/4
	}
	return n
}

// suits compares what is sent with the same without a compaction: it is valid, keeps the
// order, has the latest messages, all instructions and the latest user message, at most
// one summary, and it is shorter.
func suits(sent, whole []inference.Message, keep int) error {
	if err := valid(sent); err != nil {
		return err
	}
	same := func(a, b inference.Message) bool { return a.Role == b.Role && a.Text == b.Text && a.Result == b.Result }
	i, size, summaries := 0, 0, 0
	var left []inference.Message
	for _, m := range sent {
		size += tokens(m)
		if strings.HasPrefix(m.Text, summaryMark) {
			summaries++
			continue
		}
		for i < len(whole) && !same(m, whole[i]) {
			left = append(left, whole[i])
			size -= tokens(whole[i])
			i++
		}
		if i == len(whole) {
			return fmt.Errorf("%q is not in the transcript, or out of order", m.Text)
		}
		size -= tokens(m)
		i++
	}
	for _, m := range whole[i:] {
		left = append(left, m)
		size -= tokens(m)
	}
	users := slices.DeleteFunc(slices.Clone(whole), func(m inference.Message) bool { return m.Role != inference.RoleUser })
	switch {
	case summaries > 1 || summaries == 0 && len(left) > 0 || summaries == 1 && len(left) == 0:
		return fmt.Errorf("%d summaries for %d messages", summaries, len(left))
	case summaries == 1 && size >= 0:
		return fmt.Errorf("it is %d tokens longer", size)
	case slices.ContainsFunc(left, func(m inference.Message) bool { return m.Role == inference.RoleSystem }):
		return fmt.Errorf("an instruction is left out")
	case len(users) > 0 && slices.ContainsFunc(left, func(m inference.Message) bool { return same(m, users[len(users)-1]) }):
		return fmt.Errorf("what the user wants is left out")
	}
	for _, m := range whole[max(0, len(whole)-keep):] {
		if slices.ContainsFunc(left, func(l inference.Message) bool { return same(l, m) }) {
			return fmt.Errorf("%q is one of the latest %d and left out", m.Text, keep)
		}
	}
	return nil
}

// Whatever stands in the transcript, every request is one that a vendor takes, and it is
// never longer than it would be without the plugin.
func TestRequestsAreValid(t *testing.T) {
	compacted := 0
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		keep := 1 + rnd.IntN(6)
		var sent, whole [2]inference.Request
		run := func(to *[2]inference.Request, compacts bool) func(i int, data []byte) {
			var now int
			var th *engine.Thread
			var spec engine.AgentSpec
			var faults []error
			config, _ := enginetest.Config(t, compact.New(compact.Options{}))
			config.Model = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
				to[now] = r
				pc, err := th.Context(spec)
				if err == nil && !reflect.DeepEqual(compact.View(pc), r.Messages) {
					err = fmt.Errorf("the view is %s and the request %s", words(compact.View(pc)), words(r.Messages))
				}
				faults = append(faults, err)
				return inference.Response{Message: inference.Assistant(fmt.Sprint("said ", now))}, nil
			})
			var err error
			th, err = enginetest.Engine(t, config).NewThread("")
			require.NoError(t, err)
			spec = agent(`{"max_tokens": 0}`)
			if compacts {
				spec = agent(fmt.Sprintf(`{"max_tokens": 20, "keep_recent": %d, "min_saving": 1}`, keep))
			}
			return func(i int, data []byte) {
				now = i
				var cmd phase.Command
				cmd.Update(engine.Transcript.Append(history(data, 1000*i)...))
				_, err := th.Submit(t.Context(), "test", cmd)
				require.NoError(t, err)
				ask(t, th, spec, fmt.Sprint("ask ", i))
				require.NoError(t, errors.Join(faults...), "seed %d", seed)
			}
		}
		with, without := run(&sent, true), run(&whole, false)
		for i := range 2 {
			data := make([]byte, rnd.IntN(30))
			for j := range data {
				data[j] = byte(rnd.Uint32())
			}
			with(i, data)
			without(i, data)
			require.NoError(t, valid(whole[i].Messages))
			require.NoError(t, suits(sent[i].Messages, whole[i].Messages, keep), "seed %d, run %d: %s", seed, i, words(sent[i].Messages))
			if len(sent[i].Messages) < len(whole[i].Messages) {
				compacted++
			}
		}
	}
	require.Greater(t, compacted, 150, "there has to be something to see")
}

// A pinned message stays with all that belongs to it, also when it is pinned late.
func TestPinnedCallsStayWhole(t *testing.T) {
	for pin := range 6 {
		cut := prepared(t, []inference.Message{
			inference.User("u1"), inference.Assistant("", inference.ToolCall{ID: "a", Name: "look"}, inference.ToolCall{ID: "b", Name: "look"}),
			inference.User("between"), inference.ToolMessage(inference.ToolResult{CallID: "b"}), inference.ToolMessage(inference.ToolResult{CallID: "a"}),
			inference.Assistant("x"), inference.User("u2"),
		}, compact.Pinned.Add(pin))
		left := strings.Fields(words(cut.Messages))
		if slices.Contains([]int{1, 3, 4}, pin) {
			require.NotContains(t, left, "a:a")
			require.NotContains(t, left, "t:a")
			require.NotContains(t, left, "t:b")
			continue
		}
		require.NotContains(t, left, map[int]string{0: "u:u1", 2: "u:between", 5: "a:x"}[pin])
		require.Contains(t, words(cut.Messages), "a:a t:a t:b")
	}
}

func prepared(t *testing.T, messages []inference.Message, updates ...state.Update) compact.Cut {
	t.Helper()
	_, th, _ := open(t, &walker{}, compact.New(compact.Options{}))
	var cmd phase.Command
	cmd.Update(engine.Transcript.Append(messages...)).Update(updates...)
	_, err := th.Submit(t.Context(), "test", cmd)
	require.NoError(t, err)
	pc, err := th.Context(agent(`{"keep_recent": 1}`))
	require.NoError(t, err)
	cut, err := compact.Prepare(pc, compact.Args{Thread: th.ID()})
	require.NoError(t, err)
	return cut
}

// A compaction that is to keep more than what is new does not bring back what the summary
// stands for.
func TestCutDoesNotGoBack(t *testing.T) {
	long := strings.Repeat("long ", 50)
	messages := []inference.Message{inference.User(long), inference.Assistant(long), inference.User("u1"), inference.System("rule"), inference.Assistant("x")}
	_, th, _ := open(t, &walker{}, compact.New(compact.Options{}))
	submit := func(cmd phase.Command) *phase.Context {
		_, err := th.Submit(t.Context(), compact.Name, cmd)
		require.NoError(t, err)
		pc, err := th.Context(agent(`{}`))
		require.NoError(t, err)
		return pc
	}
	var first, second phase.Command
	first.Update(engine.Transcript.Append(messages...))
	cut, err := compact.Prepare(submit(first), compact.Args{Keep: 1})
	require.NoError(t, err)
	cmd, err := cut.Command("s")
	require.NoError(t, err)
	require.Equal(t, "u:u1 s:rule u:<s> a:x", words(compact.View(submit(cmd))))
	second.Update(engine.Transcript.Append(inference.User("u2")))
	pc := submit(second)
	for keep := 2; keep < 5; keep++ {
		cut, err = compact.Prepare(pc, compact.Args{Keep: keep})
		require.NoError(t, err)
		_, err = cut.Command("t")
		require.ErrorIs(t, err, compact.ErrNothing)
	}
}

// A cut keeps its promises wherever it falls in whatever transcript, also the second one.
func FuzzCut(f *testing.F) {
	f.Add([]byte{0, 27, 5, 5, 0, 28, 5, 2, 3, 0}, uint8(2), uint8(4))
	f.Add([]byte{35, 35, 5, 13, 21, 1, 5, 200, 2, 35, 5}, uint8(1), uint8(6))
	var once sync.Once
	var eng *engine.Engine
	f.Fuzz(func(t *testing.T, data []byte, keep, half uint8) {
		once.Do(func() {
			var err error
			eng, err = engine.New(engine.Config{Plugins: []engine.Plugin{compact.New(compact.Options{})}})
			require.NoError(t, err)
		})
		data = data[:min(len(data), 64)]
		least := 1 + int(keep)%8
		th, err := eng.NewThread("")
		require.NoError(t, err)
		submit := func(cmd phase.Command) {
			_, err := th.Submit(t.Context(), compact.Name, cmd)
			require.NoError(t, err)
		}
		split := min(int(half), len(data))
		for i, part := range [][]byte{data[:split], data[split:]} {
			var cmd phase.Command
			cmd.Update(engine.Transcript.Append(history(part, 1000*i)...))
			submit(cmd)
			pc, err := th.Context(agent(`{}`))
			require.NoError(t, err)
			cut, err := compact.Prepare(pc, compact.Args{Keep: least})
			require.NoError(t, err)
			require.NoError(t, valid(cut.Messages))
			before, former := compact.View(pc), compact.Held.Get(pc.Snapshot())
			if cmd, err = cut.Command("short"); err == nil {
				submit(cmd)
			} else {
				require.True(t, len(cut.Messages) == 0 || cut.Tokens < 60, "%v: %s", err, words(cut.Messages))
			}
			pc, err = th.Context(agent(`{}`))
			require.NoError(t, err)
			view := compact.View(pc)
			held := compact.Held.Get(pc.Snapshot())
			require.GreaterOrEqual(t, held.Upto, former.Upto)
			if held.Upto > former.Upto {
				require.Less(t, tokens(view...), tokens(before...))
			}
			submit(reset())
			pc, err = th.Context(agent(`{}`))
			require.NoError(t, err)
			require.NoError(t, suits(view, compact.View(pc), least), words(view))
			cmd = phase.Command{}
			cmd.Update(compact.Held.With(held))
			submit(cmd)
		}
	})
}

func reset() (cmd phase.Command) {
	cmd.Update(compact.Held.Reset())
	return cmd
}
