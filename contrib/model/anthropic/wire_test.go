package anthropic_test

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
)

// The shapes of answers, after the public API reference.

type object = map[string]any

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// streams reports whether a request asks for a stream.
func streams(w modeltest.Wire) bool {
	var body struct{ Stream bool }
	return json.Unmarshal(w.Body, &body) == nil && body.Stream
}

func failed(status int, kind, message string, header ...string) modeltest.Reply {
	r := modeltest.Reply{Status: status, Header: map[string]string{"Request-Id": "req_1"}, Body: encode(object{
		"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_1",
	})}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

// content returns the blocks of an answer.
func content(a modeltest.Answer) []object {
	out := []object{}
	if len(a.Reasoning) > 0 {
		out = append(out, object{"type": "thinking", "thinking": strings.Join(a.Reasoning, ""), "signature": "c2lnbmVk"})
	}
	if len(a.Text) > 0 {
		out = append(out, object{"type": "text", "text": strings.Join(a.Text, ""), "citations": nil})
	}
	for _, c := range a.Calls {
		out = append(out, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.JSON()), "caller": object{"type": "direct"}})
	}
	if a.Noise {
		for _, block := range out {
			block["future"] = object{"a": []any{1, nil}}
		}
		out = append(out, object{"type": "future_block", "level": 7, "text": "not text"})
	}
	return out
}

func usage(u modeltest.Usage) object {
	return object{
		"input_tokens": u.Input - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0,
		"cache_creation": object{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  u.Output, "output_tokens_details": object{"thinking_tokens": u.Reasoning}, "service_tier": "standard",
	}
}

var stopReasons = map[inference.StopReason]string{
	inference.StopEnd: "end_turn", inference.StopToolUse: "tool_use", inference.StopMaxTokens: "max_tokens", inference.StopFiltered: "refusal",
}

func message(a modeltest.Answer) object {
	m := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": a.Model, "content": content(a), "container": nil,
		"stop_reason": stopReasons[a.Stop], "stop_sequence": nil, "stop_details": nil, "usage": usage(a.Usage),
	}
	if a.Noise {
		m["future"] = "x"
	}
	return m
}

func wholeMessage(a modeltest.Answer) modeltest.Reply {
	return modeltest.Reply{Body: encode(message(a))}
}

// frames writes the events of a stream.
type frames struct {
	out   []string
	noise bool
}

func (f *frames) add(kind string, members object) {
	members["type"] = kind
	if f.noise {
		members["future"] = []any{object{}, "x"}
	}
	f.out = append(f.out, "event: "+kind+"\ndata: "+encode(members)+"\n\n")
	if f.noise {
		f.out = append(f.out, "event: future_event\ndata: {\"type\":\"future_event\",\"delta\":{\"type\":\"text_delta\",\"text\":\"not text\"},\"index\":0}\n\n", ": a comment\n\n")
	}
}

func streamedMessage(a modeltest.Answer) []string {
	f := &frames{noise: a.Noise}
	begun := message(a)
	begun["content"], begun["stop_reason"] = []any{}, nil
	first := usage(a.Usage)
	first["output_tokens"] = min(1, a.Usage.Output)
	begun["usage"] = first
	f.add("message_start", object{"message": begun})
	f.out = append(f.out, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
	blocks := content(a)
	call := 0
	delta := func(i int, kind, member, piece string) {
		f.add("content_block_delta", object{"index": i, "delta": object{"type": kind, member: piece}})
	}
	for i, block := range blocks {
		started := maps.Clone(block)
		var pieces []string
		var kind, member string
		switch block["type"] {
		case "thinking":
			started["thinking"], started["signature"] = "", ""
			pieces, kind, member = a.Reasoning, "thinking_delta", "thinking"
		case "text":
			started["text"] = ""
			pieces, kind, member = a.Text, "text_delta", "text"
		case "tool_use":
			started["input"] = object{}
			pieces, kind, member = append([]string{""}, a.Calls[call].Args...), "input_json_delta", "partial_json"
			call++
		}
		f.add("content_block_start", object{"index": i, "content_block": started})
		for _, piece := range pieces {
			delta(i, kind, member, piece)
		}
		if block["type"] == "thinking" {
			delta(i, "signature_delta", "signature", block["signature"].(string))
		}
		f.add("content_block_stop", object{"index": i})
	}
	end := object{"input_tokens": first["input_tokens"], "cache_read_input_tokens": a.Usage.Cached, "output_tokens": a.Usage.Output,
		"output_tokens_details": object{"thinking_tokens": a.Usage.Reasoning}}
	f.add("message_delta", object{
		"delta": object{"stop_reason": stopReasons[a.Stop], "stop_sequence": nil, "stop_details": nil}, "usage": end,
	})
	f.add("message_stop", object{})
	return f.out
}

func errorEvent(kind, message string) string {
	return "event: error\ndata: " + encode(object{"type": "error", "error": object{"type": kind, "message": message}}) + "\n\n"
}
