package exechook

import (
	"maps"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// common returns the members that programs get at every event.
func (p *Plugin) common(pc *phase.Context) map[string]any {
	run := pc.Run()
	fields := map[string]any{
		"session_id": run.Thread, "transcript_path": "", "cwd": p.o.Dir, "permission_mode": p.o.PermissionMode,
	}
	if p.o.TranscriptPath != nil {
		fields["transcript_path"] = p.o.TranscriptPath(run.Thread)
	}
	if run.Parent != "" {
		fields["agent_id"], fields["agent_type"] = run.ID, pc.Agent().ID
	}
	return fields
}

func (p *Plugin) toolName(pc *phase.Context) string {
	if name := p.o.Tools[pc.Call().Name].Name; name != "" {
		return name
	}
	return pc.Call().Name
}

func (p *Plugin) toolFields(pc *phase.Context, name string, input inference.JSON) map[string]any {
	fields := p.common(pc)
	fields["tool_name"], fields["tool_input"], fields["tool_use_id"] = name, input, pc.Call().ID
	return fields
}

// resultFields are those of an event after a call, with the result as the hooks of all
// plugins left it.
func (p *Plugin) resultFields(pc *phase.Context, e Event) (map[string]any, error) {
	name, input, err := p.o.Tools[pc.Call().Name].theirs(pc.Call())
	if err != nil {
		return nil, err
	}
	fields, r := p.toolFields(pc, name, input), pc.Result()
	if e == PostToolUseFailure {
		fields["error"], fields["is_interrupt"] = r.Content, r.Outcome == inference.OutcomeCancelled
		return fields, nil
	}
	response := map[string]any{"content": r.Content, "success": true}
	if r.Details != "" {
		response["details"] = r.Details
	}
	fields["tool_response"] = response
	return fields, nil
}

// stdin returns what a program of the event reads.
func stdin(e Event, fields map[string]any) ([]byte, error) {
	all := maps.Clone(fields)
	all["hook_event_name"] = e
	text, err := inference.ToJSON(all)
	return []byte(text + "\n"), err
}
