package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	sold   = state.NewCounter("shop.sold", state.Options[int64]{Scope: state.ScopeThread})
	ended  = state.NewLog("shop.ended", state.Options[string]{Scope: state.ScopeThread}) // runs that had their RunEnd
	ticket = effects.NewSpec[string]("shop.sale", effects.Durable())
)

// shop is what the agents of these tests work in. Orders are words: "sell" calls the tool,
// "ask" calls it with a question, "hurry" with one that has a lifetime of a minute.
type shop struct {
	body func(ctx context.Context, thread string) // of the tool
	step func(ctx context.Context, order string)  // of the model, before it answers
	fail func() error                             // of the handler of sales

	mu     sync.Mutex
	bodies map[string]int // by thread and call
	sales  map[string]int // effects delivered, by id
}

func newShop() *shop { return &shop{bodies: map[string]int{}, sales: map[string]int{}} }

func (s *shop) plugin() engine.Plugin {
	return engine.NewPlugin("shop", func(r *engine.Registrar) error {
		r.Key(sold, ended)
		r.Effect(ticket.Handle(func(ctx context.Context, _ *state.Snapshot, _ string) error {
			id, _ := effects.IDFrom(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sales[id.String()]++
			if s.fail != nil {
				return s.fail()
			}
			return nil
		}))
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "sell"}, func(ctx context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
			thread := pc.Run().Thread
			s.mu.Lock()
			s.bodies[thread+" "+pc.Run().ID+" "+pc.Call().ID]++
			s.mu.Unlock()
			if s.body != nil {
				s.body(ctx, thread)
			}
			out := engine.Text("sold")
			out.Command.Update(sold.With(1)).Emit(ticket.New(pc.Call().ID))
			return out, ctx.Err()
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			switch id := pc.Call().ID; {
			case strings.HasPrefix(id, "ask"):
				return gate.Ask(gate.Ticket{Message: "sell?"}), nil
			case strings.HasPrefix(id, "hurry"):
				return gate.Ask(gate.Ticket{Message: "sell?", Lifetime: time.Minute, Default: gate.DefaultNo}), nil
			}
			return gate.Approve(), nil
		}))
		r.Hook(phase.RunEnd, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(ended.Append(pc.Run().ID))
			return cmd, nil
		}))
		return nil
	})
}

// model answers orders word by word.
func (s *shop) model() inference.Model {
	return inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		done := 0 // words of the last order
		order := ""
		for _, m := range r.Messages {
			switch m.Role {
			case inference.RoleUser:
				order, done = m.Text, 0
			case inference.RoleAssistant:
				done++
			}
		}
		if s.step != nil {
			s.step(ctx, order)
		}
		if err := ctx.Err(); err != nil {
			return inference.Response{}, err
		}
		words := strings.Fields(order)
		if done >= len(words) {
			return inference.Response{Message: inference.Assistant("done: " + order)}, nil
		}
		switch word := words[done]; word {
		case "sell", "ask", "hurry":
			return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: fmt.Sprint(word, "-", done), Name: "sell", Args: "{}"})}, nil
		default:
			return inference.Response{Message: inference.Assistant("what is " + word + "?")}, nil
		}
	})
}
