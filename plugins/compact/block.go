package compact

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// alike reports whether messages have the same roles and calls, which transforms that
// change texts leave as they are.
func alike(a, b []inference.Message) bool {
	return slices.EqualFunc(a, b, func(m, n inference.Message) bool {
		return m.Role == n.Role && m.Result.CallID == n.Result.CallID &&
			slices.EqualFunc(m.ToolCalls, n.ToolCalls, func(c, d inference.ToolCall) bool { return c.ID == d.ID })
	})
}

// content identifies the messages of blocks by roles, calls and what they say. It is asked
// for in each step, so it copies and formats as little as it can.
func content(list []block) string {
	h := sha256.New()
	var buf []byte
	add := func(text string) { // with its length, so that no two lists read the same
		buf = append(binary.AppendUvarint(buf[:0], uint64(len(text))), text...)
		h.Write(buf) // which never fails
	}
	for _, b := range list {
		for _, m := range b.messages {
			add(string(m.Role))
			add(m.Result.CallID)
			add(m.Text)
			for _, c := range m.ToolCalls {
				add(c.ID)
			}
			add("")
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
