package confirm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Preview is the Params of a ticket: what there is to decide about, and the answers.
type Preview struct {
	Tool        string `json:"tool"`
	Kind        string `json:"kind,omitempty"`
	Description string `json:"description,omitempty"`
	// Args are the exact arguments, for an editor. They are left out when they are longer
	// than LongText; engine.ToolCalls has them.
	Args inference.JSON `json:"args,omitzero"`
	// Text is the arguments to be read. What cannot be seen is escaped, and the middle of
	// more than LongText is cut out and marked as such.
	Text string `json:"text"`
	// Diff is what the tool's Previewer says that the call would change, bounded as Text is.
	Diff string `json:"diff,omitempty"`
	// DiffError says why there is no Diff although the tool has a Previewer.
	DiffError string   `json:"diff_error,omitempty"`
	Choices   []Choice `json:"choices"`
	Scopes    []Scope  `json:"scopes"` // of Always
}

// LongText is the number of bytes up to which arguments and diffs are shown whole.
const LongText = 32 << 10

// Previewer shows what a call would change, usually as a unified diff; "" is nothing.
// It may read the outside world but must not change it, and it may be asked several
// times about one call. It must be safe for concurrent use.
type Previewer interface {
	Preview(ctx context.Context, pc *phase.Context) (string, error)
}

// PreviewerFunc lets a function be a Previewer.
type PreviewerFunc func(ctx context.Context, pc *phase.Context) (string, error)

// Preview calls f.
func (f PreviewerFunc) Preview(ctx context.Context, pc *phase.Context) (string, error) {
	return f(ctx, pc)
}

func (p *plugin) preview(ctx context.Context, pc *phase.Context, o offer) (inference.JSON, error) {
	tool, args := pc.Tool(), pc.Call().Args
	v := Preview{
		Tool: tool.Name, Kind: tool.Kind, Description: tool.Description,
		Text: pretty(args), Choices: o.choices(), Scopes: o.scopes(),
	}
	if len(args) <= LongText {
		v.Args = args
	}
	if shows := p.Previews[tool.Name]; shows != nil {
		diff, err := shows.Preview(ctx, pc)
		if err != nil {
			v.DiffError = shorten(visible(err.Error()))
		} else {
			v.Diff = shorten(visible(diff))
		}
	}
	return inference.ToJSON(v)
}

// pretty returns arguments as one reads them.
func pretty(args inference.JSON) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(args), "", "  ") != nil {
		return shorten(visible(string(args)))
	}
	return shorten(visible(out.String()))
}

// visible escapes what a screen does not show, or shows at another place.
func visible(text string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case shows(r):
			out.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// shorten cuts the middle out of a long text.
func shorten(text string) string {
	if len(text) <= LongText {
		return text
	}
	head, tail := text[:LongText/2], text[len(text)-LongText/2:]
	return fmt.Sprintf("%s\n… %d bytes are not shown …\n%s",
		strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), strings.ToValidUTF8(tail, ""))
}
