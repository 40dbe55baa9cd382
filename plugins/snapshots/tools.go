package snapshots

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// The tools' names. The first two have the kind "read", the last one "write".
const (
	ListTool    = "list_snapshots"
	DiffTool    = "diff_snapshot"
	RestoreTool = "restore_snapshot"
)

// listed is how many lines a tool returns at most.
const listed = 200

const (
	noSchema   inference.JSON = `{"type":"object","properties":{},"additionalProperties":false}`
	diffSchema inference.JSON = `{"type":"object","properties":{` +
		`"id":{"type":"string","description":"the snapshot to compare"},` +
		`"with":{"type":"string","description":"another snapshot; the present files without it"}},"required":["id"],"additionalProperties":false}`
	restoreSchema inference.JSON = `{"type":"object","properties":{"id":{"type":"string","description":"the snapshot to go back to"}},` +
		`"required":["id"],"additionalProperties":false}`
)

type (
	nothing  struct{}
	diffArgs struct {
		ID   string `json:"id"`
		With string `json:"with"`
	}
	restoreArgs struct {
		ID string `json:"id"`
	}
)

// reader is a tool that changes nothing, so that it may run twice.
type reader struct{ engine.Tool }

// Recovery says that a call that was under way when its process ended runs again.
func (reader) Recovery() engine.Recovery { return engine.Rerun }

// Validate checks the arguments as the tool itself does.
func (t reader) Validate(args inference.JSON) error {
	if v, ok := t.Tool.(engine.Validator); ok {
		return v.Validate(args)
	}
	return nil
}

func (p *Plugin) tools() []engine.Tool {
	return []engine.Tool{
		reader{engine.NewTool(inference.ToolSpec{Name: ListTool, Kind: "read", Schema: noSchema,
			Description: "List the snapshots of the workspace, the newest first."}, listTool)},
		reader{engine.NewTool(inference.ToolSpec{Name: DiffTool, Kind: "read", Schema: diffSchema,
			Description: "Tell which files differ from a snapshot of the workspace to now, or to another snapshot."}, p.diffTool)},
		engine.NewTool(inference.ToolSpec{Name: RestoreTool, Kind: "write", Schema: restoreSchema,
			Description: "Bring all files of the workspace back to a snapshot. Restoring the snapshot that is named then undoes it."}, p.restoreTool),
	}
}

func listTool(_ context.Context, pc *phase.Context, _ nothing) (engine.Output, error) {
	all := List(pc.Snapshot())
	var b strings.Builder
	for i := len(all) - 1; i >= 0 && i >= len(all)-listed; i-- {
		s := all[i]
		fmt.Fprintf(&b, "%s %s %s %d files, %d bytes", s.ID, s.Time.Format(time.RFC3339), s.Why, s.Files, s.Bytes)
		if s.Tool != "" {
			fmt.Fprintf(&b, ", step %d, before %s", s.Step, s.Tool)
		}
		b.WriteByte('\n')
	}
	if len(all) == 0 {
		b.WriteString("There is no snapshot yet.\n")
	}
	return engine.Text(strings.TrimSuffix(b.String(), "\n")), nil
}

func (p *Plugin) diffTool(ctx context.Context, pc *phase.Context, in diffArgs) (engine.Output, error) {
	changes, err := p.Diff(ctx, pc.Snapshot(), in.ID, in.With)
	if err != nil {
		return engine.Output{}, err
	}
	return engine.Text(lines(changes)), nil
}

func (p *Plugin) restoreTool(ctx context.Context, pc *phase.Context, in restoreArgs) (engine.Output, error) {
	var out engine.Output
	done, err := p.restoreIn(ctx, pc, in.ID, &out.Command)
	if err != nil && done.Before == "" {
		return engine.Output{}, err
	}
	out.Content = fmt.Sprintf("The workspace is as in snapshot %s. Snapshot %s is what it was before.\n%s", done.To, done.Before, lines(done.Changes))
	if len(done.Kept) > 0 {
		out.Content += "\nNot restored, since something that snapshots do not cover is in the way: " + strings.Join(done.Kept[:min(len(done.Kept), listed)], ", ")
	}
	if err != nil {
		// The command counts all the same: with it the thread knows how to go back.
		out.IsError = true
		out.Content = fmt.Sprintf("error: not all was restored; snapshot %s is what was before: %v", done.Before, err)
	}
	return out, nil
}

// lines writes changes one a line, so many that they are bounded.
func lines(changes []Change) string {
	if len(changes) == 0 {
		return "Nothing differs."
	}
	var b strings.Builder
	for i, c := range changes {
		if i == listed {
			fmt.Fprintf(&b, "and %d more\n", len(changes)-listed)
			break
		}
		fmt.Fprintf(&b, "%s %s (%d -> %d bytes)\n", c.Kind, strings.ToValidUTF8(c.Path, "\uFFFD"), c.Before, c.After)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
