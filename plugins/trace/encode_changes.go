package trace

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

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

// usual is a commit that wrote nothing but what the engine writes in each step. Its writes
// tell which keys those are, the state after it what they have now, and the codec of these
// keys is known: encoding/json. So a value is encoded once, for the write and the change.
type usual struct {
	is                           bool
	lifecycle, transcript, usage bool
	calls                        []valueOf // what was put and deleted
	messages                     valueOf   // what was appended
	appends                      int       // writes that did
}

// mostCalls is how many calls of a usual commit are touched.
const mostCalls = 32

// valueOf is where the value of an entry was written.
type valueOf struct {
	entry      string
	put        bool // and not only deleted
	begin, end int  // in the line; end is 0 if it was not written
}

// call returns what is known of a call, which may be nothing yet.
func (u *usual) call(id string) *valueOf {
	for i := range u.calls {
		if u.calls[i].entry == id {
			return &u.calls[i]
		}
	}
	u.calls = append(u.calls, valueOf{entry: id})
	return &u.calls[len(u.calls)-1]
}

// survey finds out whether a commit is usual.
func (e *encoder) survey(in *engine.Committed) {
	e.usual = usual{calls: e.usual.calls[:0]}
	if e.blunt || len(in.Writes) == 0 || in.Before == nil || in.After.Revision() != in.Before.Revision()+1 {
		return
	}
	for i := range in.Writes {
		w := &in.Writes[i]
		switch key, op := w.Update.Key(), w.Update.Op(); {
		case e.hidesWrite(w):
			return
		case key == toolCallsKey && (op == "put" || op == "delete"):
			v := e.usual.call(w.Entry)
			if v.put || len(e.usual.calls) > mostCalls || engine.ToolCalls.ChangedAt(in.After, w.Entry) != in.After.Revision() {
				return // more than one value, or more calls than can be looked through each time
			}
			v.put = op == "put"
		case key == transcriptKey && op == "append":
			e.usual.transcript = true
			e.usual.appends++
		case key == lifecycleKey && op == "apply":
			e.usual.lifecycle = true
		case key == usageKey && op == "apply":
			e.usual.usage = true
		default:
			return
		}
	}
	e.usual.is = true
}

// changes writes what is different. What state.DeltaOf returns is JSON without white
// space, whatever the codecs.
func (e *encoder) changes(in *engine.Committed) {
	begin, odd := len(e.out), e.odd
	if e.usual.is && e.usualChanges(in) {
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

// given writes the argument of a write of a usual commit, which the state after it has,
// and reports whether it did.
func (e *encoder) given(name string, in *engine.Committed, w *engine.Write) bool {
	switch key := w.Update.Key(); {
	case key == toolCallsKey && w.Update.Op() == "put":
		s, ok := engine.ToolCalls.Get(in.After, w.Entry)
		if !ok {
			return false
		}
		v := e.usual.call(w.Entry)
		e.put(name)
		if v.begin = len(e.out); e.callState(&s) {
			v.end = len(e.out)
			return true
		}
	case key == transcriptKey && e.usual.appends == 1:
		is := engine.Transcript.Get(in.After)
		n := is.Len() - engine.Transcript.Get(in.Before).Len()
		v := &e.usual.messages
		e.put(name)
		if v.begin = len(e.out); e.tail(is, n) {
			v.end = len(e.out)
			return true
		}
	}
	return false
}

// again writes what was written before, if it was.
func (e *encoder) again(v valueOf) bool {
	if v.end == 0 {
		return false
	}
	e.out = append(e.out, e.out[v.begin:v.end]...)
	return true
}

// usualChanges writes the changes of a usual commit, if it can.
func (e *encoder) usualChanges(in *engine.Committed) bool {
	n, sound := 0, true
	part := func(key state.AnyKey, write func() bool) {
		hidden := e.change(n, key.Name(), key.Scope(), 0)
		begin := len(e.out)
		sound = sound && !hidden && write() && e.plain(begin)
		e.put("}")
		n++
	}
	if e.usual.lifecycle {
		part(lifecycleKey, func() bool { return e.position(phase.RunLifecycle.Get(in.After)) })
	}
	if len(e.usual.calls) > 0 {
		part(toolCallsKey, func() bool { return e.entries(in.Before, in.After) })
	}
	if e.usual.transcript {
		part(transcriptKey, func() bool { return e.appended(in.Before, in.After) })
	}
	if e.usual.usage {
		part(usageKey, func() bool { return e.tokens(engine.Usage.Get(in.After)) })
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
	slices.SortFunc(e.usual.calls, func(a, b valueOf) int { return strings.Compare(a.entry, b.entry) })
	e.put("[")
	n := 0
	for _, v := range e.usual.calls {
		s, ok := engine.ToolCalls.Get(after, v.entry)
		if !ok {
			continue
		}
		e.comma(n)
		e.put("[")
		e.entry(v.entry)
		e.put(",")
		if !e.again(v) && !e.callState(&s) {
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
	for _, v := range e.usual.calls {
		if engine.ToolCalls.Has(before, v.entry) && !engine.ToolCalls.Has(after, v.entry) {
			e.comma(n)
			e.entry(v.entry)
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
	if !held || !is.Extends(was) {
		return e.tail(is, is.Len())
	}
	ok := e.again(e.usual.messages) || e.tail(is, is.Len()-was.Len())
	e.put(`,"part":"append"`)
	return ok
}

// tail writes the last messages.
func (e *encoder) tail(all state.List[inference.Message], n int) bool {
	e.put("[")
	for i, m := range all.Tail(n) {
		e.comma(i - all.Len() + n)
		if !e.message(&m) {
			return false
		}
	}
	e.put("]")
	return true
}
