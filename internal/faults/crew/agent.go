//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// agent is the only one there is.
const agent = "hand"

// The tools. All count what they did, in a commit with a durable effect.
const (
	toolAgain = "again" // may run again when its process ended under it
	toolOnce  = "once"  // must not
	toolAsk   = "ask"   // must not, and a gate asks a person before
)

// entry is a line of a thread's own ledger, which is in its state.
type entry struct {
	Worker string `json:"worker"`
	Call   string `json:"call"`
	Time   int64  `json:"time"` // when the body was done
}

// sent is the payload of the durable effect of a call.
type sent struct {
	Thread string `json:"thread"`
	Call   string `json:"call"`
}

// hand is the plugin, for one process.
type hand struct {
	worker string
	out    *outside
	work   time.Duration // that a body takes
	ledger state.Log[entry]
	sent   effects.Spec[sent]
}

func newHand(worker string, out *outside, work time.Duration) *hand {
	return &hand{
		worker: worker, out: out, work: work,
		ledger: state.NewLog("crew.ledger", state.Options[entry]{Scope: state.ScopeThread}),
		sent:   effects.NewSpec[sent]("crew.sent", effects.Durable()),
	}
}

// Name implements engine.Plugin.
func (h *hand) Name() string { return "crew" }

// Register implements engine.Plugin.
func (h *hand) Register(r *engine.Registrar) error {
	r.Key(h.ledger)
	r.Tool(tool{h, toolAgain}, tool{h, toolOnce}, tool{h, toolAsk})
	r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if pc.Call().Name == toolAsk {
			return gate.Ask(gate.Ticket{Message: "May it?"}), nil
		}
		return gate.Approve(), nil
	}))
	r.Effect(h.sent.Handle(func(ctx context.Context, _ *state.Snapshot, s sent) error {
		id, ok := effects.IDFrom(ctx)
		if !ok {
			return errors.New("crew: an effect has no id")
		}
		h.out.write(line{Kind: lineEffect, Worker: h.worker, Thread: s.Thread, Call: s.Call, ID: id.String()})
		return nil
	}))
	return nil
}

type tool struct {
	*hand
	name string
}

func (t tool) Spec() inference.ToolSpec { return inference.ToolSpec{Name: t.name, Kind: "write"} }

func (t tool) Recovery() engine.Recovery {
	if t.name == toolAgain {
		return engine.Rerun
	}
	return engine.FailAsInterrupted
}

func (t tool) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	call := pc.Call().ID
	t.out.write(line{Kind: lineBody, Worker: t.worker, Thread: pc.Run().Thread, Call: call})
	pause(ctx, t.work)
	out := engine.Text("done by " + t.worker)
	out.Command.Update(t.ledger.Append(entry{t.worker, call, time.Now().UnixNano()})).Emit(t.sent.New(sent{pc.Run().Thread, call}))
	return out, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// task is what a run is told to do: its prompt.
type task struct {
	Thread string
	Run    int // of the thread
	Steps  int
	Ask    bool // calls the tool that a person is asked about, once in each step
}

func (t task) prompt() string { return fmt.Sprintf("%s %d %d %t", t.Thread, t.Run, t.Steps, t.Ask) }

func parseTask(text string) (t task, err error) {
	if _, err = fmt.Sscanf(text, "%s %d %d %t", &t.Thread, &t.Run, &t.Steps, &t.Ask); err != nil {
		err = fmt.Errorf("crew: prompt %q: %w", text, err)
	}
	return t, err
}

// calls returns what the model asks for in a step.
func (t task) calls(step int) (list []inference.ToolCall) {
	if t.Ask {
		return []inference.ToolCall{{ID: fmt.Sprintf("%d.%d.0", t.Run, step), Name: toolAsk, Args: "{}"}}
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d %d", t.Thread, t.Run, step)
	random := h.Sum32()
	for i := range 1 + random%2 {
		name := toolAgain
		if random>>(8+i)%2 == 1 {
			name = toolOnce
		}
		list = append(list, inference.ToolCall{ID: fmt.Sprintf("%d.%d.%d", t.Run, step, i), Name: name, Args: "{}"})
	}
	return list
}

// model does what the last prompt says, and tells of the results that it is shown, which
// are committed by then.
func (h *hand) model(think time.Duration) inference.Model {
	return inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		var now task
		var err error
		step := 0
		var results []string
		for _, m := range r.Messages {
			switch m.Role {
			case inference.RoleUser:
				now, err = parseTask(m.Text)
				step = 0
			case inference.RoleAssistant:
				step++
				results = results[:0]
			case inference.RoleTool:
				results = append(results, m.Result.CallID)
			}
		}
		if err != nil {
			return inference.Response{}, err
		}
		for _, call := range results {
			h.out.write(line{Kind: lineResult, Worker: h.worker, Thread: now.Thread, Call: call})
		}
		h.out.write(line{Kind: lineAsked, Worker: h.worker, Thread: now.Thread})
		pause(ctx, think)
		if step >= now.Steps {
			return inference.Response{Message: inference.Assistant("That is all.")}, nil
		}
		return inference.Response{Message: inference.Assistant("", now.calls(step)...)}, nil
	})
}

// engineConfig is for workers, and for a parent that looks at threads.
func (h *hand) engineConfig(c engine.Config, think, lease time.Duration) engine.Config {
	c.Model = h.model(think)
	c.Plugins = append(c.Plugins, h)
	c.Limits = engine.Limits{Lease: lease, OutboxDelay: lease, EffectTries: 1 << 20} // attempts that a kill cut off count, too
	c.Observers = append(c.Observers, engine.ObserverFunc(func(e engine.Event) {
		switch e := e.(type) {
		case engine.RunStarted:
			h.out.write(line{Kind: lineGoes, Worker: h.worker, Thread: e.Thread})
		case engine.RunResumed:
			h.out.write(line{Kind: lineGoes, Worker: h.worker, Thread: e.Thread})
		}
	}))
	return c
}

func activation(t task) worker.Activation {
	return worker.Activation{
		Thread: t.Thread, Agent: agent, Messages: []inference.Message{inference.User(t.prompt())},
		Key: fmt.Sprintf("run %d", t.Run),
	}
}
