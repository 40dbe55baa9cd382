package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// block is what is never torn apart: a message, or one that asks for tools with the
// results behind it.
type block struct {
	at       int // of its first message in the transcript
	indexes  []int
	messages []inference.Message
}

// blocks divides a transcript. Their messages, one block after the other, are those that
// the engine puts into a request: results stand right behind their calls, lost ones are
// made up, and stray ones are left out.
func blocks(history state.List[inference.Message]) []block {
	var out []block
	open := -1 // the block that results belong to
	for i, m := range history.All() {
		if m.Role == inference.RoleTool {
			if open >= 0 {
				out[open].answer(i, m)
			}
			continue
		}
		b := block{at: i, indexes: []int{i}, messages: []inference.Message{m}}
		if m.Role == inference.RoleAssistant {
			open = len(out)
			for _, c := range m.ToolCalls {
				b.indexes = append(b.indexes, -1)
				b.messages = append(b.messages, inference.ToolMessage(inference.ToolResult{CallID: c.ID, Name: c.Name,
					Content: "interrupted: the result was lost", IsError: true, Outcome: inference.OutcomeCancelled}))
			}
		}
		out = append(out, b)
	}
	return out
}

// answer puts the first result of a call in its place.
func (b *block) answer(index int, result inference.Message) {
	for j, c := range b.messages[0].ToolCalls {
		if c.ID == result.Result.CallID && b.indexes[j+1] < 0 {
			b.indexes[j+1], b.messages[j+1] = index, result
			return
		}
	}
}

func (b block) role() inference.Role { return b.messages[0].Role }

// joined returns the messages of blocks in order.
func joined(list []block) []inference.Message {
	var out []inference.Message
	for _, b := range list {
		out = append(out, b.messages...)
	}
	return out
}

// before returns the blocks that begin before a place in the transcript.
func before(list []block, at int) []block {
	n, _ := slices.BinarySearchFunc(list, at, func(b block, at int) int { return b.at - at })
	return list[:n]
}

// shape identifies messages by roles and calls, which transforms that change texts leave
// as they are.
func shape(messages []inference.Message) string {
	return fingerprint(messages, func(inference.Message) string { return "" })
}

// content identifies messages by what they say as well.
func content(messages []inference.Message) string {
	return fingerprint(messages, func(m inference.Message) string { return m.Text })
}

func fingerprint(messages []inference.Message, text func(inference.Message) string) string {
	h := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(h, "%q %q %q", m.Role, m.Result.CallID, text(m))
		for _, c := range m.ToolCalls {
			fmt.Fprintf(h, " %q", c.ID)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
