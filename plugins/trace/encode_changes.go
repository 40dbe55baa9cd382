package trace

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// The keys that the engine writes in every step, as updates have them.
var (
	lifecycleKey  state.AnyKey = phase.RunLifecycle
	toolCallsKey  state.AnyKey = engine.ToolCalls
	transcriptKey state.AnyKey = engine.Transcript
	usageKey      state.AnyKey = engine.Usage
)

// changes writes what is different. What state.DeltaOf returns is JSON without white
// space, whatever the codecs.
func (e *encoder) changes(in *engine.Committed) {
	begin, odd := len(e.out), e.odd
	if e.usual(in) {
		return
	}
	e.out, e.odd = e.out[:begin], odd
	d, err := state.DeltaOf(in.Before, in.After)
	if err != nil {
		e.odd = true
		return
	}
	for i := range d.Entries {
		c := &d.Entries[i]
		if c.Scope != state.ScopeRun && c.Scope != state.ScopeThread || len(c.Raw) == 0 {
			e.odd = true
			return
		}
		hidden := e.change(i, c.Name, c.Scope, c.Version)
		if !hidden {
			e.raw(c.Raw)
		}
		e.maybe(`,"part":`, string(c.Part))
		if len(c.Gone) > 0 && !hidden {
			e.put(`,"gone":`)
			e.raw(c.Gone)
		}
		e.put("}")
	}
	if len(d.Entries) > 0 {
		e.put("]")
	}
}

// change begins change i, and reports whether its value is hidden.
func (e *encoder) change(i int, key string, scope state.Scope, version int) (hidden bool) {
	if i == 0 {
		e.text(`,"changes":[{"name":`, key)
	} else {
		e.text(`,{"name":`, key)
	}
	e.fixed(`,"scope":"`, scope.String())
	e.int(`,"version":`, int64(version))
	e.put(`,"raw":`)
	if hidden = e.hidesKey(key); hidden {
		e.put(hiddenValue)
	}
	return hidden
}

// raw writes JSON that is compact.
func (e *encoder) raw(j []byte) {
	begin := len(e.out)
	e.out = append(e.out, j...)
	e.value(begin)
}

// usual writes the changes of a commit that wrote nothing but what the engine writes in
// each step, and reports whether this is one. Its writes tell which keys those are, and
// the codec of these keys is known: encoding/json.
func (e *encoder) usual(in *engine.Committed) bool {
	if e.blunt || len(in.Writes) == 0 || in.After.Revision() != in.Before.Revision()+1 {
		return false
	}
	var lifecycle, transcript, usage bool
	e.touched = e.touched[:0]
	for i := range in.Writes {
		w := &in.Writes[i]
		switch key, op := w.Update.Key(), w.Update.Op(); {
		case key == toolCallsKey && (op == "put" || op == "delete"):
			if engine.ToolCalls.ChangedAt(in.After, w.Entry) != in.After.Revision() {
				return false
			}
			e.touched = append(e.touched, w.Entry)
		case key == transcriptKey && op == "append":
			transcript = true
		case key == lifecycleKey && op == "apply":
			lifecycle = true
		case key == usageKey && op == "apply":
			usage = true
		default:
			return false
		}
	}
	n, sound := 0, true
	part := func(key state.AnyKey, write func() bool) {
		hidden := e.change(n, key.Name(), key.Scope(), 0)
		begin := len(e.out)
		sound = sound && !hidden && write() && e.plain(begin)
		e.put("}")
		n++
	}
	if lifecycle {
		part(lifecycleKey, func() bool { return e.position(phase.RunLifecycle.Get(in.After)) })
	}
	if len(e.touched) > 0 {
		part(toolCallsKey, func() bool { return e.entries(in.Before, in.After) })
	}
	if transcript {
		part(transcriptKey, func() bool { return e.appended(in.Before, in.After) })
	}
	if usage {
		part(usageKey, func() bool { return e.usage(engine.Usage.Get(in.After)) })
	}
	e.put("]")
	return sound && !e.odd
}

// plain reports whether what was written last is the same where encoding/json escapes
// more than here.
func (e *encoder) plain(begin int) bool {
	out := e.out[begin:]
	return bytes.IndexByte(out, '<') < 0 && bytes.IndexByte(out, '>') < 0 && bytes.IndexByte(out, '&') < 0 && bytes.IndexByte(out, 0xe2) < 0
}

func (e *encoder) position(l phase.Lifecycle) bool {
	e.text(`{"run":`, l.Run)
	e.text(`,"status":`, string(l.Status))
	e.int(`,"step":`, int64(l.Step))
	e.some(`,"answered":`, int64(l.Answered))
	e.put(`,"ended":`)
	e.out = strconv.AppendBool(e.out, l.Ended)
	e.maybe(`,"reason":`, string(l.Reason))
	e.maybe(`,"detail":`, l.Detail)
	e.maybe(`,"continue":`, l.Continue)
	e.some(`,"continued":`, int64(l.Resumed))
	e.put("}")
	return true
}

// entries writes what became of the calls that were touched.
func (e *encoder) entries(before, after *state.Snapshot) bool {
	if engine.ToolCalls.Len(after) == 0 {
		e.put(`null,"part":"reset"`)
		return true
	}
	slices.Sort(e.touched)
	e.touched = slices.Compact(e.touched)
	e.put("[")
	n := 0
	for _, id := range e.touched {
		s, ok := engine.ToolCalls.Get(after, id)
		if !ok {
			continue
		}
		e.comma(n)
		e.put("[")
		e.entry(id)
		e.put(",")
		if !e.callState(&s) {
			return false
		}
		e.put("]")
		n++
	}
	e.put("]")
	if engine.ToolCalls.Len(before) == 0 {
		return true // it is the whole value
	}
	e.put(`,"part":"entries","gone":[`)
	n = 0
	for _, id := range e.touched {
		if engine.ToolCalls.Has(before, id) && !engine.ToolCalls.Has(after, id) {
			e.comma(n)
			e.entry(id)
			n++
		}
	}
	e.put("]")
	return true
}

// entry writes the key of an entry, which stands before what it may be the name of.
func (e *encoder) entry(id string) {
	e.text("", id)
	e.doubt = e.doubt || e.hidesMember(id)
}

// log is the transcript as a key like others.
var log = state.Key[state.List[inference.Message], []inference.Message](engine.Transcript)

// appended writes the messages that are new, or all if state.DeltaOf does.
func (e *encoder) appended(before, after *state.Snapshot) bool {
	was, held := log.Lookup(before)
	is := log.Get(after)
	extends, first := held && is.Extends(was), 0
	if extends {
		first = was.Len()
	}
	e.put("[")
	for i, m := range is.Tail(is.Len() - first) {
		e.comma(i - first)
		if !e.message(&m) {
			return false
		}
	}
	e.put("]")
	if extends {
		e.put(`,"part":"append"`)
	}
	return true
}
