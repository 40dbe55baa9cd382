package trace_test

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

const schemaFile = "../../docs/trace.schema.json"

// told describes the fields that their types leave to their names.
var told = map[string]string{
	"Header.Time": "when it happened", "Header.Run": "id of the run", "Header.Thread": "id of the thread", "Header.Agent": "id of the agent that runs",
	"Header.Phase": "absent between phases", "Ticket.Kind": "what sort of answer it wants; confirm when empty", "Ticket.Choices": "texts that the answer's value is taken from",
	"Ticket.Lifetime": "how long the question stands, in nanoseconds; absent: for ever", "Ticket.Fallback": "the value that goes with the default yes",
	"DeltaEntry.Part": "what raw is: absent: the whole value; reset: there is none any more; append: the elements that were appended; entries: those that were set",
	"DeltaEntry.Gone": "with entries: the keys of those that were deleted, an array", "Dump.Revision": "of the state", "Dump.Entries": "the values, by key",
	"ToolResult.Content": "what the model reads", "ToolResult.Details": "data for hooks and user interfaces, which models do not see; see value", "Usage.CachedTokens": "how many of those read a cache had",
	"Usage.ReasoningTokens": "how many of those written nobody gets to read",
	"Base.Found":            "the state that the run found",
	"Header.Step":           "number of the step, 0 before the first one", "RunStarted.Mode": "as the input had it", "RunStarted.Adapter": "what the run was started through",
	"RunFinished.Status": "done, or what else became of the run", "RunFinished.Reason": "why it ended", "RunFinished.Detail": "more about the reason",
	"RunFinished.Error": "what went wrong", "RunFinished.Steps": "how many steps it had", "RunFinished.Usage": "tokens in all", "RunFinished.Duration": "how long it took, in nanoseconds",
	"RunSuspended.Tickets": "the questions that are open", "StepFinished.Duration": "how long it took, in nanoseconds", "PhaseStarted.Hooks": "how many hooks or gates will be called",
	"PhaseFinished.Call": "tool call id, in tool phases", "PhaseFinished.Rounds": "passes of the action loop", "PhaseFinished.Retries": "calls after a conflict",
	"PhaseFinished.Error": "what the phase failed with", "PhaseFinished.Duration": "how long it took, in nanoseconds", "HookFinished.Plugin": "whose hook it is",
	"HookFinished.Hook": "plugin, phase and number", "HookFinished.Tier": "hooks of one tier are called at the same time", "HookFinished.Status": "what became of its command",
	"HookFinished.Error": "what it failed with", "HookFinished.Retries": "its calls after the first", "Retry.Began": "when it was called", "Retry.Duration": "how long it took, in nanoseconds",
	"Conflict.Key": "state key", "Conflict.Winner": "who went first", "Conflict.Loser": "whose command was not committed", "Write.Key": "state key",
	"Write.Entry": "of a table or set", "Write.Op": "apply, append, replace, put, delete, add, remove, reset or import", "Write.Value": "what the update was called with; see value",
	"Committed.Writes": "the updates of the commit", "Committed.Changes": "what is different from the revision before", "RoundFinished.Round": "number of the pass, from 1", "RoundFinished.Actions": "how many were handled",
	"ActionFinished.ID": "number of the action in its thread", "ActionFinished.Action": "its kind", "ActionFinished.Round": "the pass that it was handled in", "ActionFinished.Status": "what became of it",
	"ActionFinished.Error": "what it failed with", "ActionFinished.Duration": "of all its calls, in nanoseconds", "ActionFinished.Retries": "its calls after the first",
	"EffectFinished.ID": "run, revision and number", "EffectFinished.Effect": "its kind", "EffectFinished.Error": "what its handler failed with", "EffectFinished.Duration": "how long it took, in nanoseconds",
	"GateVoted.Call": "tool call id", "GateVoted.Tool": "name of the tool", "GateVoted.Plugin": "whose gate it is", "GateVoted.Gate": "plugin, phase and number", "GateVoted.Decision": "what it says",
	"GateVoted.Reason": "why", "GateVoted.Edits": "it changes the arguments too", "GateVoted.Error": "what it failed with", "GateVoted.Duration": "how long it took, in nanoseconds",
	"GateResolved.Call": "tool call id", "GateResolved.Tool": "name of the tool", "GateResolved.Decision": "what holds", "GateResolved.Cause": "what decided", "GateResolved.Reason": "why",
	"GateClashed.Call": "tool call id", "GateClashed.Clash": "who disagreed", "CallEdited.Call": "tool call id", "CallEdited.Plugin": "who changed them",
	"CallEdited.Before": "the arguments before; see value", "CallEdited.After": "the arguments after; see value", "TicketOpened.Ticket": "the question",
	"TicketAnswered.Ticket": "id of the question", "TicketAnswered.Call": "tool call id", "TicketAnswered.Approved": "whether the call may run", "TicketAnswered.Reason": "why",
	"ToolStarted.Call": "the call as it runs", "ToolFinished.Call": "the call as it ran", "ToolFinished.Result": "what came of it",
	"InferenceStarted.Model": "name of the model", "InferenceStarted.Messages": "how many are sent", "InferenceStarted.Tools": "how many the model may call",
	"InferenceChunk.Text": "the piece; empty unless the rules keep it", "InferenceFinished.Text": "the whole answer", "InferenceFinished.ToolCalls": "the calls that the model asks for",
	"InferenceFinished.Stop": "why the model stopped", "InferenceFinished.Usage": "tokens of this call", "InferenceFinished.Error": "what went wrong", "InferenceFinished.Duration": "how long it took, in nanoseconds",
	"FieldOrigin.Field": "name of the field", "FieldOrigin.Plugin": "who set it", "FieldOrigin.Value": "what it was set to; see value", "OverrideApplied.Fields": "the fields, by name",
	"RequestTransformed.Plugin": "who changed the request", "Continued.Reason": "why", "HandedOff.From": "id of the agent", "HandedOff.To": "id of the agent",
	"Warning.Plugin": "that it is about", "Warning.Message": "what went wrong",
	"ToolCall.ID": "as the model gave it, unique in its response", "ToolCall.Name": "of the tool", "ToolCall.Args": "the arguments; see value",
	"ToolResult.CallID": "id of the call", "ToolResult.Name": "of the tool", "ToolResult.IsError": "the call failed", "ToolResult.Outcome": "how the call ended",
	"Usage.InputTokens": "tokens that were read", "Usage.OutputTokens": "tokens that were written", "Clash.Kind": "what they disagree about", "Clash.Winner": "whose decision holds", "Clash.Loser": "whose does not",
	"DumpEntry.Name": "state key", "DumpEntry.Scope": "how long the key's value lives", "DumpEntry.Version": "of its encoding", "DumpEntry.Raw": "the value, or what part says; see value",
}

// sources are what the comments say, by "Type" and "Type.Field", and the constants of
// text types in order.
type sources struct {
	comments  map[string]string
	constants map[string][]any
}

func readSources(t *testing.T) sources {
	s := sources{map[string]string{}, map[string][]any{}}
	for _, dir := range []string{"engine", "gate", "inference", "phase", "state"} {
		names, err := filepath.Glob("../../" + dir + "/*.go")
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, d := range file.Decls {
				if d, ok := d.(*ast.GenDecl); ok {
					s.declared(dir, d)
				}
			}
		}
	}
	return s
}

func (s sources) declared(dir string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			at, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			s.comments[dir+"."+spec.Name.Name] = sentence(cmp.Or(spec.Doc.Text(), d.Doc.Text()))
			for _, f := range at.Fields.List {
				for _, name := range f.Names {
					s.comments[dir+"."+spec.Name.Name+"."+name.Name] = sentence(cmp.Or(f.Comment.Text(), f.Doc.Text()))
				}
			}
		case *ast.ValueSpec:
			if id, ok := spec.Type.(*ast.Ident); ok && len(spec.Values) == 1 {
				if v, ok := spec.Values[0].(*ast.BasicLit); ok && v.Kind == token.STRING && v.Value != `""` {
					s.constants[dir+"."+id.Name] = append(s.constants[dir+"."+id.Name], strings.Trim(v.Value, `"`))
				}
			}
		}
	}
}

func sentence(comment string) string {
	first, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(comment), "\n", " "), ". ")
	return strings.NewReplacer("[", "", "]", "").Replace(strings.TrimSuffix(first, "."))
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.name)
		value, err := inference.ToJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(string(value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// generator makes the schema of types.
type generator struct {
	t    *testing.T
	src  sources
	defs map[string]object
}

func nameOf(t reflect.Type) string { return strings.ToLower(t.Name()[:1]) + t.Name()[1:] }

// of returns the schema of a type's JSON.
func (g *generator) of(t reflect.Type) object {
	texts := func(names ...any) object { return object{{"enum", names}} }
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[phase.Phase]():
		var all []any
		for p := range phase.Phase(phase.Count) {
			all = append(all, (p + 1).String())
		}
		return texts(all...)
	case reflect.TypeFor[gate.Kind]():
		var all []any
		for k := range gate.KindBlock + 1 {
			all = append(all, k.String())
		}
		return texts(all...)
	case reflect.TypeFor[state.Scope]():
		return texts(state.ScopeRun.String(), state.ScopeThread.String())
	case reflect.TypeFor[effects.ID]():
		return object{{"type", "string"}}
	case reflect.TypeFor[inference.JSON](), reflect.TypeFor[json.RawMessage]():
		return object{{"$ref", "#/$defs/value"}}
	}
	require.False(g.t, t.Kind() != reflect.Struct && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()), "%s", t)
	switch t.Kind() {
	case reflect.String:
		if all := g.src.constants[filepath.Base(t.PkgPath())+"."+t.Name()]; len(all) > 0 {
			return object{{"type", "string"}, {"examples", all}}
		}
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}
	case reflect.Slice:
		return object{{"type", "array"}, {"items", g.of(t.Elem())}}
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Struct:
		if _, ok := g.defs[nameOf(t)]; !ok {
			g.defs[nameOf(t)] = nil
			g.defs[nameOf(t)] = g.object(t, nil)
		}
		return object{{"$ref", "#/$defs/" + nameOf(t)}}
	}
	require.Fail(g.t, "a field of a new kind", "%s", t)
	return nil
}

// object returns the schema of a struct, with the members of first before its own.
func (g *generator) object(t reflect.Type, first object) object {
	properties, required := slices.Clone(first), []any{}
	for _, m := range first {
		required = append(required, m.name)
	}
	g.fields(t, &properties, &required)
	if t == reflect.TypeFor[inference.ToolCall]() {
		properties = append(properties, member{"malformed_args", object{{"type", "string"}, {"description", "the arguments, if they are no JSON"}}})
	}
	o := object{}
	if about := g.src.comments[filepath.Base(t.PkgPath())+"."+t.Name()]; about != "" {
		o = append(o, member{"description", about})
	}
	o = append(o, member{"type", "object"})
	if _, ok := t.FieldByName("Header"); ok {
		o = append(o, member{"$ref", "#/$defs/header"})
	}
	o = append(o, member{"properties", properties})
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	if t != reflect.TypeFor[engine.Header]() { // which is a part of others
		o = append(o, member{"unevaluatedProperties", false})
	}
	return o
}

func (g *generator) fields(t reflect.Type, properties *object, required *[]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous && name == "":
			if f.Type != reflect.TypeFor[engine.Header]() {
				g.fields(f.Type, properties, required)
			}
			continue
		}
		s := g.of(f.Type)
		if options == "" {
			*required = append(*required, name)
			if f.Type.Kind() == reflect.Slice && f.Type != reflect.TypeFor[json.RawMessage]() {
				s[0].value = []any{"array", "null"}
			}
		}
		about := cmp.Or(g.src.comments[filepath.Base(t.PkgPath())+"."+t.Name()+"."+f.Name], told[t.Name()+"."+f.Name])
		if own, ok := told[t.Name()+"."+f.Name]; ok {
			about = own
		}
		require.NotEmpty(g.t, about, "%s.%s of a trace is not described", t.Name(), f.Name)
		*properties = append(*properties, member{name, append(s, member{"description", about})})
	}
}

// schema returns the schema of a trace's lines.
func schema(t *testing.T) string {
	g := generator{t, readSources(t), map[string]object{}}
	g.of(reflect.TypeFor[engine.Header]())
	constant := func(typ string) object { return object{{"type", object{{"const", typ}}}} }
	lines := map[string]object{
		"trace": {
			{"description", "The first line of a file: which format its lines have"}, {"type", "object"},
			{"properties", append(constant("trace"), object{
				{"version", object{{"const", trace.Version}, {"description", "of the format"}}},
				{"module", object{{"type", "string"}, {"description", "version of Fixpoint that wrote it, if it is a released one"}}},
				{"time", object{{"type", "string"}, {"format", "date-time"}, {"description", "of the first event"}}},
			}...)},
			{"required", []any{"type", "version"}}, {"additionalProperties", false},
		},
		"dropped": {
			{"description", "Events are missing in its place: the writer was too slow, or they could not be encoded"}, {"type", "object"},
			{"properties", append(constant("dropped"), member{"count", object{{"type", "integer"}, {"minimum", 1}, {"description", "how many"}}})},
			{"required", []any{"type", "count"}}, {"additionalProperties", false},
		},
	}
	for _, typ := range engine.EventTypes() {
		zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, typ))
		require.NoError(t, err)
		lines[typ] = g.object(reflect.TypeOf(zero), constant(typ))
	}
	defs, choices := object{}, []any{}
	for _, typ := range slices.Sorted(maps.Keys(lines)) {
		defs = append(defs, member{"line_" + typ, lines[typ]})
		choices = append(choices, object{{"$ref", "#/$defs/line_" + typ}})
	}
	for _, name := range slices.Sorted(maps.Keys(g.defs)) {
		defs = append(defs, member{name, g.defs[name]})
	}
	defs = append(defs,
		member{"value", object{
			{"description", "Any JSON. Anywhere in it, what was too long is replaced by {\"$cut\": ...} and what is hidden by {\"$hidden\": true}"},
			{"anyOf", []any{object{{"$ref", "#/$defs/cut"}}, object{{"$ref", "#/$defs/hidden"}}, true}},
		}},
		member{"hidden", object{
			{"description", "Stands for a value that the rules hide"}, {"type", "object"}, {"properties", object{{"$hidden", object{{"const", true}}}}},
			{"required", []any{"$hidden"}}, {"additionalProperties", false},
		}},
		member{"cut", object{
			{"description", "Stands for a value that was too long"}, {"type", "object"},
			{"properties", object{{"$cut", object{{"type", "object"},
				{"properties", object{
					{"bytes", object{{"type", "integer"}, {"minimum", 0}, {"description", "how long the value is"}}},
					{"begin", object{{"type", "string"}, {"description", "the text that it begins with: of a string its own, else that of its JSON"}}},
				}}, {"required", []any{"bytes", "begin"}}, {"additionalProperties", false}}}}},
			{"required", []any{"$cut"}}, {"additionalProperties", false},
		}},
	)
	whole, err := json.MarshalIndent(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", fmt.Sprintf("urn:fixpoint:trace:%d", trace.Version)},
		{"title", "A line of a Fixpoint trace"},
		{"description", "A trace is a text of JSON lines, each of which this schema describes. docs/trace.md explains them."},
		{"oneOf", choices}, {"$defs", defs},
	}, "", "  ")
	require.NoError(t, err)
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(whole)) + "\n"
}

// The schema has every event with every field, as the types of the engine have them:
// what is always there, what may be missing, and nothing else. If this fails the format
// has changed: old readers cannot read it, so its version has to rise.
func TestSchema(t *testing.T) {
	want := schema(t)
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, []byte(want), 0o644))
	}
	got, err := os.ReadFile(schemaFile)
	require.NoError(t, err, "run the test with -update")
	require.Equal(t, want, strings.ReplaceAll(string(got), "\r\n", "\n"))
}
