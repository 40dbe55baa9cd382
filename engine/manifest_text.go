package engine

import (
	"strconv"

	"github.com/ddd26017/fixpoint/internal/drawing"
)

// Text returns the manifest for people to read: a block for each plugin, one
// line for each part, and then what could conflict.
func (m Manifest) Text() string {
	var o drawing.Outline
	if m.Agent != "" {
		o.Head("agent " + m.Agent)
	}
	for _, p := range m.Plugins {
		p.text(&o)
	}
	if len(m.Conflicts) > 0 {
		o.Head("could conflict")
	}
	for _, c := range m.Conflicts {
		o.Line(c.Phase.String(), "tier "+strconv.Itoa(c.Tier), c.Merge.String()+" key "+c.Key,
			drawing.List("written by ", c.Hooks...), drawing.List("read by ", c.Readers...))
	}
	if len(m.Undeclared) > 0 {
		o.Head("declare no writes, so could conflict with any hook of their phase and tier")
	}
	o.Lines("", m.Undeclared)
	return o.String()
}

func (p PluginManifest) text(o *drawing.Outline) {
	o.Head("plugin " + p.Name + drawing.When(!p.Active, " (inactive)"))
	if p.Source != "" {
		o.Line("from " + p.Source)
	}
	for _, k := range p.Keys {
		o.Line("key "+k.Name, k.Scope.String(), k.Merge.String())
	}
	o.Lines("profile key ", p.ProfileKeys)
	o.Lines("section ", p.Sections)
	for _, h := range p.Hooks {
		o.Line("hook "+h.ID, "tier "+strconv.Itoa(h.Tier), drawing.List("timeout ", h.Timeout),
			"on error "+h.OnError.String(), drawing.List("reads ", h.Reads...), drawing.List("writes ", h.Writes...), drawing.When(h.Silent, "writes nothing"))
	}
	for _, g := range p.Gates {
		o.Line("gate "+g.ID, drawing.List("on action ", g.Action), drawing.When(g.Policy, "policy"), drawing.List("timeout ", g.Timeout),
			drawing.When(g.FailOpen, "fails open"))
	}
	for _, a := range p.Actions {
		o.Line("action "+a.Name, "at "+a.Phase.String(), drawing.When(a.ReplaySafe, "replay-safe"))
	}
	o.Lines("effect ", p.Effects)
	if p.Transforms > 0 {
		o.Line("transforms " + strconv.Itoa(p.Transforms))
	}
	for _, t := range p.Tools {
		o.Line("tool "+t.Name, drawing.List("kind ", t.Kind), t.Description)
	}
	for _, x := range p.Extras {
		o.Line(x.Kind+" "+x.Name, x.Description)
	}
}
