package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// Resilience says what is done about failures of a model. Durations are as
// time.ParseDuration reads them.
type Resilience struct {
	// Attempts is how often a model is asked at most, and Total the time in which the last
	// attempt may begin. The defaults are 4 and "2m"; 1 is no retry.
	Attempts int    `json:"attempts"`
	Total    string `json:"total"`
	// Recovery says what becomes of an answer whose stream broke: "fail", the default, which
	// takes the attempt for failed; "repeat", "prefill" or "ask". See resilient.How.
	Recovery string   `json:"recovery"`
	Timeouts Timeouts `json:"timeouts"`
	// Continue is how often a model goes on with an answer that was cut off at its maximum
	// of tokens. The default is 0: never.
	Continue int `json:"continue"`
	// Fallback lists ids of models that are asked, in this order, when this one fails.
	Fallback []string `json:"fallback"`
	// Breaker is for each of the models where there is a fallback.
	Breaker Breaker `json:"breaker"`
}

// Timeouts limit one attempt; "0s" is no limit.
type Timeouts struct {
	Request string `json:"request"` // the whole answer; the default is "15m"
	First   string `json:"first"`   // until a stream begins; the default is "5m"
	Stall   string `json:"stall"`   // between two pieces of a stream; the default is "2m"
}

// Breaker says when a model that keeps failing is not asked for a while.
type Breaker struct {
	Failures int    `json:"failures"` // in a row; 0 is no breaker, the default is 2
	OpenFor  string `json:"open_for"` // the default is "1m"
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey("resilience", engine.ConfigOptions[Resilience]{Default: Default, Check: Resilience.Validate})

// Default returns the settings of a spec without the section.
func Default() Resilience {
	return Resilience{
		Attempts: 4, Total: "2m", Recovery: "fail", Timeouts: Timeouts{Request: "15m", First: "5m", Stall: "2m"},
		Fallback: []string{}, Breaker: Breaker{Failures: 2, OpenFor: "1m"},
	}
}

// recoveries are the ways to go on with a broken answer, by name.
var recoveries = map[string]resilient.How{"fail": resilient.Fail, "repeat": resilient.Repeat, "prefill": resilient.Prefill, "ask": resilient.Ask}

// Validate returns what is wrong with the settings, or nil.
func (s Resilience) Validate() error {
	fault := func(format string, args ...any) error { return fmt.Errorf("resilience: "+format, args...) }
	var errs []error
	for _, d := range []struct {
		name, text string
		least      time.Duration
	}{
		{"total", s.Total, 1}, {"timeouts.request", s.Timeouts.Request, 0}, {"timeouts.first", s.Timeouts.First, 0},
		{"timeouts.stall", s.Timeouts.Stall, 0}, {"breaker.open_for", s.Breaker.OpenFor, 1},
	} {
		if v, err := time.ParseDuration(d.text); err != nil || v < d.least {
			errs = append(errs, fault("%s is %q; use a duration such as \"90s\"", d.name, d.text))
		}
	}
	if s.Attempts < 1 {
		errs = append(errs, fault("attempts is %d; use 1, which is no retry, or more", s.Attempts))
	}
	if s.Continue < 0 {
		errs = append(errs, fault("continue is %d; use 0, which is never, or more", s.Continue))
	}
	if s.Breaker.Failures < 0 {
		errs = append(errs, fault("breaker.failures is %d; use 0, which is no breaker, or more", s.Breaker.Failures))
	}
	if _, ok := recoveries[s.Recovery]; !ok {
		errs = append(errs, fault("no recovery %q; %s", s.Recovery, hint(s.Recovery, []string{"fail", "repeat", "prefill", "ask"})))
	}
	for i, id := range s.Fallback {
		if slices.Contains(s.Fallback[:i], id) {
			errs = append(errs, fault("fallback[%d]: %q is listed twice; keep one", i, id))
		}
	}
	return errors.Join(errs...)
}

// duration reads a text that was validated.
func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// wrap puts the layers of one model around it, and the others behind it.
func (s Resilience) wrap(id string, m inference.Model, others map[string]inference.Model, tell func(label, text string)) (inference.Model, error) {
	recovery := resilient.Recovery{How: recoveries[s.Recovery]}
	guarded := func(id string, m inference.Model) (inference.Model, error) {
		layers := []resilient.Layer{
			resilient.Timeout{Request: duration(s.Timeouts.Request), First: duration(s.Timeouts.First), Stall: duration(s.Timeouts.Stall)},
			resilient.Retry{Attempts: s.Attempts, Total: duration(s.Total), Recovery: recovery, Observe: func(_ context.Context, f resilient.Failed) {
				tell("retry", fmt.Sprintf("%s failed, attempt %d of %d; again in %s: %v", id, f.Attempt, s.Attempts, short(f.Wait), f.Err))
			}},
		}
		if len(s.Fallback) > 0 && s.Breaker.Failures > 0 {
			layers = append(layers, &resilient.Breaker{Failures: s.Breaker.Failures, OpenFor: duration(s.Breaker.OpenFor), Observe: func(_ context.Context, c resilient.Change) {
				tell("breaker", fmt.Sprintf("of %s is %s", id, c.To))
			}})
		}
		return resilient.Wrap(m, layers...)
	}
	m, err := guarded(id, m)
	if err != nil {
		return nil, err
	}
	if len(s.Fallback) > 0 {
		pool := resilient.Pool{Members: []resilient.Member{{Name: id, Model: m}}, Recovery: recovery, Observe: func(_ context.Context, a resilient.Asked) {
			if a.Err != nil && a.Next != "" {
				tell("failover", fmt.Sprintf("from %s to %s: %v", a.Member, a.Next, a.Err))
			}
		}}
		for _, other := range s.Fallback {
			g, err := guarded(other, others[other])
			if err != nil {
				return nil, err
			}
			pool.Members = append(pool.Members, resilient.Member{Name: other, Model: g, Override: inference.Override{UpstreamModel: inference.Some(other)}})
		}
		if m, err = resilient.NewPool(pool); err != nil {
			return nil, err
		}
	}
	if s.Continue > 0 {
		return resilient.Wrap(m, resilient.Continue{Times: s.Continue, Observe: func(_ context.Context, w resilient.WentOn) {
			if w.Err != nil {
				tell("continue", fmt.Sprintf("%s did not go on with its answer, which stays cut off: %v", id, w.Err))
				return
			}
			tell("continue", id+" goes on with an answer that was cut off")
		}})
	}
	return m, nil
}

func short(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
