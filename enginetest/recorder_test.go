package enginetest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func smallRun(t *testing.T) (*enginetest.Recorder, *engine.Result) {
	config, rec := enginetest.Config(t)
	config.Model = enginetest.NewScript(enginetest.Say("let me look").And(enginetest.Call("c1", "look", inference.JSON(`{"time":"now"}`))), enginetest.Say("<done>"))
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))}
	res, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, in)
	require.NoError(t, err)
	return rec, res
}

func TestRecorderComparesWithAGoldenFile(t *testing.T) {
	rec, _ := smallRun(t)
	rec.Compare(t, "testdata/small.jsonl", *update)
	for _, line := range rec.Lines() {
		require.NotContains(t, line, "2030-01-01")
		require.NotContains(t, line, "duration_ns")
	}

	golden := filepath.Join(t.TempDir(), "new", "run.jsonl")
	said := try(t.Context(), func(t enginetest.TB) { rec.Compare(t, golden, false) })
	require.Contains(t, said.text(), "there is no golden file")
	said = try(t.Context(), func(t enginetest.TB) {
		rec.Compare(t, golden, true)
		rec.Compare(t, golden, false)
	})
	require.Empty(t, said.faults)

	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(golden, []byte(strings.ReplaceAll(string(text), "\n", "\r\n")), 0o600))
	said = try(t.Context(), func(t enginetest.TB) { rec.Compare(t, golden, false) })
	require.Empty(t, said.faults, "line ends do not matter")

	require.NoError(t, os.WriteFile(golden, []byte(strings.Replace(string(text), `"status":"done"`, `"status":"lost"`, 1)), 0o600))
	said = try(t.Context(), func(t enginetest.TB) { rec.Compare(t, golden, false) })
	require.Len(t, said.faults, 1)
	require.Contains(t, said.text(), `"status":"lost"`)
	require.Contains(t, said.text(), `"status":"done"`)

	require.NoError(t, os.WriteFile(golden, append(text, "one more\n"...), 0o600))
	said = try(t.Context(), func(t enginetest.TB) { rec.Compare(t, golden, false) })
	require.Contains(t, said.text(), "(no more lines)")

	said = try(t.Context(), func(t enginetest.TB) { rec.Compare(t, filepath.Join(golden, "below", "a", "file"), true) })
	require.Len(t, said.faults, 1)
}

func TestRecorderSelects(t *testing.T) {
	rec, res := smallRun(t)
	require.Len(t, rec.Filter("step_started", "tool_finished"), 3)
	steps := enginetest.Select[engine.StepStarted](rec.Events())
	require.Len(t, steps, 2)
	require.Equal(t, 2, steps[1].Step)
	require.Equal(t, rec.Events(), rec.Run(res.Run))
	require.Empty(t, rec.Run("another"))
	rec.Events()[0] = nil
	require.NotNil(t, rec.Events()[0])
	rec.Reset()
	require.Empty(t, rec.Events())
}

// Only the event's own time and duration are left out.
func TestNormalizeKeepsWhatIsNotTime(t *testing.T) {
	head := engine.Header{Seq: 7, Time: time.Now(), Run: "r", Phase: phase.StepEnd}
	line, err := enginetest.Normalize(engine.ToolFinished{
		Header: head, Call: inference.ToolCall{ID: "c", Name: "t", Args: `{"time":"now","duration_ns":3}`}, Duration: time.Second,
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"tool_finished","seq":7,"run":"r","thread":"","agent":"","step":0,"phase":"step_end","revision":0,
		"call":{"id":"c","name":"t","args":{"time":"now","duration_ns":3}},"result":{"call_id":"","content":""}}`, string(line))
	require.True(t, strings.HasPrefix(string(line), `{"type":"tool_finished","seq":7,"run":"r",`), "the order stays")

	line, err = enginetest.Normalize(engine.Warning{Header: head, Plugin: `a\",{"x`, Message: `,"time":"now",[}\`})
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"warning","seq":7,"run":"r","thread":"","agent":"","step":0,"phase":"step_end","revision":0,
		"plugin":"a\\\",{\"x","message":",\"time\":\"now\",[}\\"}`, string(line))

	bad := engine.TicketOpened{Ticket: gate.Ticket{Params: "{oops"}}
	_, err = enginetest.Normalize(bad)
	require.ErrorIs(t, err, engine.ErrBadEvent)
	lines := enginetest.Lines([]engine.Event{bad, engine.StepStarted{Header: head}})
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "ticket_opened: engine: bad event")
}

func TestConfigLogsTheEventsOfAFailedTest(t *testing.T) {
	for _, fail := range []bool{false, true} {
		said := try(t.Context(), func(t enginetest.TB) {
			config, _ := enginetest.Config(t)
			config.Model = enginetest.NewScript(enginetest.Say("x"))
			if _, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go")); err != nil {
				t.Fatalf("%v", err)
			}
			if fail {
				t.Errorf("on purpose")
			}
		})
		require.Equal(t, fail, strings.Contains(strings.Join(said.logs, "\n"), `"type":"run_finished"`))
	}
}
