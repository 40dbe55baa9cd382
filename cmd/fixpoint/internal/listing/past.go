package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/jsondiff"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
)

// Revisions returns the commits of a thread, newest first.
func Revisions(ctx context.Context, th *engine.Thread) ([]engine.Revision, error) {
	all := []engine.Revision{}
	for r, err := range th.History(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// History writes commits, one line each.
func History(to io.Writer, all []engine.Revision) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, r := range all {
		when := "-"
		if !r.Time.IsZero() {
			when = r.Time.Local().Format("2006-01-02 15:04:05")
		}
		_, err := fmt.Fprintf(w, "%d\t%s\t%s\tstep %d\t%s\t%s\n", r.Revision, when, cmp.Or(r.Run, "-"), r.Step,
			cmp.Or(string(r.Status), "-"), cmp.Or(strings.Join(r.Keys, " "), "-"))
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// diffLines is how many changes of one key are shown, and diffWidth how much of each.
const (
	diffLines = 20
	diffWidth = 160
)

// Diff writes what differs between two commits. What is left out is found by whole, a
// hint for the reader.
func Diff(to io.Writer, all []engine.KeyDiff, whole string) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(to, format+"\n", args...)
		errs = append(errs, err)
	}
	if len(all) == 0 {
		line("nothing differs")
	}
	for _, d := range all {
		line("%s", terminal.Clean(d.Key, diffWidth))
		changes := jsondiff.Changes(d.Before, d.After)
		for i, c := range changes {
			if i == diffLines {
				line("  … %d more; %s", len(changes)-i, whole)
				break
			}
			line("  %s", terminal.Clean(c.String(), diffWidth))
		}
	}
	return errors.Join(errs...)
}
