package confirm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/phase"
)

// longFile is the size up to which the files of a FileDiff are compared.
const longFile = 1 << 20

// FileDiff returns a Previewer for a tool that replaces a file as a whole. Its arguments
// pathArg and contentArg name the file, relative to files, and its new text. The diff is
// against what the file holds when the question is asked.
func FileDiff(files fs.FS, pathArg, contentArg string) Previewer {
	return PreviewerFunc(func(_ context.Context, pc *phase.Context) (string, error) {
		var args map[string]any
		if err := pc.Call().Args.Decode(&args); err != nil {
			return "", err
		}
		name, named := args[pathArg].(string)
		text, given := args[contentArg].(string)
		switch {
		case ambiguous(pc.Call().Args):
			return "", errors.New("confirm: the arguments have more than one member of a name; which of them counts is not known")
		case strings.TrimSpace(name) != name:
			return "", fmt.Errorf("confirm: the path %q has space around it; which file the tool takes is not known", name)
		case !named || !given:
			return "", fmt.Errorf("confirm: there is no text in %s or %s to compare", pathArg, contentArg)
		}
		name = path.Clean(name)
		old, err := readText(files, name)
		from := "a/" + name
		if errors.Is(err, fs.ErrNotExist) {
			old, from, err = "", "/dev/null", nil
		}
		if err != nil {
			return "", err
		}
		if len(text) > longFile {
			return "", fmt.Errorf("confirm: the new text of %s is too long to compare", name)
		}
		return Diff(from, "b/"+name, old, text), nil
	})
}

func readText(files fs.FS, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("confirm: %s is not below the folder that is looked at", name)
	}
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, longFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if len(raw) > longFile || !utf8.Valid(raw) {
		return "", fmt.Errorf("confirm: %s is too long to compare, or no text", name)
	}
	return string(raw), nil
}

const (
	contextLines = 3   // around a change
	mostEdits    = 500 // lines; what differs more is shown as replaced
)

// line is a line of a diff: ' ' kept, '-' removed or '+' added.
type line struct {
	op   byte
	text string
}

// Diff returns the unified diff between two texts, "" when they are equal.
func Diff(from, to, old, text string) string {
	if old == text {
		return ""
	}
	lines := compare(split(old), split(text))
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	a, b := 1, 1 // the number of the next line in each text
	for i := 0; i < len(lines); {
		if lines[i].op == ' ' && !changesWithin(lines[i:], contextLines) {
			i, a, b = i+1, a+1, b+1
			continue
		}
		end := i
		for end < len(lines) && (lines[end].op != ' ' || changesWithin(lines[end:], 2*contextLines)) {
			end++
		}
		end = min(end+contextLines, len(lines))
		var removed, added int
		var hunk strings.Builder
		for _, l := range lines[i:end] {
			if l.op != '+' {
				removed++
			}
			if l.op != '-' {
				added++
			}
			hunk.WriteByte(l.op)
			hunk.WriteString(l.text)
			if !strings.HasSuffix(l.text, "\n") {
				hunk.WriteString("\n\\ No newline at end of file\n")
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n%s", span(a, removed), span(b, added), hunk.String())
		i, a, b = end, a+removed, b+added
	}
	return out.String()
}

// changesWithin reports whether one of the n lines after the first is not kept.
func changesWithin(lines []line, n int) bool {
	for _, l := range lines[:min(n+1, len(lines))] {
		if l.op != ' ' {
			return true
		}
	}
	return false
}

// span is where a hunk is in a text; an empty one is after the line before.
func span(start, n int) string {
	if n == 0 {
		start--
	}
	return fmt.Sprintf("%d,%d", start, n)
}

func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// compare finds the shortest way from a to b, as E. W. Myers has it.
func compare(a, b []string) (lines []line) {
	var tail []line
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		lines = append(lines, line{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, line{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	lines = append(lines, shortest(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		lines = append(lines, tail[i])
	}
	return lines
}

func shortest(a, b []string) []line {
	// reach[d] holds how far d edits lead on each diagonal k = x-y, at k+d.
	var reach [][]int
	for d := 0; d <= min(len(a)+len(b), mostEdits); d++ {
		row := make([]int, 2*d+1)
		reach = append(reach, row)
		for k := -d; k <= d; k += 2 {
			x := step(reach, d, k)
			for y := x - k; x < len(a) && y < len(b) && y >= 0 && a[x] == b[y]; y++ {
				x++
			}
			row[k+d] = x
			if x >= len(a) && x-k >= len(b) {
				return back(reach, a, b)
			}
		}
	}
	var lines []line
	for _, text := range a {
		lines = append(lines, line{'-', text})
	}
	for _, text := range b {
		lines = append(lines, line{'+', text})
	}
	return lines
}

// step returns where on diagonal k the dth edit leads, before equal lines.
func step(reach [][]int, d, k int) int {
	if d == 0 {
		return 0
	}
	before := func(k int) int { return reach[d-1][k+d-1] }
	if k == -d || k != d && before(k-1) < before(k+1) {
		return before(k + 1) // a line of b is added
	}
	return before(k-1) + 1 // a line of a is removed
}

// back follows the way from the end to the start.
func back(reach [][]int, a, b []string) []line {
	var reversed []line
	x, y := len(a), len(b)
	for d := len(reach) - 1; d >= 0; d-- {
		k := x - y
		start := step(reach, d, k)
		for ; x > start; x, y = x-1, y-1 {
			reversed = append(reversed, line{' ', a[x-1]})
		}
		switch {
		case d == 0:
		case k == -d || k != d && reach[d-1][k-1+d-1] < reach[d-1][k+1+d-1]:
			y--
			reversed = append(reversed, line{'+', b[y]})
		default:
			x--
			reversed = append(reversed, line{'-', a[x]})
		}
	}
	lines := make([]line, 0, len(reversed))
	for i := len(reversed) - 1; i >= 0; i-- {
		lines = append(lines, reversed[i])
	}
	return lines
}
