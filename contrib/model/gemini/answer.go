package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/genai"

	"github.com/ddd26017/fixpoint/inference"
)

// errCut is what a stream ends with that ends too early.
var errCut = errors.New("the answer ended without a reason")

// answer follows one answer: in one piece, or piece by piece.
type answer struct {
	x     *exchange
	model string
	// text is how many bytes of text there were so far, and calls how many calls.
	text, calls int
	// apart is true when something that goes back other than text came after the last text.
	apart   bool
	ids     map[string]bool
	counted inference.Usage
	reason  genai.FinishReason
	message string
	// any is true when there was a candidate.
	any bool
}

// take yields a piece of the answer.
func (a *answer) take(r *genai.GenerateContentResponse) error {
	if r == nil {
		return nil
	}
	if r.ModelVersion != "" && a.model == "" {
		a.model = r.ModelVersion
		a.x.say(inference.Chunk{Model: a.model})
	}
	a.count(r.UsageMetadata)
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" && len(r.Candidates) == 0 {
		return &complaint{code: string(f.BlockReason), blocked: true, message: cmp.Or(f.BlockReasonMessage, "the prompt was blocked")}
	}
	for _, c := range r.Candidates {
		if c == nil || c.Index != 0 {
			continue
		}
		a.any = true
		if c.Content != nil {
			for _, p := range c.Content.Parts {
				if p != nil {
					if err := a.part(p); err != nil {
						return err
					}
				}
			}
		}
		if c.FinishReason != "" && c.FinishReason != genai.FinishReasonUnspecified {
			a.reason, a.message = c.FinishReason, c.FinishMessage
		}
	}
	return nil
}

func (a *answer) part(p *genai.Part) error {
	at := kept{Text: a.text, Calls: a.calls}
	signed := len(p.ThoughtSignature) > 0
	vendor := inference.Part{Kind: inference.PartVendor, MediaType: partType}
	switch {
	case p.FunctionCall != nil:
		a.apart = true
		args, err := written(p.FunctionCall.Args)
		if err != nil {
			return err
		}
		if p.FunctionCall.Args == nil {
			args = ""
		}
		a.call(p.FunctionCall.ID, p.FunctionCall.Name, string(args))
		if signed {
			return a.keep(at, vendor, object{"functionCall": object{"name": p.FunctionCall.Name}, "thoughtSignature": p.ThoughtSignature})
		}
		return nil
	case p.InlineData != nil && p.Thought: // a sketch
		return nil
	case p.InlineData != nil && len(p.InlineData.Data) > 0: // a file of nothing could not go back
		a.apart = true
		part := inference.Part{Kind: inference.PartFile, MediaType: p.InlineData.MIMEType, Data: inference.Bytes(p.InlineData.Data)}
		for _, kind := range []string{inference.PartImage, inference.PartAudio} {
			if len(part.MediaType) > len(kind) && part.MediaType[:len(kind)+1] == kind+"/" {
				part.Kind = kind
			}
		}
		members := object{}
		if signed {
			members["thoughtSignature"] = p.ThoughtSignature
		}
		return a.keep(at, part, members)
	case p.Thought:
		a.x.say(inference.Chunk{Reasoning: p.Text})
		if !signed {
			return nil
		}
		a.apart = true
		return a.keep(at, vendor, object{"text": p.Text, "thought": true, "thoughtSignature": p.ThoughtSignature})
	case isText(p):
		a.say(p.Text)
		if !signed {
			return nil
		}
		return a.keep(at, vendor, object{"text": p.Text, "thoughtSignature": p.ThoughtSignature}) // an empty text, too
	}
	a.apart = true
	return a.keep(at, vendor, p)
}

func (a *answer) say(text string) {
	if text == "" {
		return
	}
	if a.text > 0 && a.apart {
		text = separator + text
	}
	a.apart = false
	a.text += len(text)
	a.x.say(inference.Chunk{Text: text})
}

// isText reports whether a part is nothing but text.
func isText(p *genai.Part) bool {
	return p.CodeExecutionResult == nil && p.ExecutableCode == nil && p.FileData == nil && p.FunctionResponse == nil &&
		p.ToolCall == nil && p.ToolResponse == nil
}

// call yields a call. Some services give no ids.
func (a *answer) call(id, name, args string) {
	if id == "" || a.ids[id] {
		id = madeUp + strconv.Itoa(a.calls)
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	a.ids[id] = true
	a.x.say(inference.Chunk{ToolCall: inference.ToolCallDelta{Index: a.calls, ID: id, Name: name, Args: args}})
	a.calls++
}

// keep yields a part that goes back to the service in its place.
func (a *answer) keep(at kept, part inference.Part, members any) error {
	text, err := written(members)
	if err != nil {
		return err
	}
	at.Part = json.RawMessage(text)
	if part.Extra, err = inference.ToJSON(at); err != nil {
		return err
	}
	if _, p, ok := readKept(part.Extra); !ok || part.Kind == inference.PartVendor && len(p.members) == 0 {
		return nil // a part of a sort that nobody knows
	}
	a.x.say(inference.Chunk{Part: part})
	return nil
}

// count yields what was not counted yet: the service sends running totals. Thoughts are not among its candidates'
// tokens, and what its own tools read is not among the prompt's.
func (a *answer) count(u *genai.GenerateContentResponseUsageMetadata) {
	if u == nil {
		return
	}
	now := inference.Usage{
		InputTokens:     int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
		OutputTokens:    int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
		CachedTokens:    int64(u.CachedContentTokenCount),
		ReasoningTokens: int64(u.ThoughtsTokenCount),
	}
	a.x.say(inference.Chunk{Usage: inference.Usage{
		InputTokens:     now.InputTokens - a.counted.InputTokens,
		OutputTokens:    now.OutputTokens - a.counted.OutputTokens,
		CachedTokens:    now.CachedTokens - a.counted.CachedTokens,
		ReasoningTokens: now.ReasoningTokens - a.counted.ReasoningTokens,
	}})
	a.counted = now
}

// end says what is known when the answer is over.
func (a *answer) end() error {
	if a.x.left {
		return nil
	}
	last := inference.Chunk{Model: a.model}
	switch a.reason {
	case "":
		if a.any {
			return errCut
		}
		return errors.New("what the service sent is no answer")
	case genai.FinishReasonStop:
		last.Stop = inference.StopEnd
		if a.calls > 0 {
			last.Stop = inference.StopToolUse
		}
	case genai.FinishReasonMaxTokens:
		last.Stop = inference.StopMaxTokens
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent,
		genai.FinishReasonSPII, genai.FinishReasonImageSafety, genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation:
		last.Stop = inference.StopFiltered
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls, "MISSING_THOUGHT_SIGNATURE":
		return &complaint{code: string(a.reason), message: cmp.Or(a.message, fmt.Sprintf("the answer ended with %s", a.reason))}
	default:
		last.Stop = inference.StopOther
	}
	a.x.say(last)
	return nil
}
