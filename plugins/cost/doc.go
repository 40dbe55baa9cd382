// Package cost is a plugin that keeps account of what an agent's model calls cost.
// It adds the cost up per run, per thread and per model, tells the model and the
// person when it passes certain amounts, and can end the run at a limit.
//
//	costs := cost.New(cost.Options{Tell: func(ctx context.Context, r cost.Report) error {
//		log.Printf("%s: %s %s", r.Event, r.RunTotal.Amount, r.Currency)
//		return nil
//	}})
//
// The section "cost" of an agent spec has the prices, per million tokens:
//
//	"cost": {
//	  "currency": "USD",
//	  "prices": {"small": {"input": 0.15, "cached": 0.075, "output": 0.60}, "*": {"input": 5, "output": 15}},
//	  "tell_at": [0.50, 2],
//	  "limit": 5, "thread_limit": 20, "at_limit": "end_run"
//	}
//
// Without the section there are no prices, no notes and no limits.
//
// # Money
//
// An Amount is a whole number of nano-units, billionths of the currency's unit.
// Amounts are read from decimals digit by digit and never pass through a float. The
// cost of one model call is computed exactly and rounded once, half up, so that a
// million calls are off by at most a two-thousandth of a unit. Sums stop at the
// largest Amount, about nine billion units, instead of wrapping.
//
// # What is charged, and how
//
// A model call is charged at the price of the model that answered, or else of the one
// that was asked for, or else of the agent's, or else at that of "*". A model without
// any of these is unknown: its tokens are kept apart as Total.Unpriced and cost
// nothing, the person is told once in a run, and with "unknown": "end_run" the run
// ends, since no limit would hold. Cached input tokens cost as much as others when a
// price does not have "cached".
//
// Tokens of the run that came by no model call of its own are charged at the price of
// the agent's model, under the name Elsewhere: those of delegates, and those of a call
// whose process ended before it was charged. A delegate with this plugin has a run of
// its own with its own section, limits and reports, whose Parent is set; do not add them
// to those of the run that called it. A model call that failed counts nothing, since
// nobody knows what it used.
//
// # What it registers
//
// Hooks on run_start, before_inference, after_inference, step_end and run_end, all in
// tier 0 and with OnError(Skip); a gate that has an opinion only with "at_limit":
// "block_tools"; the durable effect "cost.report", whose handler calls Options.Tell; the
// keys Run, Thread, Models and Cache, for others to read, and two of its own. Totals are
// state, so they outlive the process with the thread. Hooks read neither clock nor
// anything outside, so a run is as deterministic as its model's usage.
//
// # Which plugin
//
// Use plugin budget to keep a run within a number of tokens, whatever they cost; plugin
// cost when the measure is money, across models of different prices or over a whole
// thread; plugin tokens to have the model know its budget and the fill of its context
// window. They work side by side, and the first limit reached ends the run.
package cost
