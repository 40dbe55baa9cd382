package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// prompt begins a run; the model tells by it where it is.
const prompt = "run "

func input(thread string, n int) engine.Input {
	return engine.Prompt(fmt.Sprintf("%s%s %d", prompt, thread, n))
}

// Generate is the model: it asks for some calls in some steps, and checks that what
// it is shown is whole.
func (a *agent) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	if a.p.gone() {
		return inference.Response{}, errDead
	}
	a.checkPairs(r.Messages)
	topic, steps, answers := "", 0, 0
	for _, m := range r.Messages {
		switch {
		case m.Role == inference.RoleUser && strings.HasPrefix(m.Text, prompt):
			topic, steps = m.Text, 0
		case m.Role == inference.RoleAssistant:
			steps++
			answers++
		}
	}
	d := a.p.w.dice.about("model", topic, steps)
	if n := a.count("model", topic, fmt.Sprint(steps)); !a.p.calm {
		if d.chance(40, "slow", n) {
			a.p.work(ctx, d.span(25*time.Second, "for"))
		}
		if d.chance(15, "fails", a.p.name, n) {
			return inference.Response{}, errors.New("sim: the model is not there")
		}
	}
	usage := inference.Usage{InputTokens: int64(len(r.Messages)), OutputTokens: 1}
	if steps >= 1+a.p.w.dice.n(2, "steps", topic) {
		return inference.Response{Message: inference.Assistant("done"), Usage: usage, Stop: inference.StopEnd}, nil
	}
	var calls []inference.ToolCall
	for i := range 1 + d.n(3, "calls") {
		name := []string{"pay", "work", "redo", "check"}[d.n(4, "tool", i)]
		calls = append(calls, inference.ToolCall{ID: fmt.Sprintf("c%d-%d", answers, i), Name: name, Args: `{"n":1}`})
	}
	return inference.Response{Message: inference.Assistant("", calls...), Usage: usage, Stop: inference.StopToolUse}, nil
}

// checkPairs checks that every call has exactly one result, directly behind the
// message that asked, in call order, and none that was made up.
func (a *agent) checkPairs(messages []inference.Message) {
	var open []inference.ToolCall
	for i, m := range messages {
		switch {
		case len(open) > 0 && (m.Role != inference.RoleTool || m.Result.CallID != open[0].ID):
			a.p.w.ledger.violated("%s: the model is shown a %s message (%d) and not the result of %s", a.p.name, m.Role, i, open[0].ID)
			return
		case len(open) > 0:
			open = open[1:]
			if strings.Contains(m.Result.Content, "the result was lost") {
				a.p.w.ledger.violated("%s: the model is shown a lost result of %s", a.p.name, m.Result.CallID)
			}
		case m.Role == inference.RoleTool:
			a.p.w.ledger.violated("%s: the model is shown a result of %s that it did not ask for", a.p.name, m.Result.CallID)
			return
		}
		if m.Role == inference.RoleAssistant {
			open = m.ToolCalls
		}
	}
	if len(open) > 0 {
		a.p.w.ledger.violated("%s: the model is shown no result of %s", a.p.name, open[0].ID)
	}
}
