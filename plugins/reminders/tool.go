package reminders

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Tool is the name of the tool.
const Tool = "remind"

// What a thread keeps at most, and the farthest that a reminder can be away.
const (
	MaxPending = 32
	MaxText    = 2000 // bytes, also of a rule's text
	MaxSteps   = 1000
)

// Wish is something that the model wants to be reminded of.
type Wish struct {
	Text string `json:"text"`
	Due  int64  `json:"due"` // when the thread has taken that many steps
}

// Pending holds what is not due yet, by "run/step/call" of the call that asked for it.
var Pending = state.NewTable[string]("reminders.pending", state.Options[Wish]{Scope: state.ScopeThread})

// ErrArguments is the kind of what is wrong with a call of the tool.
var ErrArguments = errors.New("reminders: cannot remind")

type args struct {
	Text       string `json:"text"`
	AfterSteps int64  `json:"after_steps"`
}

func (a args) validate() error {
	if strings.TrimSpace(a.Text) == "" || len(a.Text) > MaxText {
		return fmt.Errorf("%w: text has %d bytes; say what of, in at most %d", ErrArguments, len(a.Text), MaxText)
	}
	if a.AfterSteps < 1 || a.AfterSteps > MaxSteps {
		return fmt.Errorf("%w: after_steps is %d; want 1 to %d", ErrArguments, a.AfterSteps, MaxSteps)
	}
	return nil
}

// tool checks its arguments before anybody is asked about a call.
type tool struct{ engine.Tool }

func (tool) Validate(raw inference.JSON) error {
	var in args
	if err := raw.Decode(&in); err != nil {
		return err
	}
	return in.validate()
}

// Recovery says that a call may run again: it asks for the same reminder, once.
func (tool) Recovery() engine.Recovery { return engine.Rerun }

func newTool() engine.Tool {
	return tool{engine.NewTool(inference.ToolSpec{
		Name: Tool, Kind: "other",
		Description: "Have yourself reminded of something after a number of steps. A step is one answer of yours with its tool calls.",
		Schema: inference.JSON(fmt.Sprintf(`{"type":"object","properties":{`+
			`"text":{"type":"string","description":"What to be reminded of.","maxLength":%d},`+
			`"after_steps":{"type":"integer","description":"1 is your next answer.","minimum":1,"maximum":%d}},`+
			`"required":["text","after_steps"],"additionalProperties":false}`, MaxText, MaxSteps)),
	}, func(_ context.Context, pc *phase.Context, in args) (out engine.Output, err error) {
		if err := in.validate(); err != nil {
			return out, err
		}
		snap, run := pc.Snapshot(), pc.Run()
		key := fmt.Sprintf("%s/%d/%s", run.ID, run.Step, pc.Call().ID)
		if Pending.Len(snap) >= MaxPending && !Pending.Has(snap, key) {
			return out, fmt.Errorf("%w: %d reminders are set already; wait for one of them", ErrArguments, MaxPending)
		}
		out = engine.Text(fmt.Sprintf("You will be reminded after %s.", inSteps(in.AfterSteps)))
		out.Command.Update(Pending.Put(key, Wish{in.Text, steps.Get(snap) + in.AfterSteps}))
		return out, nil
	})}
}

func inSteps(steps int64) string {
	if steps == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", steps)
}
