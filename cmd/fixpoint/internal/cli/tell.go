package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/audit"
	"github.com/ddd26017/fixpoint/plugins/autocommit"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/cost"
	"github.com/ddd26017/fixpoint/plugins/screening"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// note has the view show a line once it shows the effect.
func (s setup) note(effect, label, text string) {
	if s.view != nil {
		s.view.Note(effect, label, text)
	}
}

func (s setup) tellCost(_ context.Context, r cost.Report) error {
	total := fmt.Sprintf("the run has cost %s %s", r.RunTotal.Amount, r.Currency)
	text := ""
	switch r.Event {
	case cost.EventPassed:
		text = fmt.Sprintf("%s and passed %s", total, r.At)
	case cost.EventLimit:
		text = fmt.Sprintf("%s; the limit of %s is reached", total, r.At)
	case cost.EventUnknown:
		text = fmt.Sprintf("the model %s has no price, so its tokens are not counted", r.Model)
	case cost.EventColdCall:
		text = fmt.Sprintf("the cache of %s was lost", r.Model)
	default: // the summary has it
		return nil
	}
	s.note(cost.Reported.Name(), "cost", text)
	return nil
}

func (s setup) tellFinding(_ context.Context, f screening.Finding) error {
	for _, h := range f.Hits {
		s.note(screening.Found.Name(), "screening", fmt.Sprintf("%s in the %s of %s (%s): “%s”", h.Rule, h.Field, f.Tool, f.Mode, h.Excerpt))
	}
	return nil
}

func (s setup) tellCommit(_ context.Context, r autocommit.Result) error {
	s.note(autocommit.Done.Name(), "commit", commitText(r))
	return nil
}

func (s setup) tellHook(_ context.Context, n exechook.Notice) {
	s.note(exechook.Told.Name(), "hook", fmt.Sprintf("%s, %s of %s: %s", n.Event, n.Kind, n.Command, n.Text))
}

// commitText says what became of the changes of a run.
func commitText(r autocommit.Result) string {
	text := string(r.Status)
	if r.Commit != "" {
		text += " " + r.Commit[:min(len(r.Commit), 10)]
	}
	if branch := strings.TrimPrefix(r.Branch, "refs/heads/"); branch != "" {
		text += " on " + branch
	}
	if len(r.Paths) > 0 {
		text += ": " + strings.Join(r.Paths[:min(len(r.Paths), 5)], ", ")
		if more := r.Files - 5; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if r.Why != "" {
		text += "; " + r.Why
	}
	return text
}

// told tells what the plugins of an agent that is through with a run have to say.
func told(snap *state.Snapshot, w workspace, spec engine.AgentSpec, named map[string]bool) (out []terminal.Fact) {
	add := func(plugin, label, text string) {
		if text != "" && named[plugin] && spec.Active(plugin) {
			out = append(out, terminal.Fact{Label: label, Text: text})
		}
	}
	if settings, err := audit.Section.From(spec); err == nil && spec.Active(audit.Name) {
		out = append(out, terminal.Fact{Label: "audit", Text: filepath.Join(w.dir, filepath.FromSlash(cmp.Or(settings.Path, audit.DefaultPath)))})
	}
	if settings, err := cost.Section.From(spec); err == nil {
		add(cost.Name, "cost", costText(cost.Run.Get(snap), settings.Currency))
	}
	found := 0
	for range screening.Findings.All(snap) {
		found++
	}
	if found > 0 {
		add(screening.Name, "screening", fmt.Sprintf("results with findings: %d", found))
	}
	if n := len(snapshots.List(snap)); n > 0 {
		add(snapshots.Name, "snapshots", fmt.Sprintf("%d, the last one is %s", n, snapshots.List(snap)[n-1].ID))
	}
	add(checks.Name, "checks", checksText(checks.Last.Get(snap)))
	if r := autocommit.Last.Get(snap); r.Status != "" {
		add(autocommit.Name, "commit", commitText(r))
	}
	add(trace.Name, "trace", drawingFile(w))
	return out
}

func costText(t cost.Total, currency string) string {
	if t.Calls == 0 {
		return ""
	}
	text := fmt.Sprintf("%s %s, model calls: %d", t.Amount, currency, t.Calls)
	if n := t.Unpriced.Total(); n > 0 {
		text += fmt.Sprintf("; tokens without a price: %d", n)
	}
	return text
}

func checksText(v checks.Verdict) string {
	switch {
	case v.Passed():
		return "passed"
	case len(v.Failures) == 0:
		return ""
	}
	var names []string
	for _, f := range v.Failures {
		names = append(names, f.Command+" ("+f.Status+")")
	}
	return "failed: " + strings.Join(names, ", ")
}
