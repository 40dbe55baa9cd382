package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// stopRule is a stop condition made ready.
type stopRule struct {
	StopCondition
	pattern *regexp.Regexp
}

func stopRules(spec AgentSpec) ([]stopRule, error) {
	rules := make([]stopRule, len(spec.StopConditions))
	for i, c := range spec.StopConditions {
		rules[i].StopCondition = c
		if c.Type == StopTypeContentMatch {
			var err error
			if rules[i].pattern, err = regexp.Compile(c.Pattern); err != nil {
				return nil, fmt.Errorf("%w: stop_conditions[%d]: %w", ErrSpec, i, err)
			}
		}
	}
	return rules, nil
}

// maxRounds returns the most steps that the agent may take: the lowest limit given.
func (a *agent) maxRounds() int {
	most := cmp.Or(a.spec.MaxRounds, DefaultMaxRounds)
	for _, s := range a.stops {
		if s.Type == StopTypeMaxRounds {
			most = min(most, s.Rounds)
		}
	}
	return most
}

// errorLimit returns how many failures in a row end the run; 0 when no condition
// counts them, which makes a model's first failure the end.
func (a *agent) errorLimit() int {
	for _, s := range a.stops {
		if s.Type == StopTypeConsecutiveErrors {
			return s.Count
		}
	}
	return 0
}

// errRunTimeout is the cause of cancellation when the spec's time limit passes.
var errRunTimeout = errors.New("engine: the run's time limit passed")

// deadline bounds ctx by the agent's timeout conditions, counted from the start
// of the run.
func (r *run) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	var limit time.Duration
	for _, s := range r.agent.Load().stops {
		if s.Type == StopTypeTimeout && (limit == 0 || s.Timeout() < limit) {
			limit = s.Timeout()
		}
	}
	return limited(ctx, limit, errRunTimeout)
}

// progress returns the update of what the stop conditions count, after a step
// whose model call ended with err.
func (r *run) progressed(err error) state.Update {
	snap := r.th.store.Snapshot()
	p := runProgress.Get(snap)
	if err != nil {
		p.Errors++
		return runProgress.With(p)
	}
	calls := stepCalls(snap)
	if len(calls) == 0 {
		p.Errors = 0
	}
	for _, c := range calls {
		if c.Result.IsError {
			p.Errors++
		} else {
			p.Errors = 0
		}
	}
	if window := r.agent.Load().loopWindow(); window > 0 {
		p.Window = append(slices.Clone(p.Window), fingerprints(calls))
		p.Window = p.Window[max(0, len(p.Window)-window):]
	} else {
		p.Window = nil
	}
	return runProgress.With(p)
}

// stepCalls returns the calls of the current step in call order.
func stepCalls(snap *state.Snapshot) []CallState {
	calls := make([]CallState, 0, ToolCalls.Len(snap))
	for _, c := range ToolCalls.All(snap) {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b CallState) int { return a.Index - b.Index })
	return calls
}

func fingerprints(calls []CallState) string {
	return strings.Join(each(calls, func(c CallState) string { return gate.Fingerprint(c.Call) }), "")
}

// loopWindow returns how many steps loop detection looks back on.
func (a *agent) loopWindow() int {
	n := 0
	for _, s := range a.stops {
		if s.Type == StopTypeLoopDetection {
			n = max(n, s.window())
		}
	}
	return n
}

func (c StopCondition) repeats() int { return cmp.Or(c.Repeats, DefaultLoopRepeats) }

func (c StopCondition) window() int { return max(c.Window, c.repeats()) }

// looping reports whether the last entry of window is there often enough.
func (c StopCondition) looping(window []string) bool {
	if len(window) == 0 || window[len(window)-1] == "" {
		return false
	}
	last := window[max(0, len(window)-c.window()):]
	n := 0
	for _, w := range last {
		if w == last[len(last)-1] {
			n++
		}
	}
	return n >= c.repeats()
}

// stopped checks the spec's conditions after a step.
func (r *run) stopped(resp *inference.Response) (phase.Reason, string) {
	snap := r.th.store.Snapshot()
	p := runProgress.Get(snap)
	for _, s := range r.agent.Load().stops {
		switch s.Type {
		case StopTypeTimeout:
			if took := r.now().Sub(r.info.Started); took >= s.Timeout() {
				return phase.ReasonTimeout, fmt.Sprintf("the limit is %s", s.Timeout())
			}
		case StopTypeTokenBudget:
			if over := r.overBudget(); over != "" {
				return phase.ReasonTokenBudget, over
			}
		case StopTypeConsecutiveErrors:
			if p.Errors >= s.Count {
				return phase.ReasonConsecutiveErrors, fmt.Sprintf("%d failures in a row", p.Errors)
			}
		case StopTypeStopOnTool:
			if slices.ContainsFunc(stepCalls(snap), func(c CallState) bool { return c.Call.Name == s.Tool }) {
				return phase.ReasonStopOnTool, s.Tool
			}
		case StopTypeContentMatch:
			if resp != nil && s.pattern.MatchString(resp.Message.Text) {
				return phase.ReasonContentMatch, s.Pattern
			}
		case StopTypeLoopDetection:
			if s.looping(p.Window) {
				return phase.ReasonLoop, fmt.Sprintf("the same tool calls %d times", s.repeats())
			}
		}
	}
	if over := r.overBudget(); over != "" { // of a run that delegated
		return phase.ReasonTokenBudget, over
	}
	return "", ""
}

// overBudget says which token budget is used up, of the run or of those it works for,
// whose delegates spend at the same time.
func (r *run) overBudget() string {
	for x := r; x != nil; x = x.parent {
		used := max(Usage.Get(x.th.store.Snapshot()).Total(), x.used.Load())
		for _, s := range x.agent.Load().stops {
			if s.Type == StopTypeTokenBudget && used >= s.Tokens {
				return fmt.Sprintf("%d of %d tokens used", used, s.Tokens)
			}
		}
	}
	return ""
}
