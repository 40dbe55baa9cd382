package mcp_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/inference"
)

// Whatever a server answers, the result can be saved, and is as long as it may be.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"\ud800"}]}`,
		`{"content":[{"type":"image","data":"UE5H","mimeType":"image/png"}],"isError":true}`,
		`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"UE5H"}}],"structuredContent":{"n":[1,2,{}]}}`,
		`{"content":[{"type":"resource_link","uri":"a\nb","name":"n"}],"structuredContent":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		res := &sdk.CallToolResult{}
		if json.Unmarshal(data, res) != nil {
			return
		}
		l := mcp.Limits{Content: 50, Details: 80}
		out, err := mcp.OutputOf(res, l)
		if err != nil {
			return
		}
		text, cut := strings.CutSuffix(out.Content, "\n[cut]")
		if !utf8.ValidString(out.Content) || len(text) > l.Content && cut || len(out.Content) > l.Content && !cut {
			t.Errorf("content %q", out.Content)
		}
		if out.IsError != res.IsError {
			t.Error("the error flag is another")
		}
		if out.Details == "" {
			return
		}
		var d mcp.Details
		if err := out.Details.Decode(&d); err != nil {
			t.Fatalf("details %q: %v", out.Details, err)
		}
		size := len(d.Structured)
		for _, p := range d.Parts {
			size += len(p.Data) + len(p.URI) + len(p.Text)
		}
		if size > l.Details {
			t.Errorf("details of %d bytes", size)
		}
	})
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Whatever a list says, the tools have names that models take, each once, and schemas
// of objects.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		`[{"name":"a","inputSchema":{"type":"object"}},null,{"name":"a.b"},{"name":"a_b"}]`,
		`[{"name":"read_resource","title":"t\u202e","annotations":{"readOnlyHint":true}},{"name":"` + strings.Repeat("x", 80) + `"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var tools []*sdk.Tool
		if json.Unmarshal(data, &tools) != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range mcp.SpecsOf(tools, mcp.Limits{Tools: 5, Schema: 200, Description: 50}) {
			var schema struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(s.Schema), &schema); err != nil || schema.Type != "object" || len(s.Schema) > 200 {
				t.Errorf("schema %q", s.Schema)
			}
			if !toolName.MatchString(s.Name) || seen[s.Name] || !strings.HasPrefix(s.Name, "s__") || s.Name == "s__read_resource" {
				t.Errorf("name %q", s.Name)
			}
			if strings.ContainsAny(s.Description, "\x00\x1b\u202e") || len(s.Description) > 50+len("\n[cut]") || !utf8.ValidString(s.Description) {
				t.Errorf("description %q", s.Description)
			}
			if seen[s.Name] = true; len(seen) > 5 {
				t.Error("too many")
			}
		}
	})
}

// A tool's name tells its server, and is the same for the same tool.
func FuzzToolName(f *testing.F) {
	f.Add("a", "b.c")
	f.Add("x_1", "_y")
	f.Fuzz(func(t *testing.T, server, tool string) {
		if (mcp.Server{Name: server, Command: "x"}).Validate() != nil || tool == "" {
			return
		}
		name, exact := mcp.ToolName(server, tool)
		again, _ := mcp.ToolName(server, tool)
		first, rest, ok := strings.Cut(name, "__")
		if !toolName.MatchString(name) || name != again || !ok || first != server || exact && rest != tool {
			t.Errorf("%q of %q and %q", name, server, tool)
		}
	})
}

// Arguments that are let through say the same to whoever reads them: nothing is lost by
// a reader that keeps one of each name.
func FuzzArguments(f *testing.F) {
	f.Add(`{"a":1,"b":{"a":[{"c":2}]}}`)
	f.Add(`{"a":1,"a":2}`)
	f.Add(`{"a":{"K":1,"k":2}}`)
	f.Fuzz(func(t *testing.T, args string) {
		if args == "" || mcp.Unambiguous(inference.JSON(args)) != nil {
			return
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(args), &v); err != nil {
			return // a number that no float holds
		}
		again, err := json.Marshal(v)
		if err != nil || tokens(args) != tokens(string(again)) {
			t.Errorf("%q became %q: %v", args, again, err)
		}
	})
}

func tokens(text string) (n int) {
	for dec := json.NewDecoder(strings.NewReader(text)); ; n++ {
		if _, err := dec.Token(); err != nil {
			return n
		}
	}
}
