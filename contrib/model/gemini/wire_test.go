package gemini_test

import (
	"encoding/base64"
	"encoding/json"
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
	return strings.HasSuffix(w.Path, ":streamGenerateContent?alt=sse")
}

func failed(httpStatus int, status, message string, details ...object) modeltest.Reply {
	e := object{"code": httpStatus, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return modeltest.Reply{Status: httpStatus, Body: encode(object{"error": e})}
}

func retryIn(delay string) object {
	return object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
}

func quotaFailure(id string) object {
	return object{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []object{{"quotaId": id, "quotaMetric": "requests"}}}
}

func errorInfo(reason string) object {
	return object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}
}

// wire writes answers, with ids of calls or without.
type wire struct{ ids bool }

func (w wire) call(c modeltest.Call) object {
	call := object{"name": c.Name, "args": json.RawMessage(c.JSON())}
	if w.ids {
		call["id"] = c.ID
	}
	return object{"functionCall": call}
}

func inline(p inference.Part) object {
	return object{"inlineData": object{"mimeType": p.MediaType, "data": base64.StdEncoding.EncodeToString([]byte(p.Data))}, "thoughtSignature": "c2lnLWltYWdl"}
}

func usage(u modeltest.Usage) object {
	out := object{"promptTokenCount": u.Input, "candidatesTokenCount": u.Output - u.Reasoning, "totalTokenCount": u.Input + u.Output}
	if u.Cached > 0 {
		out["cachedContentTokenCount"] = u.Cached
	}
	if u.Reasoning > 0 {
		out["thoughtsTokenCount"] = u.Reasoning
	}
	return out
}

var finishReasons = map[inference.StopReason]string{
	inference.StopEnd: "STOP", inference.StopToolUse: "STOP", inference.StopMaxTokens: "MAX_TOKENS", inference.StopFiltered: "SAFETY",
}

func response(a modeltest.Answer, parts []object, reason string, count object) object {
	content := object{"role": "model"}
	if len(parts) > 0 {
		content["parts"] = parts
	}
	c := object{"content": content, "index": 0}
	if reason != "" {
		c["finishReason"] = reason
	}
	r := object{"candidates": []object{c}, "modelVersion": a.Model, "responseId": "r1", "usageMetadata": count}
	if a.Noise {
		c["future"], r["future"], content["future"], count["future"] = object{"x": 1}, []any{1, nil}, "x", 7
	}
	return r
}

// parts returns an answer's parts, each with what came of it in one piece.
func (w wire) parts(a modeltest.Answer, text, reasoning []string) []object {
	var out []object
	for _, piece := range reasoning {
		out = append(out, object{"text": piece, "thought": true})
	}
	for _, piece := range text {
		out = append(out, object{"text": piece})
	}
	if a.Image.Data != "" {
		out = append(out, inline(a.Image))
	}
	for i, c := range a.Calls {
		part := w.call(c)
		if i == 0 {
			part["thoughtSignature"] = "c2lnLWNhbGw="
		}
		out = append(out, part)
	}
	if a.Noise {
		for _, part := range out {
			part["future"] = object{"y": nil}
		}
		out = append(out, object{"futurePart": object{"level": 7}})
	}
	return out
}

func joined(pieces []string) []string {
	if len(pieces) == 0 {
		return nil
	}
	return []string{strings.Join(pieces, "")}
}

func (w wire) whole(a modeltest.Answer) modeltest.Reply {
	parts := w.parts(a, joined(a.Text), joined(a.Reasoning))
	return modeltest.Reply{Body: encode(response(a, parts, finishReasons[a.Stop], usage(a.Usage)))}
}

func (w wire) stream(a modeltest.Answer) []string {
	var frames []string
	add := func(parts []object, reason string, count object) {
		if a.Noise {
			frames = append(frames, "data: {\"future\": [{}]}\r\n\r\n")
		}
		frames = append(frames, "data: "+encode(response(a, parts, reason, count))+"\r\n\r\n")
	}
	sofar := a.Usage // running totals
	sofar.Output = sofar.Reasoning + min(1, sofar.Output-sofar.Reasoning)
	for _, part := range w.parts(a, a.Text, a.Reasoning) {
		add([]object{part}, "", usage(sofar))
	}
	add([]object{{"text": ""}}, finishReasons[a.Stop], usage(a.Usage))
	return frames
}

func errorFrame(httpStatus int, status, message string, details ...object) string {
	return "data: " + failed(httpStatus, status, message, details...).Body + "\r\n\r\n"
}
