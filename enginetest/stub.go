package enginetest

import (
	"context"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

type stubTool struct {
	name string
	out  engine.Output
}

// StubTool returns a tool that takes any arguments and always gives out.
func StubTool(name string, out engine.Output) engine.Tool { return stubTool{name, out} }

func (s stubTool) Spec() inference.ToolSpec {
	return inference.ToolSpec{Name: s.name, Schema: `{"type":"object"}`}
}

func (s stubTool) Call(context.Context, *phase.Context) (engine.Output, error) { return s.out, nil }
