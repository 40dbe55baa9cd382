package mcp

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Details is what a result has beside its text, as JSON in its details.
type Details struct {
	Server string `json:"server"`
	Tool   string `json:"tool"` // the server's own name for it
	// Structured is the structured content.
	Structured inference.JSON `json:"structured,omitzero"`
	// Parts holds media and resources, in order, up to the first that is too much.
	Parts []inference.Part `json:"parts,omitempty"`
	// Cut says that something is left out since there was too much.
	Cut bool `json:"cut,omitzero"`
}

// output turns a result of the server into one of a tool.
func (c *connection) output(wire string, res *sdk.CallToolResult) (engine.Output, error) {
	out := engine.Output{IsError: res.IsError}
	d := Details{Server: c.server.Name, Tool: wire}
	if res.StructuredContent != nil {
		structured, err := inference.ToJSON(res.StructuredContent)
		if err != nil {
			return out, fmt.Errorf("mcp: the structured content is not JSON: %w", err)
		}
		d.Structured = structured
	}
	texts, parts := contents(res.Content)
	if len(texts) == 0 && d.Structured != "" {
		texts = []string{string(d.Structured)}
	}
	if len(texts) == 0 {
		texts = []string{"[no content]"}
	}
	out.Content = cut(strings.ToValidUTF8(strings.Join(texts, "\n"), "\uFFFD"), c.limits.Content)
	d.keep(parts, c.limits.Details)
	if c.server.Media && !res.IsError {
		out.Command = show(c.server.Name, d.Parts)
	}
	if d.Structured == "" && len(d.Parts) == 0 && !d.Cut {
		return out, nil
	}
	var err error
	out.Details, err = inference.ToJSON(d)
	return out, err
}

// keep takes over the parts that fit into limit bytes, together with the structured
// content.
func (d *Details) keep(parts []inference.Part, limit int) {
	if len(d.Structured) > limit {
		d.Structured, d.Cut = "", true
	}
	left := limit - len(d.Structured)
	for _, p := range parts {
		size := len(p.Data) + len(p.Text) + len(p.URI) + len(p.MediaType) + len(p.Kind)
		if size > left {
			d.Cut = true
			return
		}
		left -= size
		d.Parts = append(d.Parts, p)
	}
}

// show adds media to what the model sees next.
func show(server string, parts []inference.Part) (cmd phase.Command) {
	m := inference.User(fmt.Sprintf("[media in the result of a tool of the server %s]", server))
	for _, p := range parts {
		if p.Kind == inference.PartImage || p.Kind == inference.PartAudio {
			m.Parts = append(m.Parts, p)
		}
	}
	if len(m.Parts) > 0 {
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: m}))
	}
	return cmd
}

// contents returns what the model reads of the content, and what else it has.
func contents(list []sdk.Content) (texts []string, parts []inference.Part) {
	for _, one := range list {
		text, part := content(one)
		if text != "" {
			texts = append(texts, text)
		}
		if part.Kind != "" {
			parts = append(parts, part)
		}
	}
	return texts, parts
}

func content(one sdk.Content) (text string, part inference.Part) {
	switch v := one.(type) {
	case *sdk.TextContent:
		return v.Text, part
	case *sdk.ImageContent:
		return media("image", v.MIMEType, v.Data), inference.Part{Kind: inference.PartImage, MediaType: brief(v.MIMEType), Data: inference.Bytes(v.Data)}
	case *sdk.AudioContent:
		return media("audio", v.MIMEType, v.Data), inference.Part{Kind: inference.PartAudio, MediaType: brief(v.MIMEType), Data: inference.Bytes(v.Data)}
	case *sdk.ResourceLink:
		text = "[resource " + brief(v.URI) + " " + brief(v.Name) + "]"
		return text, inference.Part{Kind: inference.PartFile, MediaType: brief(v.MIMEType), URI: brief(v.URI)}
	case *sdk.EmbeddedResource:
		return resource(v.Resource)
	case nil:
		return "", part
	}
	return fmt.Sprintf("[content of the unknown type %T]", one), part
}

// resource returns what the model reads of a resource, and what else there is.
func resource(r *sdk.ResourceContents) (text string, part inference.Part) {
	if r == nil {
		return "", part
	}
	part = inference.Part{Kind: inference.PartFile, MediaType: brief(r.MIMEType), URI: brief(r.URI)}
	if r.Blob == nil {
		return "[resource " + part.URI + "]\n" + r.Text, part
	}
	part.Data = inference.Bytes(r.Blob)
	return fmt.Sprintf("[resource %s, %s, %d bytes]", part.URI, part.MediaType, len(r.Blob)), part
}

func media(kind, mime string, data []byte) string {
	return fmt.Sprintf("[%s %s, %d bytes]", kind, brief(mime), len(data))
}

// brief makes a name or an address of a server fit for one line.
func brief(s string) string {
	const limit = 1 << 10
	return strings.ReplaceAll(plain(s, limit), "\n", " ")
}
