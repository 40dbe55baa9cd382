package gate

import (
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/enum"
)

// Kind orders decisions from no opinion to strictest.
type Kind uint8

// The kinds, weakest first. Resolve lets the strictest win.
const (
	KindAbstain   Kind = iota // no opinion
	KindAsk                   // suspend unless someone approved
	KindApprove               // allow, and no one needs to be asked
	KindSetResult             // skip the tool, use this result
	KindSuspend               // wait for a person or another system, whatever others approve
	KindBlock                 // the call fails

	kinds
)

var kindNames = enum.Names{Package: "gate", Texts: []string{"abstain", "ask", "approve", "set_result", "suspend", "block"}}

// String returns the snake_case name of k.
func (k Kind) String() string { return kindNames.Text("kind", uint8(k)) }

// MarshalText writes the snake_case name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(text []byte) error {
	return kindNames.Parse("decision kind", text, (*uint8)(k))
}

// Decision is a gate's opinion about one tool call. The zero Decision abstains.
// It is an immutable value.
type Decision struct {
	kind   Kind
	reason string
	endRun bool
	ticket Ticket
	result inference.ToolResult
	args   inference.JSON
	edits  bool
}

// Abstain abstains; it is the zero Decision by name.
func Abstain() Decision { return Decision{} }

// Approve approves the call: it may run and no fallback asker needs to ask. It does
// not outvote SetResult, Suspend or Block.
func Approve() Decision { return Decision{kind: KindApprove} }

// Block blocks the call. The reason is told to the model and to people.
func Block(reason string) Decision { return Decision{kind: KindBlock, reason: reason} }

// Suspend suspends the call until the ticket is answered, whatever others approve.
func Suspend(t Ticket) Decision { return Decision{kind: KindSuspend, ticket: t} }

// Ask suspends the call until the ticket is answered, unless
// another gate approved it: the fallback asker.
func Ask(t Ticket) Decision { return Decision{kind: KindAsk, ticket: t} }

// SetResult skips the tool and gives the model r instead. Its call id and name
// are filled in by the engine.
func SetResult(r inference.ToolResult) Decision { return Decision{kind: KindSetResult, result: r} }

// Edit changes the arguments of the call and has no other opinion. The tool
// checks the new arguments and every gate is asked again about them.
func Edit(args inference.JSON) Decision { return Decision{}.Edit(args) }

// Edit returns d with changed arguments.
func (d Decision) Edit(args inference.JSON) Decision {
	d.args, d.edits = args, true
	return d
}

// EndRun returns d so that, if it blocks, the run ends too.
func (d Decision) EndRun() Decision {
	d.endRun = true
	return d
}

// Because returns d with a reason for people and traces.
func (d Decision) Because(reason string) Decision {
	d.reason = reason
	return d
}

// Kind returns the decision's kind.
func (d Decision) Kind() Kind { return d.kind }

// Reason returns the reason given, or "".
func (d Decision) Reason() string { return d.reason }

// EndsRun reports whether a block ends the run.
func (d Decision) EndsRun() bool { return d.endRun && d.kind == KindBlock }

// Ticket returns the question of an Ask or Suspend decision.
func (d Decision) Ticket() Ticket { return d.ticket }

// Result returns the result of a SetResult decision.
func (d Decision) Result() inference.ToolResult { return d.result }

// Args returns the edited arguments and whether there are any.
func (d Decision) Args() (inference.JSON, bool) { return d.args, d.edits }
