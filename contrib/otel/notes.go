package otel

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/ddd26017/fixpoint/engine"
)

// mostKeys is how many keys of a commit are named.
const mostKeys = 16

// notes takes in the events that take no time.
func (o *Observer) notes(c *course, h engine.Header, e engine.Event) {
	switch e := e.(type) {
	case engine.Conflict:
		attrs := o.conflict(e)
		c.here("").note("conflict", h.Time, append(attrs, attribute.String("fixpoint.conflict.fate", o.clean(e.Fate)))...)
		if e.Fate == "retried" && len(c.lost[e.Hook]) < mostLost {
			c.lost[e.Hook] = append(c.lost[e.Hook], e)
		}
		o.meters.conflict(e.Key, e.Fate)
	case engine.Committed:
		at := c.here(e.Call)
		if e.Round > 0 && c.phase != nil {
			at = o.round(c, e.Round)
		}
		at.note("committed", h.Time, o.committed(h, e)...)
	case engine.GateResolved:
		o.resolved(c, h, e)
	case engine.GateClashed:
		c.here(e.Call).note("gates_clashed", h.Time, attribute.String("fixpoint.gate.decision", e.Clash.Kind.String()),
			attribute.String("fixpoint.conflict.winner", o.clean(e.Clash.Winner)), attribute.String("fixpoint.conflict.loser", o.clean(e.Clash.Loser)))
	case engine.CallEdited:
		attrs := []attribute.KeyValue{attribute.String("fixpoint.plugin", o.clean(e.Plugin))}
		attrs = append(attrs, o.quote("fixpoint.edit.before", string(e.Before))...)
		attrs = append(attrs, o.quote("fixpoint.edit.after", string(e.After))...)
		c.here(e.Call).note("call_edited", h.Time, attrs...)
	case engine.OverrideApplied:
		fields := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			fields[i] = o.clean(f.Field + " by " + f.Plugin)
		}
		c.here("").note("override_applied", h.Time, attribute.StringSlice("fixpoint.override.fields", fields))
	case engine.RequestTransformed:
		c.here("").note("request_transformed", h.Time, attribute.String("fixpoint.plugin", o.clean(e.Plugin)),
			attribute.Bool("fixpoint.transform.system", e.System), attribute.Bool("fixpoint.transform.messages", e.Messages),
			attribute.Bool("fixpoint.transform.tools", e.Tools), attribute.Bool("fixpoint.transform.params", e.Params))
	case engine.Continued:
		c.here("").note("continued", h.Time, append(o.stated("fixpoint.continue.reason", e.Reason), attribute.Int("fixpoint.continue.count", e.Count))...)
	case engine.HandedOff:
		c.run.know(attribute.String("fixpoint.agent.last", o.clean(e.To)))
		c.here("").note("handed_off", h.Time, attribute.String("fixpoint.handoff.from", o.clean(e.From)), attribute.String("fixpoint.handoff.to", o.clean(e.To)))
	case engine.Warning:
		c.here("").note("warning", h.Time, o.stated("fixpoint.plugin", e.Plugin, "fixpoint.warning", e.Message)...)
	}
}

func (o *Observer) resolved(c *course, h engine.Header, e engine.GateResolved) {
	attrs := []attribute.KeyValue{attribute.String("fixpoint.gate.decision", e.Decision.String()), attribute.String("fixpoint.gate.cause", o.clean(string(e.Cause)))}
	attrs = append(attrs, o.stated("fixpoint.gate.plugin", e.Plugin, "fixpoint.gate.reason", e.Reason)...)
	c.call(e.Call, e.Tool, h.Time).know(attrs...)
	if c.hooks > 0 || e.Plugin != "" { // else there was nobody to ask
		c.here(e.Call).note("gates_resolved", h.Time, append(attrs, attribute.Int("fixpoint.gate.pass", e.Pass))...)
	}
	o.meters.decision(e.Decision.String(), string(e.Cause), e.Plugin)
}

func (w words) conflict(e engine.Conflict) []attribute.KeyValue {
	return w.stated("fixpoint.conflict.key", e.Key, "fixpoint.conflict.entry", e.Entry,
		"fixpoint.conflict.winner", e.Winner, "fixpoint.conflict.loser", e.Loser)
}

func (w words) committed(h engine.Header, e engine.Committed) []attribute.KeyValue {
	var keys []string
	for _, write := range e.Writes {
		if key := w.clean(write.Key); len(keys) < mostKeys && (len(keys) == 0 || keys[len(keys)-1] != key) {
			keys = append(keys, key)
		}
	}
	attrs := []attribute.KeyValue{attribute.Int64("fixpoint.revision", int64(h.Revision)), attribute.Int("fixpoint.writes", len(e.Writes)),
		attribute.StringSlice("fixpoint.keys", keys)}
	if e.Retry {
		attrs = append(attrs, attribute.Bool("fixpoint.retry", true))
	}
	return attrs
}
