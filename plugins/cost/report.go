package cost

import (
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/phase"
)

// Event says what a Report is about.
type Event string

// The events.
const (
	EventPassed   Event = "passed"        // the run's cost passed At, one of Settings.TellAt
	EventLimit    Event = "limit"         // a limit, At, was reached; the first one only
	EventUnknown  Event = "unknown_model" // Model has no price
	EventColdCall Event = "cold_cache"    // a call behind one that the cache served was not served by it
	EventSummary  Event = "summary"       // the run ended
)

// Report is what the person is told.
type Report struct {
	Event    Event  `json:"event"`
	Run      string `json:"run"`
	Parent   string `json:"parent,omitzero"` // the run that delegated to this one
	Thread   string `json:"thread"`
	Agent    string `json:"agent"`
	Step     int    `json:"step"`
	Currency string `json:"currency"`

	At    Amount `json:"at,omitzero"`    // the amount passed or the limit reached
	Model string `json:"model,omitzero"` // of EventColdCall, and of EventUnknown, where it can be Elsewhere

	RunTotal    Total `json:"run_total"`
	ThreadTotal Total `json:"thread_total"`
	// Models is the part of each model in RunTotal, by model id; with EventSummary only.
	Models []ModelTotal `json:"models,omitempty"`
}

// ModelTotal is the part of one model.
type ModelTotal struct {
	Model string `json:"model"`
	Total Total  `json:"total"`
}

// Reported is the effect that carries a Report to Options.Tell. It is durable: with a
// journal that has an outbox a report is delivered at least once, always with the same
// id (effects.IDFrom), so whoever adds summaries up must not count an id twice.
var Reported = effects.NewSpec[Report]("cost.report", effects.Durable())

// report returns a report about pc's run with its totals.
func report(pc *phase.Context, s Settings, event Event, run, thread Total) Report {
	info := pc.Run()
	return Report{Event: event, Run: info.ID, Parent: info.Parent, Thread: info.Thread, Agent: pc.Agent().ID, Step: info.Step,
		Currency: s.Currency, RunTotal: run, ThreadTotal: thread}
}
