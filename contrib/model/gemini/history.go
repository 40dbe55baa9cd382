package gemini

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/inference"
)

// history writes messages in turns, as the protocol wants them: what follows in one role is one turn, and the results
// of calls stand at the beginning of theirs.
type history struct {
	// system is the system prompt, with the instructions that come before all messages.
	system []object
	out    []object
	// names are those of the tools that were called, by the ids of the calls.
	names map[string]string
	// The turn of the user that is being written.
	results, said []object
}

func (h *history) write(messages []inference.Message) ([]object, error) {
	h.out, h.names = []object{}, map[string]string{}
	for i, m := range messages {
		if m.Role == inference.RoleAssistant {
			h.endTurn()
			parts, err := h.assistant(m)
			if err != nil {
				return nil, err
			}
			h.turn("model", parts)
			continue
		}
		parts, err := contentParts(m)
		if err != nil {
			return nil, err
		}
		switch m.Role {
		case inference.RoleTool:
			h.results = append(h.results, h.result(m, parts))
		case inference.RoleSystem:
			for _, p := range parts {
				text, ok := p["text"].(string)
				switch {
				case !ok:
					return nil, cannot(m.Parts[0], m.Role)
				case !slices.ContainsFunc(messages[:i], func(m inference.Message) bool { return m.Role != inference.RoleSystem }):
					h.system = append(h.system, p)
				default:
					h.said = append(h.said, object{"text": "<system>\n" + text + "\n</system>"})
				}
			}
		default:
			h.said = append(h.said, parts...)
		}
	}
	h.endTurn()
	return h.out, nil
}

func (h *history) endTurn() {
	h.turn("user", append(h.results, h.said...))
	h.results, h.said = nil, nil
}

func (h *history) turn(role string, parts []object) {
	switch n := len(h.out); {
	case len(parts) == 0:
	case n > 0 && h.out[n-1]["role"] == role:
		h.out[n-1]["parts"] = append(h.out[n-1]["parts"].([]object), parts...)
	default:
		h.out = append(h.out, object{"role": role, "parts": parts})
	}
}

// madeUp is how ids begin that the adapter makes up, and that the service does not hear of.
const madeUp = "gemini_call_"

// result writes the answer to a call: its text, and media beside it.
func (h *history) result(m inference.Message, parts []object) object {
	r := m.Result
	var texts []string
	var media []object
	for _, p := range parts {
		if text, ok := p["text"].(string); ok {
			texts = append(texts, text)
		} else {
			media = append(media, p)
		}
	}
	member := "output"
	if r.IsError {
		member = "error"
	}
	response := object{"name": cmp.Or(r.Name, h.names[r.CallID]), "response": object{member: strings.Join(texts, "\n\n")}}
	if !strings.HasPrefix(r.CallID, madeUp) {
		response["id"] = r.CallID
	}
	if len(media) > 0 {
		response["parts"] = media
	}
	return object{"functionResponse": response}
}

// contentParts writes the text and the parts of a message that is not an assistant's.
func contentParts(m inference.Message) ([]object, error) {
	var out []object
	if m.Text != "" {
		out = append(out, object{"text": m.Text})
	}
	for _, p := range m.Parts {
		switch p.Kind {
		case inference.PartText:
			if p.Text != "" {
				out = append(out, object{"text": p.Text})
			}
		case inference.PartReasoning, inference.PartVendor: // a model's, and not for another
		default:
			part, err := media(p, m.Role)
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		}
	}
	return out, nil
}

// media writes an image, audio or a file.
func media(p inference.Part, role inference.Role) (object, error) {
	if p.Kind != inference.PartImage && p.Kind != inference.PartAudio && p.Kind != inference.PartFile {
		return nil, cannot(p, role)
	}
	kind := p.MediaType
	switch {
	case p.Data != "":
		return object{"inlineData": object{
			"mimeType": cmp.Or(kind, http.DetectContentType([]byte(p.Data))), "data": base64.StdEncoding.EncodeToString([]byte(p.Data)),
		}}, nil
	case p.URI == "":
		return nil, fmt.Errorf("a part of kind %q has neither data nor a URI", p.Kind)
	}
	at := object{"fileUri": p.URI}
	if kind != "" {
		at["mimeType"] = kind
	}
	return object{"fileData": at}, nil
}

// cannot says that a part has no place in a message.
func cannot(p inference.Part, role inference.Role) error {
	kind := p.Kind
	if p.MediaType != "" {
		kind += " (" + p.MediaType + ")"
	}
	return fmt.Errorf("a part of kind %s cannot be sent in a message of role %q", kind, role)
}

// partType is the media type of parts whose Extra is a kept part.
const partType = "application/vnd.google.gemini.part+json"

// kept is a part of an answer that goes back to the service as it came, and its place in the answer: the service wants
// to see signatures where they were.
type kept struct {
	// Text is how many bytes of the message's text came before it, and Calls how many calls.
	Text  int             `json:"text,omitempty"`
	Calls int             `json:"calls,omitempty"`
	Part  json.RawMessage `json:"part"`
}

// separator stands between texts that something else came between.
const separator = "\n\n"

// keptPart is what must be known of a kept part.
type keptPart struct {
	Text         string
	Thought      bool
	FunctionCall *struct{ Name string }
	Signature    json.RawMessage `json:"thoughtSignature"`

	members map[string]json.RawMessage
}

func (p keptPart) isText() bool { return p.members["text"] != nil && !p.Thought }

func readKept(extra inference.JSON) (k kept, p keptPart, ok bool) {
	err := extra.Decode(&k)
	if err == nil {
		err = json.Unmarshal(k.Part, &p)
	}
	if err == nil {
		err = json.Unmarshal(k.Part, &p.members)
	}
	return k, p, err == nil && p.members != nil
}

// assistant writes what the model said, in the order in which it did.
func (h *history) assistant(m inference.Message) ([]object, error) {
	var out, late []object
	text, calls := 0, 0
	apart := false                // as in answers
	var signature json.RawMessage // of the next call
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
		if piece := unsaid(textEnd); piece != "" {
			out, apart = append(out, object{"text": piece}), false
		}
		text = textEnd
		for ; calls < min(callsEnd, len(m.ToolCalls)); calls++ {
			c := m.ToolCalls[calls]
			h.names[c.ID] = c.Name
			call := object{"name": c.Name, "args": arguments(c.Args)}
			if !strings.HasPrefix(c.ID, madeUp) {
				call["id"] = c.ID
			}
			part := object{"functionCall": call}
			if signature != nil {
				part["thoughtSignature"], signature = signature, nil
			}
			out, apart = append(out, part), true
		}
	}
	for _, p := range m.Parts {
		switch {
		case p.Kind == inference.PartText:
			if p.Text != "" {
				late = append(late, object{"text": p.Text})
			}
		case p.Kind == inference.PartVendor && p.MediaType == partType:
			k, part, ok := readKept(p.Extra)
			if !ok {
				return nil, cannot(p, m.Role)
			}
			sayUntil(k.Text, k.Calls)
			switch {
			case part.FunctionCall != nil: // it has the signature of the call that comes now
				if calls < len(m.ToolCalls) && m.ToolCalls[calls].Name == part.FunctionCall.Name {
					signature = part.Signature
					sayUntil(text, calls+1)
				}
				continue
			case !part.isText():
				apart = true
			case part.Text != "": // it stands for its text, if that is still there
				rest := unsaid(len(m.Text))
				if !strings.HasPrefix(rest, part.Text) {
					continue
				}
				text, apart = len(m.Text)-len(rest)+len(part.Text), false
			}
			same := object{}
			for name, value := range part.members {
				same[name] = value
			}
			out = append(out, same)
		case p.Kind == inference.PartImage || p.Kind == inference.PartAudio || p.Kind == inference.PartFile:
			part, err := media(p, m.Role)
			if err != nil {
				return nil, err
			}
			k, was, ok := readKept(p.Extra)
			if !ok { // another adapter's, or somebody's
				late = append(late, part)
				continue
			}
			sayUntil(k.Text, k.Calls)
			if was.Signature != nil {
				part["thoughtSignature"] = was.Signature
			}
			out, apart = append(out, part), true
		case p.Kind == inference.PartVendor, p.Kind == inference.PartReasoning: // somebody else's, or only to be looked at
		default:
			return nil, cannot(p, m.Role)
		}
	}
	sayUntil(len(m.Text), 0)
	out = append(out, late...)
	sayUntil(len(m.Text), len(m.ToolCalls))
	return out, nil
}

// arguments returns a call's arguments as the object that the service wants.
func arguments(args inference.JSON) json.RawMessage {
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
