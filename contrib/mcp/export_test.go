package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

func fuzzed(l Limits) *connection {
	return newConnection(Server{Name: "s", Dial: nil, Resources: true, Media: true}, &Options{Limits: l.filled()})
}

// OutputOf maps a result as a call does.
func OutputOf(res *sdk.CallToolResult, l Limits) (engine.Output, error) {
	return fuzzed(l).output("t", res)
}

// SpecsOf returns what a list of tools becomes.
func SpecsOf(tools []*sdk.Tool, l Limits) (specs []inference.ToolSpec) {
	for _, d := range fuzzed(l).define(tools) {
		specs = append(specs, d.spec)
	}
	return specs
}

// Unambiguous is what a tool's Validate asks of arguments.
func Unambiguous(args inference.JSON) error { return object(args) }
