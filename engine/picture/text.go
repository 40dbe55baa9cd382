package picture

import (
	"strconv"

	"github.com/ddd26017/fixpoint/engine"
)

// Text returns the manifest for people to read: a block for each plugin, one
// line for each part, and then what could conflict.
func Text(m engine.Manifest) string {
	var o outline
	if m.Agent != "" {
		o.head("agent " + m.Agent)
	}
	for _, p := range m.Plugins {
		writePlugin(&o, p)
	}
	if len(m.Conflicts) > 0 {
		o.head("could conflict")
	}
	for _, c := range m.Conflicts {
		o.line(c.Phase.String(), "tier "+strconv.Itoa(c.Tier), c.Merge.String()+" key "+c.Key,
			list("written by ", c.Hooks...), list("read by ", c.Readers...))
	}
	if len(m.Undeclared) > 0 {
		o.head("declare no writes, so could conflict with any hook of their phase and tier")
	}
	o.lines("", m.Undeclared)
	return o.String()
}

func writePlugin(o *outline, p engine.PluginManifest) {
	o.head("plugin " + p.Name + when(!p.Active, " (inactive)"))
	if p.Source != "" {
		o.line("from " + p.Source)
	}
	for _, k := range p.Keys {
		o.line("key "+k.Name, k.Scope.String(), k.Merge.String())
	}
	o.lines("profile key ", p.ProfileKeys)
	o.lines("section ", p.Sections)
	for _, h := range p.Hooks {
		o.line("hook "+h.ID, "tier "+strconv.Itoa(h.Tier), list("timeout ", h.Timeout),
			"on error "+h.OnError.String(), list("reads ", h.Reads...), list("writes ", h.Writes...), when(h.Silent, "writes nothing"))
	}
	for _, g := range p.Gates {
		o.line("gate "+g.ID, list("on action ", g.Action), when(g.Policy, "policy"), list("timeout ", g.Timeout),
			when(g.FailOpen, "fails open"))
	}
	for _, a := range p.Actions {
		o.line("action "+a.Name, "at "+a.Phase.String(), when(a.ReplaySafe, "replay-safe"))
	}
	o.lines("effect ", p.Effects)
	if p.Transforms > 0 {
		o.line("transforms " + strconv.Itoa(p.Transforms))
	}
	for _, t := range p.Tools {
		o.line("tool "+t.Name, list("kind ", t.Kind), t.Description)
	}
	for _, x := range p.Extras {
		o.line(x.Kind+" "+x.Name, x.Description)
	}
}
