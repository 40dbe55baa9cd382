package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

const (
	listResources = "list_resources"
	readResource  = "read_resource"
)

// resourceTools returns the tools for the resources of a server.
func (c *connection) resourceTools() []engine.Tool {
	kind := c.kind(&sdk.ToolAnnotations{ReadOnlyHint: true})
	return []engine.Tool{
		engine.NewTool(inference.ToolSpec{
			Name: c.server.Name + separator + listResources, Kind: kind,
			Description: "List the resources of the server " + c.server.Name + ", and the templates of their addresses.",
			Schema:      `{"type":"object","properties":{},"additionalProperties":false}`,
		}, func(ctx context.Context, _ *phase.Context, _ struct{}) (engine.Output, error) {
			text, err := c.resources(ctx)
			return engine.Text(text), err
		}),
		engine.NewTool(inference.ToolSpec{
			Name: c.server.Name + separator + readResource, Kind: kind,
			Description: "Read a resource of the server " + c.server.Name + ".",
			Schema:      `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"],"additionalProperties":false}`,
		}, func(ctx context.Context, _ *phase.Context, in struct {
			URI string `json:"uri"`
		}) (engine.Output, error) {
			return c.read(ctx, in.URI)
		}),
	}
}

// request is a request about a resource or a prompt, bounded in time.
func request[R any](ctx context.Context, c *connection, fn func(ctx context.Context, s *sdk.ClientSession) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.timeout(), errLate)
	defer cancel()
	type answer struct {
		res R
		err error
	}
	var none R
	link, err := c.get(ctx)
	if err != nil {
		return none, err
	}
	got := make(chan answer, 1) // a write to a server may hang
	go func() {
		res, err := fn(ctx, link.session)
		got <- answer{res, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			return none, fmt.Errorf("mcp: server %s: %s", c.server.Name, plain(a.err.Error(), c.limits.Description))
		}
		return a.res, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func (c *connection) resources(ctx context.Context) (string, error) {
	const most = 1000
	return request(ctx, c, func(ctx context.Context, s *sdk.ClientSession) (string, error) {
		var b strings.Builder
		params := &sdk.ListResourcesParams{}
		for page, n := 0, 0; page < c.limits.Pages && n < most; page++ {
			res, err := s.ListResources(ctx, params)
			if err != nil {
				return "", err
			}
			for _, r := range res.Resources {
				if n++; r != nil && n <= most {
					fmt.Fprintln(&b, strings.TrimSpace(brief(r.URI)+" "+brief(r.MIMEType)+" "+brief(r.Name)+" "+brief(r.Description)))
				}
			}
			if res.NextCursor == "" || res.NextCursor == params.Cursor {
				break
			}
			params = &sdk.ListResourcesParams{Cursor: res.NextCursor}
		}
		// Templates are an extra that many servers do not have.
		if res, err := s.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{}); err == nil {
			for i, r := range res.ResourceTemplates {
				if r != nil && i < most {
					fmt.Fprintln(&b, strings.TrimSpace("template "+brief(r.URITemplate)+" "+brief(r.Name)+" "+brief(r.Description)))
				}
			}
		}
		if b.Len() == 0 {
			return "[no resources]", nil
		}
		return cut(b.String(), c.limits.Content), nil
	})
}

func (c *connection) read(ctx context.Context, uri string) (engine.Output, error) {
	res, err := request(ctx, c, func(ctx context.Context, s *sdk.ClientSession) (*sdk.ReadResourceResult, error) {
		return s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
	if err != nil {
		return engine.Output{}, err
	}
	if res.NeedsInput() {
		return engine.Output{}, errNoQuestions
	}
	call := &sdk.CallToolResult{}
	for _, r := range res.Contents {
		call.Content = append(call.Content, &sdk.EmbeddedResource{Resource: r})
	}
	return c.output(readResource, call)
}

// prompt returns the messages of a prompt of the server, as text.
func (c *connection) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	res, err := request(ctx, c, func(ctx context.Context, s *sdk.ClientSession) (*sdk.GetPromptResult, error) {
		return s.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
	})
	if err != nil {
		return "", err
	}
	if res.NeedsInput() {
		return "", errNoQuestions
	}
	var all []string
	for _, m := range res.Messages {
		if m == nil {
			continue
		}
		texts, _ := contents([]sdk.Content{m.Content})
		all = append(all, texts...)
	}
	return cut(strings.ToValidUTF8(strings.Join(all, "\n\n"), "\uFFFD"), c.limits.Content), nil
}
