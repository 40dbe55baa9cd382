package openai_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
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

func failed(status int, kind, code, message string, header ...string) modeltest.Reply {
	e := object{"message": message, "type": kind, "param": nil, "code": code}
	if code == "" {
		e["code"] = nil
	}
	r := modeltest.Reply{Status: status, Body: encode(object{"error": e}), Header: map[string]string{"X-Request-Id": "req_1"}}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

// Responses API

// items returns the output of an answer, as it is when it is done.
func items(a modeltest.Answer) []object {
	var out []object
	if len(a.Reasoning) > 0 {
		out = append(out, object{"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAAA-sealed", "status": nil,
			"summary": []object{{"type": "summary_text", "text": strings.Join(a.Reasoning, "")}}})
	}
	if len(a.Text) > 0 {
		out = append(out, object{"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
			"content": []object{{"type": "output_text", "text": strings.Join(a.Text, ""), "annotations": []any{}, "logprobs": []any{}}}})
	}
	if a.Image.Data != "" {
		out = append(out, object{"id": "ig_1", "type": "image_generation_call", "status": "completed", "output_format": "png",
			"result": base64.StdEncoding.EncodeToString([]byte(a.Image.Data))})
	}
	for i, c := range a.Calls {
		out = append(out, object{"id": fmt.Sprintf("fc_%d", i), "type": "function_call", "status": "completed",
			"call_id": c.ID, "name": c.Name, "arguments": c.JSON()})
	}
	if a.Noise {
		for _, item := range out {
			item["future"] = object{"a": []any{1, nil}}
		}
		out = append(out, object{"id": "fu_1", "type": "future_call", "status": "completed", "result": 7})
	}
	return out
}

// response returns the response object around an output.
func response(a modeltest.Answer, status string, output []object) object {
	r := object{
		"id": "resp_1", "object": "response", "created_at": 1767000000, "status": status, "error": nil, "incomplete_details": nil,
		"instructions": nil, "metadata": object{}, "model": a.Model, "output": output, "parallel_tool_calls": true,
		"temperature": 1.0, "tool_choice": "auto", "tools": []any{}, "top_p": 1.0, "usage": nil,
	}
	if status == "in_progress" {
		return r
	}
	switch a.Stop {
	case inference.StopMaxTokens:
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case inference.StopFiltered:
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	default: // is complete
	}
	r["usage"] = object{
		"input_tokens": a.Usage.Input, "input_tokens_details": object{"cached_tokens": a.Usage.Cached},
		"output_tokens": a.Usage.Output, "output_tokens_details": object{"reasoning_tokens": a.Usage.Reasoning},
		"total_tokens": a.Usage.Input + a.Usage.Output,
	}
	if a.Noise {
		r["future"] = "x"
	}
	return r
}

func wholeResponse(a modeltest.Answer) modeltest.Reply {
	return modeltest.Reply{Body: encode(response(a, "completed", items(a)))}
}

// events writes the events of a stream.
type events struct {
	frames []string
	noise  bool
}

func (e *events) add(kind string, members object) {
	members["type"], members["sequence_number"] = kind, len(e.frames)
	if e.noise {
		members["future"] = []any{object{}, "x"}
	}
	e.frames = append(e.frames, "event: "+kind+"\ndata: "+encode(members)+"\n\n")
	if e.noise {
		e.frames = append(e.frames, "event: response.future.delta\ndata: "+
			encode(object{"type": "response.future.delta", "delta": "not text", "sequence_number": len(e.frames)})+"\n\n", ": a comment\n\n")
	}
}

func streamedResponse(a modeltest.Answer) []string {
	e := &events{noise: a.Noise}
	done := items(a)
	e.add("response.created", object{"response": response(a, "in_progress", []object{})})
	e.add("response.in_progress", object{"response": response(a, "in_progress", []object{})})
	var first int // index of the first call
	begin := func(i int, without ...string) object {
		item := object{}
		for name, value := range done[i] {
			item[name] = value
		}
		item["status"] = "in_progress"
		for _, name := range without {
			delete(item, name)
		}
		return item
	}
	for i, item := range done {
		if item["type"] == "function_call" {
			first = i
			break
		}
	}
	for i, item := range done {
		at := func(members object) object {
			members["output_index"], members["item_id"] = i, item["id"]
			return members
		}
		switch item["type"] {
		case "reasoning":
			started := begin(i, "encrypted_content")
			started["summary"] = []any{}
			e.add("response.output_item.added", object{"output_index": i, "item": started})
			e.add("response.reasoning_summary_part.added", at(object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}}))
			for _, piece := range a.Reasoning {
				e.add("response.reasoning_summary_text.delta", at(object{"summary_index": 0, "delta": piece}))
			}
			e.add("response.reasoning_summary_text.done", at(object{"summary_index": 0, "text": strings.Join(a.Reasoning, "")}))
		case "message":
			started := begin(i)
			started["content"] = []any{}
			e.add("response.output_item.added", object{"output_index": i, "item": started})
			e.add("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, piece := range a.Text {
				e.add("response.output_text.delta", at(object{"content_index": 0, "delta": piece, "logprobs": []any{}, "obfuscation": "xYz"}))
			}
			e.add("response.output_text.done", at(object{"content_index": 0, "text": strings.Join(a.Text, ""), "logprobs": []any{}}))
			e.add("response.content_part.done", at(object{"content_index": 0, "part": item["content"].([]object)[0]}))
		case "function_call":
			if a.Interleave && i > first {
				continue
			}
			group := []modeltest.Call{a.Calls[i-first]}
			if a.Interleave {
				group = a.Calls
			}
			for j := range group {
				started := begin(i + j)
				started["arguments"] = ""
				e.add("response.output_item.added", object{"output_index": i + j, "item": started})
			}
			for _, piece := range (modeltest.Answer{Calls: group, Interleave: a.Interleave}).Pieces() {
				e.add("response.function_call_arguments.delta", object{"output_index": i + piece.Call,
					"item_id": done[i+piece.Call]["id"], "delta": group[piece.Call].Args[piece.Index], "obfuscation": "q"})
			}
			for j, c := range group {
				e.add("response.function_call_arguments.done", object{"output_index": i + j, "item_id": done[i+j]["id"], "name": c.Name, "arguments": c.JSON()})
				e.add("response.output_item.done", object{"output_index": i + j, "item": done[i+j]})
			}
			continue
		default:
			e.add("response.output_item.added", object{"output_index": i, "item": begin(i, "result")})
		}
		e.add("response.output_item.done", object{"output_index": i, "item": item})
	}
	end := response(a, "completed", done)
	e.add("response."+end["status"].(string), object{"response": end})
	return e.frames
}

func responseFailed(code, message string) string {
	e := &events{}
	r := response(modeltest.Answer{}, "failed", []object{})
	r["error"] = object{"code": code, "message": message}
	e.add("response.failed", object{"response": r})
	return e.frames[0]
}

// Chat Completions API

func completionUsage(u modeltest.Usage) object {
	return object{
		"prompt_tokens": u.Input, "prompt_tokens_details": object{"cached_tokens": u.Cached, "audio_tokens": 0},
		"completion_tokens": u.Output, "completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
		"total_tokens": u.Input + u.Output,
	}
}

var finishReasons = map[inference.StopReason]string{
	inference.StopEnd: "stop", inference.StopToolUse: "tool_calls", inference.StopMaxTokens: "length", inference.StopFiltered: "content_filter",
}

func wholeCompletion(a modeltest.Answer) modeltest.Reply {
	m := object{"role": "assistant", "content": strings.Join(a.Text, ""), "refusal": nil, "annotations": []any{}}
	if len(a.Reasoning) > 0 {
		m["reasoning_content"] = strings.Join(a.Reasoning, "")
	}
	if len(a.Text) == 0 {
		m["content"] = nil
	}
	var calls []object
	for _, c := range a.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.JSON()}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	r := object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1767000000, "model": a.Model, "usage": completionUsage(a.Usage),
		"choices": []object{{"index": 0, "message": m, "logprobs": nil, "finish_reason": finishReasons[a.Stop]}},
	}
	if a.Noise {
		r["future"], m["future"] = object{"x": 1}, []any{1}
	}
	return modeltest.Reply{Body: encode(r)}
}

func streamedCompletion(a modeltest.Answer) []string {
	var frames []string
	chunk := func(choices []object, usage any) {
		c := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1767000000, "model": a.Model,
			"choices": choices, "usage": usage, "obfuscation": "a1",
		}
		if a.Noise {
			c["future"] = "x"
			for _, choice := range choices {
				choice["delta"].(object)["future"] = object{"y": nil}
			}
			frames = append(frames, ": keep-alive\n\n")
		}
		frames = append(frames, "data: "+encode(c)+"\n\n")
	}
	delta := func(members object, reason any) {
		chunk([]object{{"index": 0, "delta": members, "logprobs": nil, "finish_reason": reason}}, nil)
	}
	delta(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, piece := range a.Reasoning {
		delta(object{"reasoning_content": piece}, nil)
	}
	for _, piece := range a.Text {
		delta(object{"content": piece}, nil)
	}
	begun := map[int]bool{}
	for _, p := range a.Pieces() {
		c := a.Calls[p.Call]
		call := object{"index": p.Call, "function": object{"arguments": c.Args[p.Index]}}
		if !begun[p.Call] {
			begun[p.Call] = true
			delta(object{"tool_calls": []object{{"index": p.Call, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
		}
		delta(object{"tool_calls": []object{call}}, nil)
	}
	delta(object{}, finishReasons[a.Stop])
	chunk([]object{}, completionUsage(a.Usage))
	return append(frames, "data: [DONE]\n\n")
}
