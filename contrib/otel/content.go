package otel

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

const unfinished = attribute.Key("fixpoint.unfinished")

// mostText is how many bytes of a name or an error are kept.
const mostText = 512

// words write texts as the rules will have them.
type words struct{ hide func(text string) string }

// clean makes a text valid UTF-8, which exporters insist on, and not too long.
func (w words) clean(text string) string { return w.cut(text, mostText) }

// cut is clean for a text of another length. What is to be hidden is hidden first, so that
// nothing of it is cut in two and not found.
func (w words) cut(text string, most int) string {
	if text = w.hide(text); len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// quote returns what is to be recorded of a content, if any is.
func (o *Observer) quote(key attribute.Key, text string) []attribute.KeyValue {
	if !o.opts.Content || text == "" {
		return nil
	}
	return []attribute.KeyValue{key.String(o.cut(text, o.opts.ContentBytes))}
}

// stated returns those of the attributes, given as keys and values in turn, that are
// not empty.
func (w words) stated(pairs ...string) (attrs []attribute.KeyValue) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs = append(attrs, attribute.String(pairs[i], w.clean(pairs[i+1])))
		}
	}
	return attrs
}

// conversation is what every span by the conventions tells of its run.
func (w words) conversation(h engine.Header) []attribute.KeyValue {
	return w.stated(string(semconv.GenAIAgentIDKey), h.Agent, string(semconv.GenAIAgentNameKey), h.Agent,
		string(semconv.GenAIConversationIDKey), h.Thread, "fixpoint.run.id", h.Run, "fixpoint.run.parent", h.Parent)
}

func tokens(u inference.Usage) (attrs []attribute.KeyValue) {
	if u == (inference.Usage{}) {
		return nil // not told
	}
	attrs = append(attrs, semconv.GenAIUsageInputTokensKey.Int64(u.InputTokens), semconv.GenAIUsageOutputTokensKey.Int64(u.OutputTokens))
	if u.CachedTokens > 0 {
		attrs = append(attrs, semconv.GenAIUsageCacheReadInputTokensKey.Int64(u.CachedTokens))
	}
	return attrs
}

// finishReason is a stop reason in the words of the conventions.
func (w words) finishReason(stop inference.StopReason) string {
	switch stop {
	case inference.StopEnd:
		return "stop"
	case inference.StopToolUse:
		return "tool_call"
	case inference.StopMaxTokens:
		return "length"
	case inference.StopFiltered:
		return "content_filter"
	}
	return w.clean(string(stop))
}

// message is a list of one message in the JSON form of the conventions.
func (o *Observer) message(role, text string, calls []inference.ToolCall, finish string) string {
	type part struct {
		Type      string `json:"type"`
		Content   string `json:"content,omitempty"`
		ID        string `json:"id,omitempty"`
		Name      string `json:"name,omitempty"`
		Arguments any    `json:"arguments,omitempty"`
	}
	type message struct {
		Role   string `json:"role"`
		Parts  []part `json:"parts"`
		Finish string `json:"finish_reason,omitempty"`
	}
	m := message{Role: role, Parts: []part{}, Finish: finish}
	if text != "" {
		m.Parts = append(m.Parts, part{Type: "text", Content: o.cut(text, o.opts.ContentBytes)})
	}
	for _, c := range calls {
		p := part{Type: "tool_call", ID: o.clean(c.ID), Name: o.clean(c.Name)}
		switch args := inference.JSON(o.hide(string(c.Args))); {
		case args == "":
		case len(args) <= o.opts.ContentBytes && utf8.ValidString(string(args)) && args.Valid():
			p.Arguments = json.RawMessage(args)
		default:
			p.Arguments = o.cut(string(args), o.opts.ContentBytes)
		}
		m.Parts = append(m.Parts, p)
	}
	out, err := json.Marshal([]message{m})
	if err != nil {
		return "" // of texts and valid JSON there is none
	}
	return string(out)
}
