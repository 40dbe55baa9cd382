package schema

import (
	"context"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Tool returns a tool that calls fn with arguments that fit the schema of In, and tells
// the model the Out that fn returns, as the package comment says. The schema of spec must
// be empty: it is derived. An error of fn is told to the model as an error of the call.
//
// The tool implements engine.Validator. A type that embeds it as an engine.Tool hides
// that, and should have a Validate of its own that calls the one of the tool.
//
// Errors begin with "schema: " and name the field of In that is at fault. fn may be
// called by several goroutines at once.
func Tool[In, Out any](spec inference.ToolSpec, fn func(ctx context.Context, in In) (Out, error)) (engine.Tool, error) {
	return ContextTool(spec, func(ctx context.Context, _ *phase.Context, in In) (Out, error) { return fn(ctx, in) })
}

// ContextTool is Tool for a function that also wants to know of the run and the call. One
// that returns an engine.Output may ask questions and have commands committed.
func ContextTool[In, Out any](spec inference.ToolSpec, fn func(ctx context.Context, pc *phase.Context, in In) (Out, error)) (engine.Tool, error) {
	if spec.Schema != "" {
		return nil, fmt.Errorf("schema: tool %s has a schema already; leave it empty, it is derived from the arguments", spec.Name)
	}
	doc, err := documentOf(reflect.TypeFor[In]())
	if err != nil {
		return nil, err
	}
	if err := writable(reflect.TypeFor[Out]()); err != nil {
		return nil, err
	}
	spec.Schema = doc.text
	return &tool[In, Out]{spec, doc, fn}, nil
}

type tool[In, Out any] struct {
	spec inference.ToolSpec
	doc  *document
	fn   func(ctx context.Context, pc *phase.Context, in In) (Out, error)
}

func (t *tool[In, Out]) Spec() inference.ToolSpec { return t.spec }

// Validate is asked by the engine before the gates, and again after an edit of theirs.
func (t *tool[In, Out]) Validate(args inference.JSON) error {
	var in In
	return t.doc.decode(t.spec.Name, args, &in)
}

func (t *tool[In, Out]) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	var in In
	if err := t.doc.decode(t.spec.Name, pc.Call().Args, &in); err != nil {
		return engine.Output{}, err
	}
	out, err := t.fn(ctx, pc, in)
	if err != nil {
		return engine.Output{}, err
	}
	return output(t.spec.Name, out)
}
