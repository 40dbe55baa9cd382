package listing

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/phase"
)

// Threads writes how threads stand, one line each, with a note on some.
func Threads(to io.Writer, all []kept.Thread, notes map[string]string) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, t := range all {
		line := fmt.Sprintf("%s\t%s\tstep %d\t%s\t%s", t.ID, Status(t), t.Lifecycle.Step, agent(t), strings.Join(slices.DeleteFunc([]string{remark(t), notes[t.ID]}, func(s string) bool { return s == "" }), "; "))
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

func agent(t kept.Thread) string {
	if t.Kept() && !t.Served() {
		return t.Record.Agent
	}
	return cmp.Or(t.Agent, "-")
}

// Status is where the newest run of a thread stands.
func Status(t kept.Thread) phase.RunStatus {
	if t.Interrupted() {
		return phase.Running
	}
	return cmp.Or(t.Lifecycle.Status, phase.Created)
}

// remark says what to know of a thread besides its status.
func remark(t kept.Thread) string {
	switch {
	case len(t.Open) == 1:
		return "1 open ticket"
	case len(t.Open) > 0:
		return fmt.Sprintf("%d open tickets", len(t.Open))
	case t.Interrupted() && t.Forked:
		return "forked; resume goes on with it"
	case t.Interrupted():
		return "its process ended; resume goes on with it"
	default:
		return string(t.Lifecycle.Reason)
	}
}
