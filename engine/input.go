package engine

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/pushseq"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Input is what a run starts with. It is copied; the zero Input goes on with the
// thread as it is.
type Input struct {
	// Messages are appended to the transcript.
	Messages []inference.Message
	// RunID identifies the run; empty means a new id.
	RunID string
	// Mode and Adapter are free text that policies can look at.
	Mode, Adapter string
	// Tools are there for this run only, besides those of plugins. They go through
	// the same gates, and the spec's tool lists apply to them.
	Tools []Tool
	// Resolver takes the place of the engine's.
	Resolver gate.Resolver
	// GateDefault takes the place of the engine's when it is not nil.
	GateDefault *GateDefault
	// Updates commit together with the start of the run, or with the decisions of Resume:
	// all or nothing. If they cannot, the run does not begin, or go on, and that is its error.
	Updates []state.Update

	sink Observer
}

// Prompt returns an input with one user message.
func Prompt(text string) Input { return Input{Messages: []inference.Message{inference.User(text)}} }

// Result tells how a run went. It belongs to the caller.
type Result struct {
	Run    string
	Thread string
	Agent  string          // that ran last
	Status phase.RunStatus // Done or Waiting
	Reason phase.Reason
	Detail string
	// Err is the cause when Reason is ReasonError or ReasonCancelled, and what went
	// wrong while the run ended. It joins all of them.
	Err     error
	Text    string // the model's last text
	Steps   int
	Usage   inference.Usage
	Tickets []gate.Ticket // open questions when Status is Waiting
	Stats   Stats
	Elapsed time.Duration
}

// Stats counts what a run did.
type Stats struct {
	Hooks            int // hook calls, repeats included
	Conflicts        int // lost conflicts
	Retries          int // hook and action calls repeated after a conflict
	Actions          int // actions that ran
	Rounds           int // action rounds, over all phases
	MaxRounds        int // most rounds in one phase
	DeadLetters      int // actions that failed or were not delivered
	EffectsDelivered int
	EffectsFailed    int
	Commits          int // commits of hooks and actions
	ToolCalls        int
}

// stats collects Stats while a run goes on, also from phases run by others.
type stats struct {
	mu sync.Mutex
	Stats
}

// count changes the statistics. It must not call anybody.
func (s *stats) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.Stats)
}

func (s *stats) add(rep *Report) {
	s.count(func(s *Stats) {
		for _, a := range rep.Actions {
			switch a.Status {
			case ActionDone:
				s.Actions++
			case ActionDead, ActionUndelivered:
				s.DeadLetters++
			}
		}
		s.Retries += rep.Retries
		s.Rounds += rep.Rounds
		s.Commits += rep.Commits
		s.MaxRounds = max(s.MaxRounds, rep.Rounds)
	})
}

// Events runs the agent on a new thread and yields its events as they happen. The
// last pair may hold an error instead of an event: that of Run. Breaking out of
// the loop cancels the run and returns when it has ended.
func (e *Engine) Events(ctx context.Context, spec AgentSpec, in Input) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		th, err := e.NewThread("")
		if err != nil {
			yield(nil, err)
			return
		}
		th.Events(ctx, spec, in)(yield)
	}
}

// errBroken is the cause of cancellation when the consumer of Events left its loop.
var errBroken = errors.New("engine: the consumer of the events stopped")

// Events is Engine.Events on this thread.
func (t *Thread) Events(ctx context.Context, spec AgentSpec, in Input) iter.Seq2[Event, error] {
	return pushseq.Of(ctx, func(ctx context.Context, push func(Event)) error {
		in := in
		in.sink = ObserverFunc(push)
		_, err := t.Run(ctx, spec, in)
		return err
	}, pushseq.Causes{Broken: errBroken, Exited: ErrGoexit})
}
