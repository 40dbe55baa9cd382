package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
	"github.com/ddd26017/fixpoint/phase"
)

// Tool is something the model may call. Call may run concurrently with itself
// and with other tools; it gets the call and a frozen snapshot from pc.
//
// An error is not a fault of the run: the model is told and may try again. Args
// are whatever the model wrote; a tool made by NewTool decodes them strictly.
type Tool interface {
	Spec() inference.ToolSpec
	Call(ctx context.Context, pc *phase.Context) (Output, error)
}

// Validator is implemented by tools that can check arguments before they run. It
// is asked before the gates, and again after an edit.
type Validator interface {
	Validate(args inference.JSON) error
}

// Output is what a tool call produced: a result for the model and, optionally, a
// command that is committed with it. Commands of tools that ran in parallel
// merge like those of hooks, in call order.
type Output struct {
	Content string
	Details inference.JSON
	IsError bool
	Command phase.Command
	// Ask, if set, makes the call wait for an answer; Content, Details and IsError do
	// not count then. Once approved, Call runs again, from its beginning, and finds the
	// answer in pc.Answer and all its answers in pc.Answers; with gate.UseAsResult the
	// answer is the result instead. A no ends the call. Secrets are only in what Call
	// gets, and are taken out of its result. A call may ask Limits.PhaseRounds times.
	Ask *gate.Ticket
}

// Text returns an output with that content.
func Text(content string) Output { return Output{Content: content} }

// NewTool makes a tool whose arguments are of type In. Arguments are decoded
// strictly: unknown fields, fields that are there twice, and trailing data are errors
// that the model is told. Names are exact, so In's fields want json tags unless the
// schema has them with capitals: gates read the arguments too, and must not see others.
// The schema in spec is what the model sees; it is not derived from In.
func NewTool[In any](spec inference.ToolSpec, fn func(ctx context.Context, pc *phase.Context, in In) (Output, error)) Tool {
	return typedTool[In]{spec, fn, !jsonpos.Foreign(reflect.TypeFor[In]())}
}

type typedTool[In any] struct {
	spec inference.ToolSpec
	fn   func(ctx context.Context, pc *phase.Context, in In) (Output, error)
	ours bool // decoding In runs no code of the plugin's
}

func (t typedTool[In]) harmless() bool { return t.ours }

func (t typedTool[In]) Spec() inference.ToolSpec { return t.spec }

func (t typedTool[In]) Validate(args inference.JSON) error {
	_, err := t.decode(args)
	return err
}

func (t typedTool[In]) decode(args inference.JSON) (in In, err error) {
	args = cmp.Or(args, "{}")
	if err = args.Decode(&in); err == nil {
		err = jsonpos.Exact(string(args), reflect.TypeFor[In]()) // gates read the arguments too, in their own ways
	}
	if err != nil {
		err = fmt.Errorf("arguments of %s: %w", t.spec.Name, err)
	}
	return in, err
}

func (t typedTool[In]) Call(ctx context.Context, pc *phase.Context) (Output, error) {
	in, err := t.decode(pc.Call().Args)
	if err != nil {
		return Output{}, err
	}
	return t.fn(ctx, pc, in)
}

// WithParts returns a tool that brings parts of its own along: when a plugin registers
// it, bring registers hooks, gates, extras, keys and whatever else the tool needs, in
// the name of that plugin. Hooks, gates and extras of a tool work only for agents whose
// tool lists let it through; what else it registers is the plugin's as if the plugin had
// registered it itself. A tool of an Input cannot bring any.
func WithParts(t Tool, bring func(r *Registrar) error) Tool { return withParts{t, bring} }

type withParts struct {
	Tool
	bring func(r *Registrar) error
}

// pinned is a tool with the spec that it had when it was registered: what it says
// of itself later changes nothing.
type pinned struct {
	Tool
	spec  inference.ToolSpec
	bring func(r *Registrar) error
}

func (p pinned) Spec() inference.ToolSpec { return p.spec }

// pin checks a tool's spec and returns the tool with it.
func pin(t Tool) (pinned, error) {
	p := pinned{Tool: t}
	if w, ok := t.(withParts); ok {
		p.Tool, p.bring = w.Tool, w.bring
	}
	if err := guard("?", 0, func() error { p.spec = p.Tool.Spec(); return nil }); err != nil {
		return p, err
	}
	if p.spec.Name == "" {
		return p, errors.New("a tool without a name")
	}
	if p.spec.Schema != "" && !p.spec.Schema.Valid() {
		return p, fmt.Errorf("tool %s: the schema is not valid JSON", p.spec.Name)
	}
	return p, nil
}

// unpin returns the tool as it was registered, to look for optional interfaces.
func unpin(t Tool) Tool {
	if p, ok := t.(pinned); ok {
		return p.Tool
	}
	return t
}
