package compact

import (
	"context"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// levels are how many bytes of each tool result, and of each other text, a digest has: it
// takes the first at which everything fits.
var levels = [...]struct{ result, text int }{{1200, 4000}, {300, 4000}, {60, 1200}, {60, 300}, {0, 80}}

// Digest is the summarizer that needs no model: it writes a line for each message, with
// tool results shortened first, then other texts; if that is still too long it leaves out
// lines in the middle and says how many. Notes are never left out. It ignores
// instructions, and the same input gives the same text.
func Digest(_ context.Context, in Input) (Output, error) {
	room := in.Tokens*in.BytesPerToken - len(strings.Join(in.Notes, "\n"))
	var lines []string
	for _, l := range levels {
		lines = in.lines(l.result, l.text)
		if length(lines) <= room {
			break
		}
	}
	lines = dropMiddle(lines, room)
	for _, n := range in.Notes {
		lines = append(lines, oneLine(n))
	}
	return Output{Text: strings.Join(lines, "\n")}, nil
}

func (in Input) lines(result, text int) []string {
	var out []string
	if in.Former != "" {
		out = strings.Split(in.Former, "\n")
	}
	for _, m := range in.Messages {
		var b strings.Builder
		b.WriteString(speaker(m) + ":")
		if m.Role == inference.RoleTool {
			b.WriteString(" " + shorten(oneLine(m.Result.Content), result))
		} else if m.Text != "" {
			b.WriteString(" " + shorten(oneLine(m.Text), text))
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " calls %s %s", c.Name, shorten(oneLine(string(c.Args)), text/2))
		}
		if len(m.Parts) > 0 {
			fmt.Fprintf(&b, " and %d parts", len(m.Parts))
		}
		out = append(out, b.String())
	}
	return out
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func length(lines []string) (n int) {
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// dropMiddle leaves out lines between the first and the last until the rest, with a line
// that tells how many, has room.
func dropMiddle(lines []string, room int) []string {
	if length(lines) <= room {
		return lines
	}
	note := func(n int) string { return fmt.Sprintf("... %d lines left out ...", n) }
	room -= len(note(len(lines))) + 1
	head, tail := 0, len(lines)
	for fromHead := true; head < tail; fromHead = !fromHead { // a line each, in turn
		next := tail - 1
		if fromHead {
			next = head
		}
		if room -= len(lines[next]) + 1; room < 0 {
			break
		}
		if fromHead {
			head++
		} else {
			tail--
		}
	}
	out := append([]string{}, lines[:head]...)
	out = append(out, note(tail-head))
	return append(out, lines[tail:]...)
}
