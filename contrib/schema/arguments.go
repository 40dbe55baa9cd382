package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

const (
	shown       = 8       // faults that a model is told at once
	maxBytes    = 1 << 20 // of arguments
	maxValues   = 100_000 // in arguments: each may have a fault, and thousands take seconds to tell
	maxExponent = 400     // of a number: no Go type that it could be read into goes that far
	maxDigits   = 4000    // of a number: a check with a million of them takes seconds
)

// ArgumentError says where the arguments of a call do not fit the schema of the tool.
// Of what the arguments hold it repeats names and numbers, but no texts.
type ArgumentError struct {
	Tool   string
	Faults []jsonschema.Fault // at least one, in the order of their pointers
}

// Error tells the first faults in one line of bounded length.
func (e *ArgumentError) Error() string {
	var texts []string
	for _, f := range e.Faults[:min(shown, len(e.Faults))] {
		text := f.String()
		if f.Pointer == "" {
			text = "it " + text
		}
		texts = append(texts, text)
	}
	text := fmt.Sprintf("arguments of %s: %s", e.Tool, strings.Join(texts, "; "))
	if more := len(e.Faults) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// decode reads the arguments of a tool into the value that in points to, if they fit the
// schema; otherwise in may be half filled.
func (d *document) decode(tool string, args inference.JSON, in any) error {
	args = cmp.Or(args, "{}")
	switch {
	case len(args) > maxBytes:
		return fmt.Errorf("arguments of %s: they have %d bytes; the limit is %d", tool, len(args), maxBytes)
	case !utf8.ValidString(string(args)) || !args.Valid():
		return fmt.Errorf("arguments of %s: they are not JSON in UTF-8", tool)
	}
	tree := jsonpos.Parse([]byte(args))
	left := maxValues
	if f := beyond(tree, &left); f != nil {
		return &ArgumentError{tool, []jsonschema.Fault{*f}}
	}
	err := d.checker.CheckSchema(d.checked, args)
	var invalid *jsonschema.ValueError
	switch {
	case errors.As(err, &invalid):
		return &ArgumentError{tool, found(invalid.Faults, args)}
	case err != nil:
		return fmt.Errorf("arguments of %s: %w", tool, err)
	}
	if err := jsonpos.Exact(string(args), d.of); err != nil { // gates read the arguments too, in their own ways
		return fmt.Errorf("arguments of %s: %s", tool, clip(err.Error()))
	}
	if d.fill(tree) {
		args = inference.JSON(tree.JSON())
	}
	if d.lossy {
		if faults := d.losses(tree); len(faults) > 0 {
			return &ArgumentError{tool, faults}
		}
	}
	err = args.Decode(in)
	if err == nil {
		return nil
	}
	if faults := d.unreadable(tree); len(faults) > 0 {
		return &ArgumentError{tool, faults}
	}
	return fmt.Errorf("arguments of %s: %s", tool, clip(err.Error()))
}

// beyond returns what is too much to be calculated with: a few numbers, written in ten
// bytes each, would keep a check busy for seconds.
func beyond(n *jsonpos.Node, left *int) *jsonschema.Fault {
	if *left--; *left < 0 {
		return &jsonschema.Fault{Reason: fmt.Sprintf("is the first of more than %d values", maxValues)}
	}
	if n.Kind == jsonpos.Number {
		if len(n.Text) > maxDigits {
			return &jsonschema.Fault{Reason: fmt.Sprintf("has more than %d digits, found %s", maxDigits, clip(n.Text))}
		}
		if at := strings.IndexAny(n.Text, "eE"); at >= 0 {
			if e, err := strconv.Atoi(n.Text[at+1:]); err != nil || max(e, -e) > maxExponent {
				return &jsonschema.Fault{Reason: fmt.Sprintf("has an exponent beyond %d, found %s", maxExponent, clip(n.Text))}
			}
		}
		return nil
	}
	for i, item := range n.Items {
		if f := beyond(item, left); f != nil {
			f.Pointer = fmt.Sprintf("/%d%s", i, f.Pointer)
			return f
		}
	}
	for _, m := range n.Members {
		if f := beyond(m.Value, left); f != nil {
			f.Pointer = "/" + escaped(m.Name) + f.Pointer
			return f
		}
	}
	return nil
}

// escaped writes a name as a step of a JSON Pointer.
func escaped(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// found adds to faults what stands in their places.
func found(faults []jsonschema.Fault, args inference.JSON) []jsonschema.Fault {
	var whole any
	if decodeNumbers(args, &whole) != nil {
		return faults
	}
	for i, f := range faults {
		if f.Reason == "is not known" {
			continue
		}
		if text := told(at(whole, f.Pointer), f.Reason); text != "" {
			faults[i].Reason += ", found " + text
		}
	}
	return faults
}

// absent is what at returns when there is nothing.
type absent struct{}

// at returns the value that a JSON Pointer leads to.
func at(v any, pointer string) any {
	if pointer == "" {
		return v
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch inner := v.(type) {
		case map[string]any:
			next, ok := inner[step]
			if !ok {
				return absent{}
			}
			v = next
		case []any:
			i, err := json.Number(step).Int64()
			if err != nil || i < 0 || i >= int64(len(inner)) {
				return absent{}
			}
			v = inner[i]
		default:
			return absent{}
		}
	}
	return v
}

// told describes a value beyond what the reason says already.
func told(v any, reason string) string {
	switch v := v.(type) {
	case json.Number:
		return clip(v.String())
	case bool:
		return fmt.Sprint(v)
	case nil:
		if !strings.HasPrefix(reason, "is null") {
			return "null"
		}
	case string:
		if !strings.HasPrefix(reason, "is a string") {
			return counted(utf8.RuneCountInString(v), "a string of %d character")
		}
	case []any:
		if !strings.HasPrefix(reason, "is an array") {
			return counted(len(v), "%d item")
		}
	case map[string]any:
		if !strings.HasPrefix(reason, "is an object") {
			return counted(len(v), "%d member")
		}
	}
	return ""
}

func counted(n int, format string) string {
	if n != 1 {
		format += "s"
	}
	return fmt.Sprintf(format, n)
}

// clip makes a short line of a text that may have parts of the arguments in it.
func clip(text string) string {
	const longest = 160
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if r := []rune(text); len(r) > longest {
		return string(r[:longest-1]) + "…"
	}
	return text
}
