package compact

import (
	"context"
	"errors"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "compact"

// Reason is why a conversation is compacted. Plugins that schedule Compact may use words
// of their own.
type Reason string

// Reasons of the plugin itself. The first two are the automatic ones.
const (
	ReasonSize    Reason = "size"    // the estimate is above Settings.MaxTokens
	ReasonUsage   Reason = "usage"   // what the model reported is
	ReasonCommand Reason = "command" // a person typed /compact
)

func (r Reason) automatic() bool { return r == ReasonSize || r == ReasonUsage }

// Args is the payload of Compact.
type Args struct {
	Reason Reason `json:"reason"`
	// Instructions tell the summarizer what matters; "" means those of the section.
	Instructions string `json:"instructions,omitzero"`
	// Keep is how many of the latest messages stay; 0 means Settings.KeepRecent.
	Keep int `json:"keep,omitzero"`
	// Thread is the id of the thread that is meant. Whoever schedules the action should
	// tell it: gates of a run that delegated see the actions of other threads too, and
	// Prepare tells them apart. The handler works on its own thread in any case.
	Thread string `json:"thread,omitzero"`
}

// InvalidatedArgs is the payload of Invalidated. Tokens are estimates of all that is sent
// of the thread.
type InvalidatedArgs struct {
	Reason Reason `json:"reason"`
	Before int    `json:"tokens_before"`
	After  int    `json:"tokens_after"`
}

// Actions, all before the model is asked, so that the same step's request profits.
var (
	// Compact replaces the older messages in what the model sees by a summary. Gates may
	// cancel it, or replace it by the command of a Cut; with nothing to compact it does
	// nothing.
	Compact = phase.NewAction[Args]("compact", phase.BeforeInference)
	// Invalidated tells, after each compaction, that what caches know of the
	// conversation's beginning is void. Its handler writes Last; hooks of later phases
	// and subscribers look there, gates see it before.
	Invalidated = phase.NewAction[InvalidatedArgs]("compact.invalidated", phase.BeforeInference)
	// Failed is scheduled when a summarizer brought nothing usable. It becomes a dead
	// letter with the reason, unless a gate cancels or replaces it.
	Failed = phase.NewAction[string]("compact.failed", phase.BeforeInference)
)

// State of the thread. It survives runs and goes along with checkpoints and forks.
var (
	// Held is the summary in force. Only commands of a Cut should write it.
	Held = state.NewCell("compact.summary", state.Options[Summary]{Scope: state.ScopeThread, Clone: Summary.clone})
	// Notes are lines for the next summary, from any plugin. The compaction empties it; one
	// that comes while the summary is written makes it be written again.
	Notes = state.NewLog("compact.notes", state.Options[string]{Scope: state.ScopeThread})
	// Pinned holds indexes in the transcript of messages that are never summarised. That
	// of a call or a result holds all calls of the message and their results.
	Pinned = state.NewSet[int]("compact.pinned", state.Options[int]{Scope: state.ScopeThread})
	// Last is what the last compaction told; Count tells one from the next.
	Last = state.NewCell("compact.last", state.Options[Invalidation]{Scope: state.ScopeThread})
	// Attempts are the automatic ones that came to nothing since the last compaction.
	Attempts = state.NewCell("compact.attempts", state.Options[Backoff]{Scope: state.ScopeThread})
	load     = state.NewCell("compact.load", state.Options[reported]{Scope: state.ScopeThread})
)

// Invalidation is the value of Last.
type Invalidation struct {
	InvalidatedArgs
	Count int `json:"count"` // in the thread, from 1
}

// Backoff is how an automatic compaction that came to nothing is tried again, whether a
// gate cancelled it, the summarizer failed or the summary was too long: after 1, 2, 4
// and at most 32 steps that would have wanted one.
type Backoff struct {
	Tries int `json:"tries"`
	Wait  int `json:"wait"` // steps that are still to be left out
}

const longestWait = 32

func (b Backoff) next() Backoff {
	return Backoff{Tries: b.Tries + 1, Wait: min(1<<min(b.Tries, 8), longestWait)}
}

// reported is the size that the model reported last.
type reported struct {
	Tokens int64 `json:"tokens"`
	Len    int   `json:"len"` // of the transcript then
}

// Options are what a section cannot hold.
type Options struct {
	// Summarizer writes the summaries. It must be safe for concurrent use. Nil means
	// Digest.
	Summarizer Summarizer
}

// New returns the plugin. It is safe for concurrent use.
func New(o Options) engine.Plugin {
	if o.Summarizer == nil {
		o.Summarizer = SummarizerFunc(Digest)
	}
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Held, Notes, Pinned, Last, Attempts, load)
		r.Section(Section)
		r.Action(
			Compact.Handle(worker{o.Summarizer}.compact),
			Invalidated.Handle(invalidated),
			Failed.Handle(func(_ context.Context, _ *phase.Context, why string) (phase.Command, error) {
				return phase.Command{}, errors.New(why)
			}),
		)
		r.Hook(phase.BeforeInference, phase.HookFunc(watch), engine.Writes(Attempts), engine.OnError(engine.Skip))
		r.Hook(phase.AfterInference, phase.HookFunc(weigh), engine.Writes(load), engine.OnError(engine.Skip))
		r.Transform(inference.TransformFunc(apply), engine.OnError(engine.Skip))
		r.Extra(slash.New("compact", "replaces older messages by a summary before the model is asked again", commandSchema, command))
		return nil
	})
}

// weigh notes how large the model says that the conversation is.
func weigh(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if resp, ok := pc.Response(); ok && resp.Usage.InputTokens > 0 {
		cmd.Update(load.With(reported{resp.Usage.Total(), pc.Messages().Len()}))
	}
	return cmd, nil
}

// size returns how large the next request is, by the model's own count as far as it goes.
func size(pc *phase.Context) (tokens int64, reason Reason) {
	l, history, sets := load.Get(pc.Snapshot()), pc.Messages(), Section.Get(pc)
	if l.Tokens == 0 || l.Len > history.Len() {
		return int64(sets.tokens(View(pc)...)), ReasonSize
	}
	for _, m := range history.Tail(history.Len() - l.Len) {
		tokens += int64(sets.tokens(m))
	}
	return l.Tokens + tokens, ReasonUsage
}

// watch schedules a compaction when the conversation is too large.
func watch(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	most := int64(Section.Get(pc).MaxTokens)
	if most == 0 {
		return cmd, nil
	}
	tokens, reason := size(pc)
	if tokens <= most {
		return cmd, nil
	}
	args := Args{Reason: reason, Thread: pc.Run().Thread}
	if !prepare(pc, args).worthwhile() {
		return cmd, nil
	}
	tries := Attempts.Get(pc.Snapshot())
	if tries.Wait > 0 {
		tries.Wait--
		cmd.Update(Attempts.With(tries))
		return cmd, nil
	}
	cmd.Update(Attempts.With(tries.next())) // counts as failed until it succeeds, whatever goes wrong
	cmd.Schedule(Compact.New(args))
	return cmd, nil
}

func invalidated(_ context.Context, pc *phase.Context, args InvalidatedArgs) (cmd phase.Command, err error) {
	cmd.Update(Last.With(Invalidation{args, Last.Get(pc.Snapshot()).Count + 1}))
	return cmd, nil
}

const commandSchema = `{"type":"object","properties":{"instructions":{"type":"string"}},"additionalProperties":false}`

type commandArgs struct {
	Instructions string `json:"instructions"`
}

// command is /compact. The action waits in the queue for the next model call.
func command(_ context.Context, pc *phase.Context, in commandArgs) (reply slash.Reply, err error) {
	args := Args{Reason: ReasonCommand, Instructions: in.Instructions, Thread: pc.Run().Thread}
	if len(prepare(pc, args).Messages) == 0 {
		reply.Text = "There is nothing to compact."
		return reply, nil
	}
	reply.Text = "Older messages are replaced by a summary before the model is asked again."
	reply.Command.Schedule(Compact.New(args))
	return reply, nil
}

// worker is the handler of Compact.
type worker struct{ summarizer Summarizer }

func (w worker) compact(ctx context.Context, pc *phase.Context, args Args) (cmd phase.Command, err error) {
	cut := prepare(pc, args) // also in a fork, whose thread has another name
	if len(cut.Messages) == 0 {
		return cmd, nil
	}
	out, err := guarded(ctx, cut.sets.deadline(), w.summarizer, cut.input())
	if ctx.Err() != nil {
		return cmd, context.Cause(ctx)
	}
	if err == nil {
		cmd, err = cut.Command(out.Text)
	}
	if err != nil {
		if tries := Attempts.Get(pc.Snapshot()).Tries; args.Reason.automatic() && tries > cut.sets.FallbackAfter && cut.sets.FallbackAfter > 0 {
			cmd = cut.fallback(ctx)
		}
		cmd.Schedule(Failed.New(err.Error()))
	}
	if out.Usage != (inference.Usage{}) {
		cmd.Update(engine.Usage.With(out.Usage)) // spent, whatever came of it
	}
	return cmd, nil
}

// input returns what the summarizer gets, in a copy: it may go on with it when it was
// given up on.
func (c Cut) input() Input {
	return Input{Former: c.Former, Messages: inference.CloneMessages(c.Messages), Notes: slices.Clone(c.Notes), Instructions: c.Instructions,
		Tokens: min(c.sets.SummaryTokens, c.Tokens/2), BytesPerToken: c.sets.BytesPerToken}
}

// fallback is the command with a digest, or none if that is no use either. The next
// summary that fails is replaced at once too.
func (c Cut) fallback(ctx context.Context) phase.Command {
	out, _ := Digest(ctx, c.input()) // returns no error
	cmd, err := c.Command(out.Text)
	if err != nil {
		return phase.Command{}
	}
	cmd.Update(Attempts.With(Backoff{Tries: c.sets.FallbackAfter}))
	return cmd
}
