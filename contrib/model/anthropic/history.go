package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/ddd26017/fixpoint/inference"
)

// history writes messages in turns, as the protocol wants them: what follows in one role is one turn, and the results
// of calls stand at the beginning of theirs.
type history struct {
	systemMessages bool
	// system is the system prompt, with the instructions that come before all messages.
	system []sdk.TextBlockParam
	out    []sdk.MessageParam
	// The turn of the user that is being written.
	results, said []sdk.ContentBlockParamUnion
	instructions  []string
}

func (h *history) write(messages []inference.Message) ([]sdk.MessageParam, error) {
	h.out = []sdk.MessageParam{}
	for i, m := range messages {
		if m.Role == inference.RoleAssistant {
			h.endTurn()
			blocks, err := assistantBlocks(m)
			if err != nil {
				return nil, err
			}
			if len(blocks) > 0 {
				h.turn(sdk.MessageParamRoleAssistant, blocks)
			}
			continue
		}
		blocks, err := contentBlocks(m)
		if err != nil {
			return nil, err
		}
		switch m.Role {
		case inference.RoleTool:
			h.results = append(h.results, result(m.Result, blocks))
		case inference.RoleSystem:
			var texts []string
			for _, b := range blocks {
				if b.OfText == nil {
					return nil, cannot(m.Parts[0], m.Role)
				}
				texts = append(texts, b.OfText.Text)
			}
			if len(texts) == 0 {
				continue
			}
			text := strings.Join(texts, "\n\n")
			if !slices.ContainsFunc(messages[:i], func(m inference.Message) bool { return m.Role != inference.RoleSystem }) {
				h.system = append(h.system, sdk.TextBlockParam{Text: text})
			} else if h.systemMessages {
				h.instructions = append(h.instructions, text)
			} else {
				h.said = append(h.said, instruction(text))
			}
		default:
			h.said = append(h.said, blocks...)
		}
	}
	h.endTurn()
	return h.out, nil
}

func instruction(text string) sdk.ContentBlockParamUnion {
	return sdk.NewTextBlock("<system>\n" + text + "\n</system>")
}

// endTurn writes the user's turn, if there is one. Instructions stand behind it.
func (h *history) endTurn() {
	blocks := append(h.results, h.said...)
	if len(blocks) == 0 { // nothing that they could stand behind
		for _, text := range h.instructions {
			blocks = append(blocks, instruction(text))
		}
		h.instructions = nil
	}
	if len(blocks) > 0 {
		h.turn(sdk.MessageParamRoleUser, blocks)
	}
	if len(h.instructions) > 0 {
		h.turn(sdk.MessageParamRoleSystem, []sdk.ContentBlockParamUnion{sdk.NewTextBlock(strings.Join(h.instructions, "\n\n"))})
	}
	h.results, h.said, h.instructions = nil, nil, nil
}

func (h *history) turn(role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) {
	if n := len(h.out); n > 0 && h.out[n-1].Role == role {
		h.out[n-1].Content = append(h.out[n-1].Content, blocks...)
		return
	}
	h.out = append(h.out, sdk.MessageParam{Role: role, Content: blocks})
}

// result writes the answer to a call.
func result(r inference.ToolResult, blocks []sdk.ContentBlockParamUnion) sdk.ContentBlockParamUnion {
	out := &sdk.ToolResultBlockParam{ToolUseID: r.CallID}
	if r.IsError {
		out.IsError = param.NewOpt(true)
		if len(blocks) == 0 { // the service wants to hear something of an error
			blocks = append(blocks, sdk.NewTextBlock("error"))
		}
	}
	for _, b := range blocks {
		out.Content = append(out.Content, sdk.ToolResultBlockParamContentUnion{OfText: b.OfText, OfImage: b.OfImage, OfDocument: b.OfDocument})
	}
	return sdk.ContentBlockParamUnion{OfToolResult: out}
}

// blank reports whether a text is none: the service takes no empty ones.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// contentBlocks writes the text and the parts of a message that is not an assistant's.
func contentBlocks(m inference.Message) ([]sdk.ContentBlockParamUnion, error) {
	var out []sdk.ContentBlockParamUnion
	if !blank(m.Text) {
		out = append(out, sdk.NewTextBlock(m.Text))
	}
	for _, p := range m.Parts {
		switch p.Kind {
		case inference.PartText:
			if !blank(p.Text) {
				out = append(out, sdk.NewTextBlock(p.Text))
			}
		case inference.PartReasoning, inference.PartVendor: // a model's, and not for another
		default:
			block, err := media(p, m.Role)
			if err != nil {
				return nil, err
			}
			out = append(out, block)
		}
	}
	return out, nil
}

// blockType is the media type of parts whose Extra is a kept block.
const blockType = "application/vnd.anthropic.messages.block+json"

// kept is a block of an answer that goes back to the service as it came, and its place in the answer: the service
// insists on thoughts where they were.
type kept struct {
	// Text is how many bytes of the message's text came before it, and Calls how many calls.
	Text  int             `json:"text,omitempty"`
	Calls int             `json:"calls,omitempty"`
	Block json.RawMessage `json:"block"`
}

// keptBlock is what must be known of a kept block.
type keptBlock struct{ Type, Text string }

func (k kept) read() (block keptBlock, ok bool) {
	err := json.Unmarshal(k.Block, &block)
	return block, err == nil && block.Type != ""
}

// separator stands between texts that something else came between.
const separator = "\n\n"

// assistantBlocks writes what the model said, in the order in which it did.
func assistantBlocks(m inference.Message) ([]sdk.ContentBlockParamUnion, error) {
	var out []sdk.ContentBlockParamUnion
	var extra []string
	end := 0       // behind the last block that may be the last
	apart := false // as in answers: something other than text came after the last text
	say := func(b sdk.ContentBlockParamUnion, text bool) {
		out = append(out, b)
		end, apart = len(out), !text
	}
	text, calls := 0, 0
	unsaid := func(end int) string {
		rest := m.Text[text:end]
		if text > 0 && apart {
			rest = strings.TrimPrefix(rest, separator)
		}
		return rest
	}
	sayUntil := func(textEnd, callsEnd int) {
		textEnd = max(text, textEnd)
		for textEnd < len(m.Text) && !utf8.RuneStart(m.Text[textEnd]) {
			textEnd++ // of a text that somebody changed
		}
		textEnd = min(textEnd, len(m.Text))
		if piece := unsaid(textEnd); !blank(piece) {
			say(sdk.NewTextBlock(piece), true)
		}
		text = textEnd
		for ; calls < min(callsEnd, len(m.ToolCalls)); calls++ {
			c := m.ToolCalls[calls]
			say(sdk.NewToolUseBlock(c.ID, input(c.Args), c.Name), false)
		}
	}
	for _, p := range m.Parts {
		switch {
		case p.Kind == inference.PartText:
			extra = append(extra, p.Text)
		case p.Kind == inference.PartVendor && p.MediaType == blockType:
			var k kept
			if err := p.Extra.Decode(&k); err != nil {
				return nil, cannot(p, m.Role)
			}
			block, ok := k.read()
			if !ok {
				return nil, cannot(p, m.Role)
			}
			sayUntil(k.Text, k.Calls)
			same := param.Override[sdk.ContentBlockParamUnion](k.Block)
			switch block.Type {
			case "text": // it stands for its text, if that is still there
				if rest := unsaid(len(m.Text)); strings.HasPrefix(rest, block.Text) {
					text = len(m.Text) - len(rest) + len(block.Text)
					say(same, true)
				}
			case "thinking", "redacted_thinking":
				out, apart = append(out, same), true
			default:
				say(same, false)
			}
		case p.Kind == inference.PartVendor, p.Kind == inference.PartReasoning: // somebody else's, or only to be looked at
		default:
			return nil, cannot(p, m.Role)
		}
	}
	sayUntil(len(m.Text), 0)
	for _, text := range extra {
		if !blank(text) {
			say(sdk.NewTextBlock(text), true)
		}
	}
	sayUntil(len(m.Text), len(m.ToolCalls))
	return out[:end], nil // the service takes no thoughts that led to nothing
}

// input returns a call's arguments as the object that the service wants.
func input(args inference.JSON) json.RawMessage {
	if args == "" {
		return json.RawMessage("{}")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &members) == nil && members != nil {
		return json.RawMessage(args)
	}
	text, _ := inference.ToJSON(map[string]string{"malformed_args": string(args)})
	return json.RawMessage(text)
}
