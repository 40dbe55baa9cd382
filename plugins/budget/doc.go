// Package budget is a plugin that keeps a run within a number of tokens. It tells
// the model when most of them are used, once, and ends the run when all are.
//
// The section "budget" of an agent spec sets the limits:
//
//	"budget": {"tokens": 50000, "warn_at": 0.8}
//
// Unlike a stop condition of the spec it lets the model finish in good time.
//
// It counts tokens, whatever they cost, and one run. Use plugin cost when the measure
// is money, or a whole thread, and plugin tokens to have the model know its budget and
// the fill of its context window all along.
package budget
