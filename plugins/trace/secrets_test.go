package trace_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// planted puts a text into every place of an event that can hold one.
type planted struct {
	text     string
	json     inference.JSON
	update   state.Update
	snapshot [2]*state.Snapshot
	places   int
}

// plant makes what events of all types get.
func plant(t *testing.T, text string, value any) *planted {
	t.Helper()
	raw, err := inference.ToJSON(value)
	require.NoError(t, err)
	cell := state.NewCell("cell", state.Options[any]{Shared: true})
	log := state.NewLog("log", state.Options[any]{Shared: true})
	table := state.NewTable[string]("table", state.Options[any]{Shared: true})
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{cell, log, table}})
	require.NoError(t, err)
	p := &planted{text: text, json: raw, update: cell.With(value)}
	for i := range p.snapshot {
		res, err := store.Commit(state.Batch{Owner: "x", Updates: []state.Update{cell.With(value), log.Append(value), table.Put(fmt.Sprint("k", i), value)}})
		require.NoError(t, err)
		p.snapshot[i] = res.Snapshot
	}
	return p
}

// event returns an event of the type with all that it can hold.
func (p *planted) event(t *testing.T, typ string) engine.Event {
	t.Helper()
	zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, typ))
	require.NoError(t, err)
	v := reflect.New(reflect.TypeOf(zero)).Elem()
	p.fill(t, v)
	return v.Interface().(engine.Event)
}

func (p *planted) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = enginetest.Epoch()
		return
	case *phase.Phase:
		*at = phase.StepStart
		return
	case *gate.Kind:
		*at = gate.KindBlock
		return
	case *state.Scope:
		return
	case *effects.ID:
		*at = effects.ID{Run: p.text, Revision: 1}
	case *inference.JSON:
		*at = p.json
	case *json.RawMessage:
		*at = json.RawMessage(p.json)
	case *state.Update:
		*at = p.update
	case **state.Snapshot:
		*at = p.snapshot[min(p.places%2, 1)]
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString(p.text)
		case reflect.Bool:
			v.SetBool(true)
			return
		case reflect.Int, reflect.Int64:
			v.SetInt(1)
			return
		case reflect.Uint64:
			v.SetUint(1)
			return
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				p.fill(t, v.Index(i))
			}
			return
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			p.fill(t, v.Elem())
			return
		case reflect.Struct:
			for i := range v.NumField() {
				p.fill(t, v.Field(i))
			}
			if e, ok := v.Addr().Interface().(*engine.Committed); ok {
				e.Before, e.After = p.snapshot[0], p.snapshot[1]
			}
			return
		default:
			require.FailNow(t, "an event has a field of a new kind", "%s", v.Type())
		}
	}
	p.places++
}

// Capability H5. Whatever is to be hidden, and wherever in an event of whatever type it
// is, no writer is told of it, and the lines are events all the same.
func TestNoSecretIsTold(t *testing.T) {
	const secret = "zq7-hunter"
	in := func(text string) string { return "before " + text + " after" }
	everywhere := map[string]any{"list": []any{in(secret), 1}, in(secret): true, "text": `{"inner":"` + secret + `"}`, "number": 31415926535}
	member := map[string]any{"list": []any{map[string]any{"API_Key": secret}}, "dbPassword": map[string]any{"deep": secret},
		"text": ` [{"nested":"{\"x\":{\"session-token\":\"` + secret + `\"}}"}]`, "X-Authorization": []any{secret}}
	for name, c := range map[string]struct {
		rules  trace.Rules
		text   string
		value  any
		secret []string
	}{
		"exact":       {trace.Rules{Secrets: []string{secret, "31415926"}, Bare: true}, in(secret), everywhere, []string{secret, "31415926"}},
		"exact, cut":  {trace.Rules{Secrets: []string{secret, "31415926"}, MaxElement: 20, MaxValue: 40}, in(secret), everywhere, []string{"zq7", "hunter", "31415926"}},
		"pattern":     {trace.Rules{Texts: []*regexp.Regexp{regexp.MustCompile(`zq\d-\w+`)}}, in(secret), everywhere, []string{secret}},
		"looks":       {trace.Rules{}, in("ghp_" + strings.Repeat("a", 36)), []any{in("ghp_" + strings.Repeat("a", 36))}, []string{"aaaa"}},
		"member":      {trace.Rules{}, "text", member, []string{secret}},
		"own member":  {trace.Rules{Members: []string{"my-pin"}}, "text", map[string]any{"myPIN": secret, "n": []any{map[string]any{"the_my_pin": secret}}}, []string{secret}},
		"JSON text":   {trace.Rules{}, `{"token":"` + secret + `"}`, "x", []string{secret}},
		"state key":   {trace.Rules{Keys: []string{"*"}}, "text", 1, []string{`"op":"","value":1`, `"raw":1`}},
		"bad pattern": {trace.Rules{Keys: []string{"["}}, "text", 1, []string{`"raw":1`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plant(t, c.text, c.value)
			for _, typ := range engine.EventTypes() {
				e := p.event(t, typ)
				require.Positive(t, p.places)
				text, lines, chrome := new(strings.Builder), new(strings.Builder), new(strings.Builder)
				tr := trace.New(trace.Options{Text: text, Lines: lines, Chrome: chrome, Rules: c.rules})
				tr.Observe(e)
				require.NoError(t, tr.Close(t.Context()))
				for _, s := range c.secret {
					if strings.HasPrefix(name, "state") || strings.HasPrefix(name, "bad") {
						if typ == "committed" {
							require.NotContains(t, lines.String(), s)
						}
						continue
					}
					require.NotContains(t, lines.String(), s, typ)
					require.NotContains(t, text.String(), s, typ)
					require.NotContains(t, chrome.String(), s, typ)
				}
				checkChrome(t, []byte(chrome.String()))
				n := 0
				for l, err := range trace.Read(strings.NewReader(lines.String())) {
					require.NoError(t, err)
					if l.Event != nil {
						require.Equal(t, typ, l.Event.Type())
						require.Equal(t, uint64(1), l.Event.Head().Seq)
						require.Equal(t, phase.StepStart, l.Event.Head().Phase)
						n++
					}
				}
				require.Equal(t, 1, n)
			}
		})
	}
}

// What rules hide does not make events unreadable, whatever the secret is.
func FuzzDetailed(f *testing.F) {
	f.Add("step_start", `{"a":["step_start",{"token":"x"}]}`, "step_start")
	f.Add("2000", `[1,2000.5,"\u0032000"]`, `a"b\`)
	f.Add("true", `{"x":true,"password":{"a":[]}}`, `[{"password":"b"}]`)
	f.Add("abcd", `{"abcd":1,"abcd":{"abcd":[[["abcd"]]]}}`, "\xffabcd\n")
	f.Fuzz(func(t *testing.T, secret, raw, text string) {
		e := engine.ToolFinished{
			Header: engine.Header{Seq: 7, Time: enginetest.Epoch(), Run: text, Phase: phase.StepStart},
			Call:   inference.ToolCall{ID: "c", Name: text, Args: inference.JSON(raw)},
			Result: inference.ToolResult{Content: text, Details: inference.JSON(raw)},
		}
		for _, rules := range []trace.Rules{{Secrets: []string{secret}}, {Secrets: []string{secret}, MaxValue: 40, MaxElement: 10, MaxEvent: 600}, {Bare: true}} {
			got := trace.Detailed(e, rules)
			line, err := engine.MarshalEvent(got)
			require.NoError(t, err)
			read, err := engine.UnmarshalEvent(line)
			require.NoError(t, err)
			require.Equal(t, uint64(7), read.Head().Seq)
			require.Equal(t, "tool_finished", read.Type())
			require.Equal(t, read, trace.Detailed(read, trace.Rules{Bare: true}))
			plain := strings.Trim(secret, `"\0123456789.eE+-`)
			if len(rules.Secrets) > 0 && len(plain) >= 8 && plain == secret && !strings.ContainsAny(secret, `"\[]{}:,`) && ascii(secret) {
				for _, s := range []string{string(line)} {
					for _, own := range []string{`"type":"tool_finished"`, `"duration_ns"`, `"revision"`, `"is_error"`, `"call_id"`, `"malformed_args"`, `"step_start"`, `"$hidden"`, "[hidden]", `"outcome"`, `"content"`, `"details"`} {
						s = strings.ReplaceAll(s, own, "")
					}
					require.NotContains(t, s, secret)
				}
			}
		}
	})
}

func ascii(s string) bool {
	for _, r := range s {
		if r < ' ' || r > '~' {
			return false
		}
	}
	return true
}

// Lines that are left alone are those that would come out the same.
func FuzzShortcut(f *testing.F) {
	f.Add(`{"a":{"API-Key\u0022":1},"token":"\n{\"to-ken\" : 1}"}`, `x {"secrets":[1]}`)
	f.Add(`["password",{"Pass_Word_":"ghp_`+strings.Repeat("a", 36)+`"}]`, `[{"x":"{\"token\\\":1}"}]`)
	f.Add(`["`+strings.Repeat("\xdc", 4000)+`"]`, "of few bytes, but long once they are mended")
	f.Fuzz(func(t *testing.T, raw, text string) {
		if !json.Valid([]byte(raw)) {
			return
		}
		line, err := engine.MarshalEvent(engine.ToolFinished{Header: engine.Header{Run: "token", Agent: text},
			Call: inference.ToolCall{Name: "password", Args: inference.JSON(raw)}, Result: inference.ToolResult{Content: text}})
		require.NoError(t, err)
		for _, rules := range []trace.Rules{{}, {Bare: true, Members: []string{"x"}}, {Bare: true}} {
			all, most := trace.Walked(rules, "tool_finished", line)
			require.Equal(t, string(all), string(most))
		}
	})
}
