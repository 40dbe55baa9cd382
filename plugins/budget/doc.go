// Package budget is a plugin that keeps a run within a number of tokens. It tells
// the model when most of them are used, once, and ends the run when all are.
//
// The section "budget" of an agent spec sets the limits:
//
//	"budget": {"tokens": 50000, "warn_at": 0.8}
//
// Unlike a stop condition of the spec it lets the model finish in good time.
package budget
