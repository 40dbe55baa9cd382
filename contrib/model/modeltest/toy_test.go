package modeltest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// toy is an adapter for a protocol of its own: lines of JSON. With a flaw it does one thing wrong.
type toy struct {
	modeltest.Setup
	flaw string

	mu   sync.Mutex
	last toyLine // of the flaw "shares"
}

// toyLine is a line of an answer; a whole answer is one line with everything.
type toyLine struct {
	Text      string     `json:"text,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Image     *toyImage  `json:"image,omitempty"`
	Calls     []toyCall  `json:"calls,omitempty"`
	Model     string     `json:"model,omitempty"`
	Usage     *toyUsage  `json:"usage,omitempty"`
	Stop      string     `json:"stop,omitempty"`
	Error     *toyError  `json:"error,omitempty"`
	Future    []struct{} `json:"future,omitempty"`
}

type (
	toyImage struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	toyCall struct {
		Index int    `json:"index"`
		ID    string `json:"id,omitempty"`
		Name  string `json:"name,omitempty"`
		Args  string `json:"args,omitempty"`
	}
	toyUsage struct{ In, Cached, Out, Reasoning int64 }
	toyError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
)

type toyPart struct {
	Kind, Type, Text, URI, Data string
}

type toyMessage struct {
	Role   inference.Role `json:"role"`
	Text   string         `json:"text"`
	Parts  []toyPart      `json:"parts,omitempty"`
	Calls  []toyCall      `json:"calls,omitempty"`
	Result string         `json:"result,omitempty"`
	Failed bool           `json:"failed,omitempty"`
	// Details is of the flaw "details".
	Details string `json:"details,omitempty"`
}

func (m *toy) body(r inference.Request, stream bool) ([]byte, error) {
	params := map[string]any{}
	if r.Params.ReasoningEffort.Or("") == inference.EffortMax && m.flaw != "takes any effort" {
		return nil, &resilient.Failure{Class: resilient.BadRequest, Provider: "toy", Model: r.Model,
			Err: &inference.FieldError{Field: inference.FieldReasoningEffort, Value: "max", Want: "high or less"}}
	}
	if p, ok := r.Params.TopP.Get(); ok && m.flaw != "drops top_p" {
		m.Warn(&inference.FieldError{Field: inference.FieldTopP, Value: fmt.Sprint(p), Want: "none: the service has no such thing"})
	}
	r.Params.TopP = inference.None[float64]()
	for field, value := range (inference.Override{Temperature: r.Params.Temperature, MaxTokens: r.Params.MaxTokens,
		TopP: r.Params.TopP, ReasoningEffort: r.Params.ReasoningEffort}).Fields() {
		if m.flaw == "drops "+string(field) || m.flaw == "drops zero" && value == "0" {
			continue
		}
		params[string(field)] = value
		if value == `"none"` && m.flaw != "untranslated" {
			params[string(field)] = "off"
		}
	}
	for name, value := range r.Params.Extra.All() {
		if m.flaw != "drops null" || value != "" {
			params[name] = value
		}
	}
	var messages []toyMessage
	for _, message := range r.Messages {
		out := toyMessage{Role: message.Role, Text: message.Text, Result: message.Result.CallID, Failed: message.Result.IsError}
		if m.flaw == "results alike" {
			out.Failed = false
		}
		if m.flaw == "details" {
			out.Details = string(message.Result.Details)
		}
		for i, c := range message.ToolCalls {
			out.Calls = append(out.Calls, toyCall{Index: i, ID: c.ID, Name: c.Name, Args: string(c.Args)})
		}
		for _, p := range message.Parts {
			switch {
			case p.Kind == inference.PartReasoning, p.Kind == inference.PartVendor:
				if m.flaw == "foreign" {
					out.Parts = append(out.Parts, toyPart{Kind: p.Kind, Text: string(p.Extra)})
				}
			case p.Kind == inference.PartImage && m.flaw == "drops images":
			case p.Kind == inference.PartImage, p.Kind == inference.PartText, m.flaw == "any part":
				out.Parts = append(out.Parts, toyPart{p.Kind, p.MediaType, p.Text, p.URI, base64.StdEncoding.EncodeToString([]byte(p.Data))})
			default:
				return nil, &resilient.Failure{Class: resilient.BadRequest, Provider: "toy", Model: r.Model, Err: errors.New("no place for " + p.Kind)}
			}
		}
		messages = append(messages, out)
		if n := len(messages); m.flaw == "results in disorder" && n > 1 && messages[n-2].Role == inference.RoleTool && message.Role == inference.RoleTool {
			messages[n-1], messages[n-2] = messages[n-2], messages[n-1]
		}
	}
	return json.Marshal(map[string]any{
		"system": r.System, "stream": stream, "params": params, "messages": messages, "tools": r.Tools,
	})
}

func (m *toy) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	answer, err := inference.Collect(m.ask(ctx, r, false))
	if err != nil {
		return inference.Response{}, err
	}
	return answer, nil
}

func (m *toy) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	if m.flaw == "buffers" {
		return func(yield func(inference.Chunk, error) bool) {
			type pair struct {
				chunk inference.Chunk
				err   error
			}
			var all []pair
			for c, err := range m.ask(ctx, r, true) {
				all = append(all, pair{c, err})
			}
			for _, p := range all {
				if !yield(p.chunk, p.err) {
					return
				}
			}
		}
	}
	if m.flaw == "eager" {
		_, _ = m.Generate(ctx, r)
	}
	return m.ask(ctx, r, true)
}

func (m *toy) ask(ctx context.Context, r inference.Request, stream bool) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		if m.flaw == "one model" {
			r.Model = "toy-1"
		}
		partial, left := false, false
		err := m.converse(ctx, r, stream, func(c inference.Chunk) bool {
			partial = partial || c.Text != "" || c.ToolCall != (inference.ToolCallDelta{})
			left = !yield(c, nil)
			return !left
		})
		if err == nil || left {
			return
		}
		var f *resilient.Failure
		if !errors.As(err, &f) {
			f = &resilient.Failure{Class: resilient.Transient, Provider: "toy", Model: r.Model, Err: err}
			if m.flaw == "hides causes" {
				f.Err = errors.New("something went wrong")
			}
			if ended := ctx.Err(); ended != nil {
				f.Err = fmt.Errorf("%w: %w", ended, context.Cause(ctx))
				if m.flaw == "no cause" {
					f.Err = ended
				}
				if errors.Is(ended, context.Canceled) {
					f.Class = resilient.Cancelled
				}
			}
		}
		f.Partial = partial && m.flaw != "not partial"
		if m.flaw == "plain errors" {
			yield(inference.Chunk{}, f.Err)
			return
		}
		yield(inference.Chunk{}, f)
	}
}

func (m *toy) converse(ctx context.Context, r inference.Request, stream bool, say func(inference.Chunk) bool) error {
	body, err := m.body(r, stream)
	if err != nil {
		return err
	}
	asked := ctx
	if m.flaw == "deaf" {
		asked = context.WithoutCancel(ctx)
	}
	if m.flaw == "asks twice" && !stream {
		_ = m.converse(ctx, r, true, func(inference.Chunk) bool { return true })
	}
	tries := 1
	if m.flaw == "retries" {
		tries = 2
	}
	var resp *http.Response
	for range tries {
		req, err := http.NewRequestWithContext(asked, http.MethodPost, m.BaseURL+"/ask/"+r.Model, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+m.Key)
		client := remote.Staying(m.Client)
		if m.flaw == "follows anywhere" {
			client = m.Client
		}
		if resp, err = client.Do(req); err != nil {
			return err
		}
		if resp.StatusCode < 400 {
			break
		}
		defer resp.Body.Close()
	}
	if m.flaw != "leaves bodies open" {
		defer resp.Body.Close()
	}
	if m.flaw == "leaves goroutines" {
		go func() { time.Sleep(time.Minute) }()
	}
	if resp.StatusCode >= 300 {
		f := &resilient.Failure{Provider: "toy", Model: r.Model, Status: resp.StatusCode, Class: resilient.ClassOfStatus(resp.StatusCode)}
		var said toyError
		if json.NewDecoder(resp.Body).Decode(&said) == nil && said.Code == "overflow" && m.flaw != "status only" {
			f.Class = resilient.ContextOverflow
		}
		f.Code, f.Err = said.Code, errors.New(strings.ReplaceAll(said.Message, m.Key, "[key]"))
		if m.flaw == "tells the key" {
			f.Err = errors.New(said.Message)
		}
		if f.Class == resilient.Unknown {
			f.Class = resilient.Transient
		}
		if m.flaw == "whole seconds" {
			f.RetryAfter, _ = resilient.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
		} else if m.flaw != "impatient" {
			f.RetryAfter = remote.RetryAfter(resp.Header, time.Now())
		}
		return f
	}
	if m.flaw == "logs" {
		log.Print("an answer came")
	}
	lines := json.NewDecoder(resp.Body)
	for {
		var line toyLine
		if err := lines.Decode(&line); err != nil {
			if m.flaw == "takes cuts for ends" && stream && errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if m.flaw == "shares" {
			m.mu.Lock()
			if line.Text != "" {
				m.last, line = line, m.last
			}
			m.mu.Unlock()
		}
		if line.Error != nil {
			return &resilient.Failure{Class: resilient.Overloaded, Provider: "toy", Model: r.Model, Code: line.Error.Code, Err: errors.New(line.Error.Message)}
		}
		if end, going := m.tell(line, say); end || !going {
			return nil
		}
	}
}

// tell says what a line has, and reports whether it was the last.
func (m *toy) tell(line toyLine, say func(inference.Chunk) bool) (end, going bool) {
	going = say(inference.Chunk{Reasoning: line.Reasoning}) && say(inference.Chunk{Text: line.Text})
	for _, c := range line.Calls {
		if m.flaw == "mixes calls" && c.ID == "" {
			c.Index = 0
		}
		if m.flaw == "rounds" {
			c.Args = strings.ReplaceAll(c.Args, "740993", "740992")
		}
		if m.flaw == "repairs arguments" && !json.Valid([]byte(c.Args)) && len(c.Args) > 15 {
			c.Args = "{}"
		}
		going = going && say(inference.Chunk{ToolCall: inference.ToolCallDelta{Index: c.Index, ID: c.ID, Name: c.Name, Args: c.Args}})
	}
	if line.Image != nil {
		data, _ := base64.StdEncoding.DecodeString(line.Image.Data)
		going = going && say(inference.Chunk{Part: inference.Part{Kind: inference.PartImage, MediaType: line.Image.Type, Data: inference.Bytes(data)}})
	}
	if line.Stop == "" {
		return false, going
	}
	u := cmp.Or(line.Usage, &toyUsage{})
	last := inference.Chunk{Model: line.Model, Stop: inference.StopReason(line.Stop),
		Usage: inference.Usage{InputTokens: u.In, CachedTokens: u.Cached, OutputTokens: u.Out, ReasoningTokens: u.Reasoning}}
	switch m.flaw {
	case "counts twice":
		last.Usage.OutputTokens += u.Reasoning
	case "counts no thoughts":
		last.Usage.ReasoningTokens = 0
	case "one reason":
		last.Stop = inference.StopEnd
	}
	return true, going && say(last)
}

// What the service says.

func toyWhole(a modeltest.Answer) modeltest.Reply {
	line := toyEnd(a)
	line.Text, line.Reasoning = strings.Join(a.Text, ""), strings.Join(a.Reasoning, "")
	for i, c := range a.Calls {
		line.Calls = append(line.Calls, toyCall{i, c.ID, c.Name, c.JSON()})
	}
	line.Image = toyPicture(a)
	return modeltest.Reply{Body: toyJSON(line)}
}

func toyStream(a modeltest.Answer) []string {
	var out []string
	add := func(line toyLine) { out = append(out, toyJSON(line)+"\n") }
	add(toyLine{})
	for _, piece := range a.Reasoning {
		add(toyLine{Reasoning: piece})
	}
	for _, piece := range a.Text {
		add(toyLine{Text: piece})
	}
	for i, c := range a.Calls {
		add(toyLine{Calls: []toyCall{{Index: i, ID: c.ID, Name: c.Name}}})
	}
	for _, p := range a.Pieces() {
		add(toyLine{Calls: []toyCall{{Index: p.Call, Args: a.Calls[p.Call].Args[p.Index]}}})
	}
	if a.Noise {
		add(toyLine{Future: make([]struct{}, 2)})
	}
	if a.Image.Data != "" {
		add(toyLine{Image: toyPicture(a)})
	}
	add(toyEnd(a))
	return out
}

func toyEnd(a modeltest.Answer) toyLine {
	return toyLine{Model: a.Model, Stop: string(a.Stop), Usage: &toyUsage{a.Usage.Input, a.Usage.Cached, a.Usage.Output, a.Usage.Reasoning}}
}

func toyPicture(a modeltest.Answer) *toyImage {
	if a.Image.Data == "" {
		return nil
	}
	return &toyImage{a.Image.MediaType, base64.StdEncoding.EncodeToString([]byte(a.Image.Data))}
}

func toyJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
