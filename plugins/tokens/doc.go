// Package tokens is a plugin that lets the model know how many tokens it has: its
// budget and its context window when a run starts, and how much of them is used
// behind tool results.
//
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{tokens.New()}, Model: model})
//
// The section "tokens" of an agent spec has the numbers:
//
//	"tokens": {"budget": 50000, "windows": {"small": 128000, "*": 200000}, "every": 3, "from": 0.25}
//
// Nothing here limits anything: the plugin only tells. Use plugin budget to end a run
// that used its tokens (give both the same number), plugin cost when the measure is
// money, and this one when the model is to plan with what it has.
//
// # What is told
//
// The first message of a run, before its first model call, tells the budget and the
// window, as far as the section has them, and stays in the history. Later ones are
// one-shot, so that the history does not fill with numbers that are out of date: from
// the run's second model call on, one call in "every" (default 1) has one behind the history,
// but none while less than the share "from" (default 0) of both the budget and the
// window is used, and none when nothing was used since the last one.
//
// The use of the budget is that of the whole run, with its delegates. The use of the
// window is the last model call's input and output together, which is what the next one
// holds at least, unless a plugin such as compact shortens it just then; for a model
// without a window in the section it is not told. The window
// is that of the model that answered, or else that was asked for, or else of the agent's,
// or else that of "*".
//
// # What it registers
//
// Hooks on before_inference and after_inference, both in tier 0 and with OnError(Skip),
// the key Context, for others to read, and one of its own. Numbers come from the
// model's answers and are kept in state: they survive a wait and the process, and
// nothing outside is read.
package tokens
