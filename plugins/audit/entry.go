package audit

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Entry says what happened.
type Entry struct {
	Run    string `json:"run"`
	Thread string `json:"thread"`
	Agent  string `json:"agent"`
	Step   int    `json:"step"`
	Event  string `json:"event"` // EventTool, EventRunEnd, or a word of another plugin

	Tool        string            `json:"tool,omitzero"`
	Call        string            `json:"call,omitzero"`        // the call's id
	Fingerprint string            `json:"fingerprint,omitzero"` // of the tool and its exact arguments
	Outcome     inference.Outcome `json:"outcome,omitzero"`
	Size        int               `json:"size,omitzero"` // of the result, in bytes

	Reason phase.Reason `json:"reason,omitzero"` // why the run ended
	Detail string       `json:"detail,omitzero"`
	Tokens int64        `json:"tokens,omitzero"` // that the run used
}

// The events of this plugin.
const (
	EventTool   = "tool"
	EventRunEnd = "run_end"
)

// Record is the effect that writes an entry. It is durable: with a journal that has an
// outbox an entry whose process ended before it was written is written by a later one,
// with the id that it has. One that was being written may then be there twice.
var Record = effects.NewSpec[Entry]("audit.entry", effects.Durable())

// line is an entry as it is in the file.
type line struct {
	Time time.Time `json:"time"`
	ID   string    `json:"id,omitzero"` // of the effect, so that a repeated delivery can be told
	Entry
}

func entry(pc *phase.Context, event string) Entry {
	run := pc.Run()
	return Entry{Run: run.ID, Thread: run.Thread, Agent: pc.Agent().ID, Step: run.Step, Event: event}
}

func toolEnded(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	e, call, result := entry(pc, EventTool), pc.Call(), pc.Result()
	e.Tool, e.Call, e.Fingerprint = call.Name, call.ID, gate.Fingerprint(call)
	e.Outcome, e.Size = result.Outcome, len(result.Content)
	cmd.Emit(Record.New(e))
	return cmd, nil
}

func runEnded(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	e, end := entry(pc, EventRunEnd), phase.RunLifecycle.Get(pc.Snapshot())
	e.Reason, e.Detail = end.Reason, end.Detail
	e.Tokens = engine.Usage.Get(pc.Snapshot()).Total()
	cmd.Emit(Record.New(e))
	return cmd, nil
}
