package exechook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// ReasonStopped is why a run ended when a program said "continue": false.
const ReasonStopped phase.Reason = "exechook_stopped"

// Sessions counts the runs that began on the thread.
var Sessions = state.NewCounter("exechook.sessions", state.Options[int64]{Scope: state.ScopeThread})

// StopBlocks counts how often programs kept the run from its end.
var StopBlocks = state.NewCounter("exechook.stop_blocks", state.Options[int64]{})

// firing is the payload of the actions that run programs. Hooks only schedule, since
// they may run twice; an action runs once.
type firing struct {
	Event  Event  `json:"event,omitzero"`
	Source string `json:"source,omitzero"` // of a session
	Prompt int    `json:"prompt,omitzero"` // index of the message in the thread
	Tell   bool   `json:"tell,omitzero"`   // pass on what programs said at the gate
}

var (
	atRunStart = phase.NewAction[firing]("exechook.at_run_start", phase.RunStart)
	afterTool  = phase.NewAction[firing]("exechook.after_tool", phase.AfterToolExecute)
	atStepEnd  = phase.NewAction[firing]("exechook.at_step_end", phase.StepEnd)
	atRunEnd   = phase.NewAction[firing]("exechook.at_run_end", phase.RunEnd)
)

// warn makes the engine warn about what has no effect: this hook fails, and is skipped.
func (p *Plugin) warn(context.Context, *phase.Context) (cmd phase.Command, err error) {
	var errs []error
	for _, w := range p.o.Settings.Warnings {
		errs = append(errs, errors.New(w))
	}
	if p.has(PermissionRequest, Notification) && !p.asks.Load() {
		errs = append(errs, errors.New("exechook: there are hooks of PermissionRequest or Notification, but Plugin.Resolver is not in use, so they do not run"))
	}
	if p.has(PreCompact) && !p.o.Compacts {
		errs = append(errs, errors.New("exechook: there are hooks of PreCompact, but Options.Compacts is not set, so they do not run"))
	}
	return cmd, errors.Join(errs...)
}

func (p *Plugin) runStart(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if pc.Run().Parent != "" {
		if len(p.match(SubagentStart, pc.Agent().ID)) > 0 {
			cmd.Schedule(atRunStart.New(firing{Event: SubagentStart}))
		}
		return cmd, nil
	}
	source := startup
	if Sessions.Get(pc.Snapshot()) > 0 {
		source = resumed
	}
	cmd.Update(Sessions.With(1))
	if len(p.match(SessionStart, source)) > 0 {
		cmd.Schedule(atRunStart.New(firing{Event: SessionStart, Source: source}))
	}
	history := pc.Messages()
	last := history.Len() - 1
	if p.has(UserPromptSubmit) && last >= 0 && history.At(last).Role == inference.RoleUser {
		cmd.Schedule(atRunStart.New(firing{Event: UserPromptSubmit, Prompt: last}))
	}
	return cmd, nil
}

func (p *Plugin) toolDone(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	p.memo.decided(keyOf(pc))
	e, ok := afterwards(pc.Result())
	if ok && len(p.match(e, p.toolName(pc), pc.Call().Name)) > 0 {
		cmd.Schedule(afterTool.New(firing{Event: e}))
	}
	return cmd, nil
}

// afterwards returns the event that a call's end is, and false when the tool did not
// run.
func afterwards(r inference.ToolResult) (Event, bool) {
	switch r.Outcome {
	case inference.OutcomeOK:
		if r.IsError {
			return PostToolUseFailure, true
		}
		return PostToolUse, true
	case inference.OutcomeError, inference.OutcomeTimedOut, inference.OutcomeCancelled:
		return PostToolUseFailure, true
	default:
		return "", false
	}
}

func (p *Plugin) stepEnd(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if p.memo.pending(pc.Run().ID) {
		cmd.Schedule(atStepEnd.New(firing{Tell: true}))
	}
	response, ok := pc.Response()
	if !ok || len(response.Message.ToolCalls) > 0 || phase.RunLifecycle.Get(pc.Snapshot()).Ended {
		return cmd, nil
	}
	e := Stop
	if pc.Run().Parent != "" {
		e = SubagentStop
	}
	if len(p.match(e, pc.Agent().ID)) > 0 {
		cmd.Schedule(atStepEnd.New(firing{Event: e}))
	}
	return cmd, nil
}

func (p *Plugin) runEnd(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if p.memo.pending(pc.Run().ID) {
		cmd.Schedule(atRunEnd.New(firing{Tell: true}))
	}
	if pc.Run().Parent == "" && len(p.match(SessionEnd, other)) > 0 {
		cmd.Schedule(atRunEnd.New(firing{Event: SessionEnd}))
	}
	return cmd, nil
}

// fire is the handler of the actions: it runs the programs of an event.
func (p *Plugin) fire(ctx context.Context, pc *phase.Context, f firing) (cmd phase.Command, err error) {
	if f.Tell {
		p.passOn(pc, p.memo.forget(pc.Run().ID), &cmd)
		return cmd, nil
	}
	fields, names := p.common(pc), []string{pc.Agent().ID}
	switch f.Event {
	case SessionStart:
		fields["source"], names = f.Source, []string{f.Source}
	case SessionEnd:
		fields["reason"], names = other, []string{other}
		fields["run_reason"] = string(phase.RunLifecycle.Get(pc.Snapshot()).Reason)
	case UserPromptSubmit:
		fields["prompt"] = pc.Messages().At(f.Prompt).Text
	case Stop, SubagentStop:
		response, _ := pc.Response()
		fields["stop_hook_active"] = StopBlocks.Get(pc.Snapshot()) > 0
		fields["last_assistant_message"] = response.Message.Text
	case PostToolUse, PostToolUseFailure:
		if fields, err = p.resultFields(pc, f.Event); err != nil {
			return cmd, err
		}
		names = []string{p.toolName(pc), pc.Call().Name}
	default: // SubagentStart has nothing more, and the others are not fired by actions
	}
	stdin, err := stdin(f.Event, fields)
	if err != nil {
		return cmd, err
	}
	outs := p.runAll(ctx, p.match(f.Event, names...), stdin)
	p.act(pc, f, outs, &cmd)
	return cmd, nil
}

// act turns what the programs of an event said into a command.
func (p *Plugin) act(pc *phase.Context, f firing, outs []outcome, cmd *phase.Command) {
	e := f.Event
	var all []told
	var blocks, endings []string
	end, edited := false, false
	for _, o := range outs {
		if o.failure != nil {
			all = append(all, told{notice: o.notice(FailureNotice, o.failure.Error())})
			if !o.lenient() {
				blocks = append(blocks, o.failure.Error())
			}
			continue
		}
		if o.reply.Message != "" {
			all = append(all, told{notice: o.notice(MessageNotice, o.reply.Message)})
		}
		if o.Async {
			continue
		}
		if o.reply.Opinion == Deny {
			blocks = append(blocks, o.says())
		}
		if o.reply.EndRun {
			end = true
			endings = append(endings, o.reply.EndReason)
		}
		if o.reply.Context != "" {
			all = append(all, told{context: o.reply.Context})
		}
		switch {
		case o.reply.Output == nil || e != PostToolUse:
		case edited:
			all = append(all, told{notice: o.notice(ConflictNotice, "another hook replaced the result before; this one's does not count")})
		default:
			cmd.EditContent(pc.Call().ID, *o.reply.Output)
			edited = true
		}
	}
	reason := strings.Join(blocks, "\n")
	blocked := e == UserPromptSubmit && len(blocks) > 0
	if blocked {
		p.erase(pc, f.Prompt, cmd)
	}
	if end || blocked { // the model is not asked again
		all = slices.DeleteFunc(all, func(t told) bool { return t.context != "" })
	}
	switch {
	case end:
		cmd.EndRun(ReasonStopped, strings.Join(slices.DeleteFunc(endings, func(s string) bool { return s == "" }), "\n"))
	case len(blocks) == 0:
	case blocked:
		cmd.EndRun(phase.ReasonBlocked, reason)
	case e == PostToolUse || e == PostToolUseFailure:
		all = append(all, told{context: fmt.Sprintf("%s hook feedback about %s:\n%s", e, p.toolName(pc), reason)})
	case e == Stop || e == SubagentStop:
		cmd.Update(StopBlocks.With(1))
		cmd.Continue(reason)
		// The user's part, since many models do not go on after their own last word.
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.User(fmt.Sprintf("%s hook feedback:\n%s", e, reason))}))
	default:
		for _, o := range outs {
			if o.failure == nil && o.reply.Opinion == Deny {
				all = append(all, told{notice: o.notice(MessageNotice, o.says())})
			}
		}
	}
	p.passOn(pc, all, cmd)
}

// erase takes the blocked prompt out of the thread, so that no later run has the model
// read it.
func (p *Plugin) erase(pc *phase.Context, prompt int, cmd *phase.Command) {
	history := pc.Messages()
	kept := make([]inference.Message, 0, history.Len())
	for i := range history.Len() {
		if i != prompt {
			kept = append(kept, history.At(i))
		}
	}
	cmd.Update(engine.Transcript.Replace(kept...))
}

// passOn has people told and the model.
func (p *Plugin) passOn(pc *phase.Context, all []told, cmd *phase.Command) {
	for _, t := range all {
		if t.context != "" {
			if pc.Phase() != phase.RunEnd { // nobody would read it
				cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(t.context)}))
			}
			continue
		}
		t.notice.Thread, t.notice.Run = pc.Run().Thread, pc.Run().ID
		cmd.Emit(Told.New(t.notice))
	}
}
