package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// hiddenValue stands in the place of a value that is hidden.
const hiddenValue = `{"$hidden":true}`

// Detailed returns the event as it is written down: with its values encoded, and all
// that it says as the rules will have it. It has no snapshots and updates any more, so
// it can be kept for long, and is the same again when it is written and read. An event
// that is detailed already stays as it is, but for the rules. An event that cannot be
// written, or is too long however much of it is cut, is left with little more than its
// header.
//
// A value is encoded by its key's codec or its own MarshalJSON. If that fails or panics
// the value is hidden, and with those of a commit or of a run's beginning, all that
// changed with it; Detailed itself never panics. Making rules ready takes a while if they
// have members and secrets; a Trace and Rules.Detailer do it once. With Rules.Chunks a
// chunk is looked at by itself.
func Detailed(e engine.Event, r Rules) engine.Event {
	detailed, _, _ := r.censor().detailed(e)
	return detailed
}

// Detailer returns what does as Detailed, for the events of any number of runs, those of
// each in order: it looks at chunks together with those before them. It is safe for
// concurrent use.
func (r Rules) Detailer() func(engine.Event) engine.Event {
	said := speeches{censor: r.censor()}
	return func(e engine.Event) engine.Event {
		detailed, _, _ := said.detailed(said.event(e))
		return detailed
	}
}

var errTooLong = errors.New("trace: the event is too long, whatever is cut")

// detailed returns the event and its line, without the end of line. With an error they
// tell little more than the event's header.
func (c *censor) detailed(e engine.Event) (engine.Event, []byte, error) {
	e = c.encoded(e)
	line, err := engine.MarshalEvent(e)
	if e == nil {
		return nil, nil, err
	}
	if err != nil {
		e = repaired(e)
		line, err = engine.MarshalEvent(e)
	}
	if err == nil {
		return c.ruled(e, line)
	}
	e, line = bare(e)
	return e, line, err
}

// ruled returns an event and its line as the rules will have them.
func (c *censor) ruled(e engine.Event, line []byte) (engine.Event, []byte, error) {
	line, changed, err := c.line(e.Type(), line)
	if err == nil && changed {
		var read engine.Event
		if read, err = engine.UnmarshalEvent(line); err == nil {
			return read, line, nil
		}
	}
	if err != nil {
		e, line = bare(e)
	}
	return e, line, err
}

// bare returns what is left of an event that cannot be told: its type, and those parts of
// its header that are not anybody's texts.
func bare(e engine.Event) (engine.Event, []byte) {
	h := e.Head()
	line, err := json.Marshal(struct {
		Type string `json:"type"`
		engine.Header
	}{e.Type(), engine.Header{Seq: h.Seq, Time: h.Time, Run: Hidden, Thread: Hidden, Agent: Hidden, Step: h.Step, Phase: h.Phase, Revision: h.Revision}})
	if err != nil { // a time or a phase that cannot be written
		line = fmt.Appendf(nil, `{"type":%q,"seq":%d}`, e.Type(), h.Seq)
	}
	read, err := engine.UnmarshalEvent(line)
	if err != nil {
		return engine.Warning{Message: Hidden}, []byte(`{"type":"warning","message":"` + Hidden + `"}`)
	}
	if line, err = engine.MarshalEvent(read); err != nil {
		return read, nil
	}
	return read, line
}

// encoded returns the event with its values encoded, whatever their length, those of
// hidden keys excepted.
func (c *censor) encoded(e engine.Event) engine.Event {
	switch e := e.(type) {
	case engine.RunStarted:
		e.Base = c.base(e.Base)
		return e
	case engine.RunResumed:
		e.Base = c.base(e.Base)
		return e
	case engine.Conflict:
		e.Lost = c.writes(e.Lost)
		return e
	case engine.Committed:
		e.Writes = c.writes(e.Writes)
		if e.Before != nil && e.After != nil {
			e.Changes = changes(e.Before, e.After)
		} else {
			e.Changes = slices.Clone(e.Changes)
		}
		for i := range e.Changes {
			if c.hidesKey(e.Changes[i].Name) {
				e.Changes[i].Raw, e.Changes[i].Gone = json.RawMessage(hiddenValue), nil
			}
		}
		e.Before, e.After = nil, nil
		return e
	case engine.InferenceChunk:
		if !c.chunks {
			e.Text = ""
		}
		return e
	}
	return e
}

func (c *censor) base(b engine.Base) engine.Base {
	found := state.Dump{}
	switch {
	case b.State != nil:
		found = exported(b.State)
	case b.Found != nil:
		found = state.Dump{Revision: b.Found.Revision, Entries: slices.Clone(b.Found.Entries)}
	default:
		return b
	}
	for i := range found.Entries {
		if c.hidesKey(found.Entries[i].Name) {
			found.Entries[i].Raw = json.RawMessage(hiddenValue)
		}
	}
	return engine.Base{Found: &found}
}

func (c *censor) writes(all []engine.Write) []engine.Write {
	all = slices.Clone(all)
	for i := range all {
		w := &all[i]
		switch {
		case c.hidesWrite(w):
			w.Value = hiddenValue
		case w.Update.Op() != "":
			w.Value = argument(w.Update)
		}
		w.Update = state.Update{}
	}
	return all
}

// argument returns what an update is called with, nothing if it has no argument.
func argument(u state.Update) (value inference.JSON) {
	defer func() {
		if recover() != nil {
			value = hiddenValue
		}
	}()
	arg := u.Arg()
	if arg == nil {
		return ""
	}
	value, err := inference.ToJSON(arg)
	if err != nil {
		return hiddenValue
	}
	return value
}

// changes returns what is different. If a codec fails, the values are hidden.
func changes(before, after *state.Snapshot) (all []state.DeltaEntry) {
	if d, err := state.DeltaOf(before, after); err == nil && sound(d.Entries) {
		return d.Entries
	}
	for k := range after.Keys() {
		if after.ChangedAt(k) != before.ChangedAt(k) {
			all = append(all, state.DeltaEntry{DumpEntry: state.DumpEntry{Name: k.Name(), Scope: k.Scope(), Raw: json.RawMessage(hiddenValue)}})
		}
	}
	slices.SortFunc(all, func(a, b state.DeltaEntry) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return all
}

// sound reports whether codecs have returned JSON.
func sound(all []state.DeltaEntry) bool {
	return !slices.ContainsFunc(all, func(e state.DeltaEntry) bool {
		return !json.Valid(e.Raw) || e.Gone != nil && !json.Valid(e.Gone)
	})
}

// exported returns the state. If a codec fails, the values are hidden.
func exported(s *state.Snapshot) state.Dump {
	d, err := s.Export()
	if err == nil && !slices.ContainsFunc(d.Entries, func(e state.DumpEntry) bool { return !json.Valid(e.Raw) }) {
		return d
	}
	d = state.Dump{Revision: s.Revision(), Entries: []state.DumpEntry{}}
	for k := range s.Keys() {
		if s.Has(k) {
			d.Entries = append(d.Entries, state.DumpEntry{Name: k.Name(), Scope: k.Scope(), Raw: json.RawMessage(hiddenValue)})
		}
	}
	slices.SortFunc(d.Entries, func(a, b state.DumpEntry) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return d
}

// repaired returns the event with JSON that is none, as a hook may make it, as a string.
func repaired(e engine.Event) engine.Event {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	v.Set(reflect.ValueOf(e))
	repair(v)
	return v.Interface().(engine.Event)
}

func repair(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *inference.JSON:
		if !at.Valid() {
			*at = inference.JSON(quote(string(*at)))
		}
		return
	case *json.RawMessage:
		if !json.Valid(*at) {
			*at = quote(string(*at))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				repair(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)) // others have it too
		for i := range v.Len() {
			repair(v.Index(i))
		}
	}
}
