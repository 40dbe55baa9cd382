package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/inference"
)

// Kind is the kind of a tool of which nothing else is known, for policies.
const Kind = "mcp"

// definition is a tool as its server describes it.
type definition struct {
	wire string // the server's own name for it
	spec inference.ToolSpec
}

// list asks the server for its tools and returns those that can be offered, by the
// names they get. It is bounded whatever the server answers.
func (c *connection) list(ctx context.Context, s *sdk.ClientSession) (map[string]definition, error) {
	var tools []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for page := 1; ; page++ {
		res, err := s.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		tools = append(tools, res.Tools...)
		if res.NextCursor == "" {
			break
		}
		if page == c.limits.Pages || len(tools) > 4*c.limits.Tools || res.NextCursor == params.Cursor {
			c.notify(ListCut, "the list of tools does not end; what came after page %d is left out", page)
			break
		}
		params = &sdk.ListToolsParams{Cursor: res.NextCursor}
	}
	return c.define(tools), nil
}

// define picks the tools that can be offered.
func (c *connection) define(tools []*sdk.Tool) map[string]definition {
	defs, seen := map[string]definition{}, map[string]bool{}
	// An exact name goes before one that was made to fit, and else the order of names
	// decides, so that the order of a list does not.
	tools = slices.DeleteFunc(tools, func(t *sdk.Tool) bool { return t == nil })
	slices.SortStableFunc(tools, func(a, b *sdk.Tool) int { return compareTools(c.server.Name, a, b) })
	for _, t := range tools {
		if !c.server.permits(t.Name) {
			continue
		}
		refuse := func(why string) { c.notify(ToolRefused, "tool %q is left out: %s", plain(t.Name, maxWireName), why) }
		name, _ := ToolName(c.server.Name, t.Name)
		switch _, taken := defs[name]; {
		case t.Name == "" || len(t.Name) > maxWireName:
			refuse("its name is empty or too long")
			continue
		case seen[t.Name]:
			refuse("it is in the list twice")
			continue
		case taken || c.reserved(name):
			refuse(name + " is the name of another tool")
			continue
		case len(defs) == c.limits.Tools:
			c.notify(ListCut, "there are more than %d tools; the others are left out", c.limits.Tools)
			return defs
		}
		spec, err := c.spec(name, t)
		if err != nil {
			refuse(err.Error())
			continue
		}
		seen[t.Name], defs[name] = true, definition{t.Name, spec}
	}
	return defs
}

func compareTools(server string, a, b *sdk.Tool) int {
	_, first := ToolName(server, a.Name)
	_, second := ToolName(server, b.Name)
	if first != second {
		if first {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

func (c *connection) spec(name string, t *sdk.Tool) (inference.ToolSpec, error) {
	spec := inference.ToolSpec{Name: name, Kind: c.kind(t.Annotations), Schema: `{"type":"object"}`}
	spec.Description = plain(t.Description, c.limits.Description)
	if spec.Description == "" {
		spec.Description = plain(t.Title, c.limits.Description)
	}
	if t.InputSchema == nil {
		return spec, nil
	}
	schema, err := inference.ToJSON(t.InputSchema)
	if err != nil {
		return spec, fmt.Errorf("its schema is not JSON: %w", err)
	}
	if len(schema) > c.limits.Schema {
		return spec, fmt.Errorf("its schema has more than %d bytes", c.limits.Schema)
	}
	fields, ok := t.InputSchema.(map[string]any)
	if !ok || fields["type"] != "object" {
		return spec, fmt.Errorf("its schema is not one of an object")
	}
	spec.Schema = schema
	return spec, nil
}

// kind is what policies are told of a tool. Hints come from the server, so without
// trust they count for nothing, and they can only say that a tool is harmless.
func (c *connection) kind(hints *sdk.ToolAnnotations) string {
	switch {
	case !c.server.TrustHints || hints == nil:
		return Kind
	case hints.ReadOnlyHint:
		return "read"
	case hints.DestructiveHint != nil && !*hints.DestructiveHint:
		return "write"
	}
	return Kind
}

// reserved reports whether the name is that of a tool of our own.
func (c *connection) reserved(name string) bool {
	return c.server.Resources && (name == c.server.Name+separator+listResources || name == c.server.Name+separator+readResource)
}
