package reminders

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "reminders"

// Count tells how often a rule was due.
type Count struct {
	Times int `json:"times"`
	Done  int `json:"done"` // steps that the run had taken when it last was
}

// Fired tells how often each rule was due in the run, by its name.
var Fired = state.NewTable[string]("reminders.fired", state.Options[Count]{})

var (
	// uses holds the step in which a tool was last used, for tools that a rule is about.
	uses = state.NewTable[string]("reminders.uses", state.Options[int]{})
	// seen is how much of the history was looked at.
	seen = state.NewCell("reminders.seen", state.Options[int]{Scope: state.ScopeThread})
	// steps counts those of all runs of the thread.
	steps = state.NewCounter("reminders.steps", state.Options[int64]{Scope: state.ScopeThread})
)

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Fired, Pending, uses, seen, steps)
		r.Section(Section)
		r.Tool(newTool())
		skip := engine.OnError(engine.Skip)
		r.Hook(phase.BeforeInference, phase.HookFunc(remind), engine.Writes(Fired, Pending, seen), skip)
		r.Hook(phase.AfterToolExecute, phase.HookFunc(used), engine.Writes(uses), skip)
		r.Hook(phase.StepEnd, phase.HookFunc(stepped), engine.Writes(steps), skip)
		return nil
	})
}

// used notes in which step a tool was used.
func used(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	switch pc.Result().Outcome {
	case inference.OutcomeBlocked, inference.OutcomeDenied, inference.OutcomeCancelled, inference.OutcomeNotRun:
		return cmd, nil
	}
	tool, step := pc.Call().Name, pc.Run().Step
	about := func(r Rule) bool { return r.When.about(tool) }
	if last, ok := uses.Get(pc.Snapshot(), tool); ok && last == step || !slices.ContainsFunc(Section.Get(pc).Rules, about) {
		return cmd, nil
	}
	cmd.Update(uses.Put(tool, step))
	return cmd, nil
}

func stepped(context.Context, *phase.Context) (cmd phase.Command, err error) {
	cmd.Update(steps.With(1))
	return cmd, nil
}

// remind gives the reminders that are due, those of the section first.
func remind(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	snap, rules := pc.Snapshot(), Section.Get(pc).Rules
	say := func(text string, mode engine.ContextMode) {
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(text), Mode: mode}))
	}
	done, news := pc.Run().Step-1, unseen(pc, &cmd, rules)
	for _, r := range rules {
		count, _ := Fired.Get(snap, r.Name)
		if r.Times > 0 && count.Times >= r.Times || !r.When.due(snap, done, count, news) {
			continue
		}
		cmd.Update(Fired.Put(r.Name, Count{count.Times + 1, done}))
		say(r.Text, r.Note)
	}
	for _, p := range duePending(snap) {
		cmd.Update(Pending.Delete(p.key))
		say("You wanted to be reminded: "+p.Text, engine.Persistent)
	}
	return cmd, nil
}

// unseen returns the messages that came since the last look, if a rule is about messages,
// and notes that they were looked at.
func unseen(pc *phase.Context, cmd *phase.Command, rules []Rule) (news []inference.Message) {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.When.Message != "" }) {
		return nil
	}
	history, last := pc.Messages(), seen.Get(pc.Snapshot())
	for _, m := range history.Tail(max(history.Len()-last, 0)) {
		news = append(news, m)
	}
	if history.Len() < last { // it was cut, and nobody knows what of it is new
		news = behindAnswer(history)
	}
	if history.Len() != last {
		cmd.Update(seen.With(history.Len()))
	}
	return news
}

// behindAnswer returns the messages behind the model's last answer.
func behindAnswer(history state.List[inference.Message]) (out []inference.Message) {
	for _, m := range history.All() {
		if m.Role == inference.RoleAssistant {
			out = nil
			continue
		}
		out = append(out, m)
	}
	return out
}

// due reports whether the condition holds when a run has taken done steps.
func (w When) due(snap *state.Snapshot, done int, last Count, news []inference.Message) bool {
	switch {
	case w.Every > 0:
		return done-last.Done >= w.Every
	case w.AfterTool != "":
		return done > 0 && lastUse(snap, w.AfterTool) == done
	case w.Unused != "":
		return done-max(last.Done, lastUse(snap, w.Unused)) >= w.Steps
	default:
		return w.matches(news)
	}
}

// lastUse returns the last step that used a tool of that pattern, 0 if none did.
func lastUse(snap *state.Snapshot, pattern string) (last int) {
	for tool, step := range uses.All(snap) {
		if ok, _ := path.Match(pattern, tool); ok {
			last = max(last, step)
		}
	}
	return last
}

// pending is an entry of Pending with its key.
type pending struct {
	key string
	Wish
}

// duePending returns what the model wanted to be reminded of by now, the oldest first.
func duePending(snap *state.Snapshot) (due []pending) {
	now := steps.Get(snap)
	for key, w := range Pending.All(snap) {
		if w.Due <= now {
			due = append(due, pending{key, w})
		}
	}
	slices.SortStableFunc(due, func(a, b pending) int { return cmp.Compare(a.Due, b.Due) })
	return due
}
