// Package report is a plugin with one tool, write_report: the model hands in the
// text of its report, and the tool writes it to the file that the user chose. The
// model has no say in where that is.
package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Name is the plugin's name and Tool that of its tool.
const (
	Name = "report"
	Tool = "write_report"
)

// maxBytes bounds a report.
const maxBytes = 4 << 20

// New returns the plugin. It writes to the file, whose folder must exist, and
// calls it by the display name.
func New(file, display string) engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Tool(replacer{engine.NewTool(inference.ToolSpec{
			Name: Tool, Kind: "write",
			Description: "Hand in the report. It is written to " + display + ".",
			Schema: `{"type":"object","properties":{"content":{"type":"string","description":"the report in Markdown"}},` +
				`"required":["content"],"additionalProperties":false}`,
		}, func(_ context.Context, _ *phase.Context, in args) (engine.Output, error) {
			return write(file, display, in)
		})})
		return nil
	})
}

type args struct {
	Content string `json:"content"`
}

// Written is the data of a result.
type Written struct {
	Path  string `json:"path"` // as it is displayed
	Bytes int    `json:"bytes"`
	Lines int    `json:"lines"`
}

func write(file, display string, in args) (engine.Output, error) {
	switch {
	case strings.TrimSpace(in.Content) == "":
		return engine.Output{}, errors.New("report: the report is empty")
	case len(in.Content) > maxBytes:
		return engine.Output{}, fmt.Errorf("report: %d bytes are too many; the limit is %d", len(in.Content), maxBytes)
	}
	text := strings.TrimRight(in.Content, "\n") + "\n"
	if err := replace(file, text); err != nil {
		return engine.Output{}, fmt.Errorf("report: %s cannot be written: %w", display, err)
	}
	w := Written{Path: display, Bytes: len(text), Lines: strings.Count(text, "\n")}
	details, err := inference.ToJSON(w)
	return engine.Output{Content: fmt.Sprintf("%d lines in %s", w.Lines, display), Details: details}, err
}

// replace writes the file as a whole: a reader sees the old text or the new one.
func replace(file, text string) error {
	draft, err := os.CreateTemp(filepath.Dir(file), ".report-*.draft")
	if err != nil {
		return err
	}
	_, err = draft.WriteString(text)
	err = errors.Join(err, draft.Close(), os.Chmod(draft.Name(), 0o644))
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}
