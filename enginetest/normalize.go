package enginetest

import (
	"bytes"
	"iter"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
)

// Normalize returns the event as engine.MarshalEvent writes it, without what
// differs from run to run of the same thing: its times and its durations.
func Normalize(e engine.Event) ([]byte, error) {
	line, err := engine.MarshalEvent(e)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(line))
	out = append(out, '{')
	for member := range members(line) {
		if slices.ContainsFunc(timing, func(name string) bool { return bytes.HasPrefix(member, []byte(name)) }) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, member...)
	}
	return append(out, '}'), nil
}

// timing begins the members that are left out. Retries in a list are times and no more,
// and counted by "calls".
var timing = []string{`"time":`, `"began":`, `"duration_ns":`, `"retries":[`}

// members yields the members of the JSON object in line, which is compact and
// known to be well formed, so that finding its commas is enough.
func members(line []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		depth, quoted, start := 0, false, 1
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
			}
			if end := depth == 0; end || depth == 1 && !quoted && line[i] == ',' {
				if !yield(line[start:i]) || end {
					return
				}
				start = i + 1
			}
		}
	}
}

// Lines normalises events, one line each. An event that cannot be written becomes
// a line of its type and the error.
func Lines(events []engine.Event) []string {
	lines := make([]string, len(events))
	for i, e := range events {
		line, err := Normalize(e)
		if err != nil {
			line = []byte(e.Type() + ": " + err.Error())
		}
		lines[i] = string(line)
	}
	return lines
}
