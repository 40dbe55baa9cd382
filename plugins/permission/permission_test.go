package permission_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

func TestJudge(t *testing.T) {
	rules := permission.Rules{
		Allow: permission.Tools("kind:read", "write_note"),
		Ask:   permission.Tools("write_*", "kind:net"),
		Deny:  permission.Tools("*_all", "kind:exec"),
	}
	for _, c := range []struct {
		tool inference.ToolSpec
		want permission.Verdict
		rule string
	}{
		{inference.ToolSpec{Name: "read_file", Kind: "read"}, permission.Allow, `the rule "kind:read"`},
		{inference.ToolSpec{Name: "read_all", Kind: "read"}, permission.Deny, `the rule "*_all"`},
		{inference.ToolSpec{Name: "write_note", Kind: "write"}, permission.Ask, `the rule "write_*"`},
		{inference.ToolSpec{Name: "fetch", Kind: "net"}, permission.Ask, `the rule "kind:net"`},
		{inference.ToolSpec{Name: "sh", Kind: "exec"}, permission.Deny, `the rule "kind:exec"`},
		{inference.ToolSpec{Name: "dance"}, permission.Ask, "the default"},
		{inference.ToolSpec{Name: "kind:read"}, permission.Ask, "the default"},
	} {
		got, rule := rules.Judge(c.tool)
		require.Equal(t, c.want, got, c.tool.Name)
		require.Equal(t, c.rule, rule, c.tool.Name)
	}
	rules.Default = permission.Deny
	got, _ := rules.Judge(inference.ToolSpec{Name: "dance"})
	require.Equal(t, permission.Deny, got)
}

func TestFaultyRules(t *testing.T) {
	for _, section := range []string{
		`{"default": "perhaps"}`, `{"unattended": "guess"}`, `{"deny": ["["]}`, `{"ask": ["kind:["]}`, `{"alow": []}`,
		`{"deny": [{"tool": "["}]}`, `{"deny": [{"tool": "*", "args": {"path": "a/["}}]}`, `{"deny": [{"args": {"path": "a"}}]}`, `{"deny": [""]}`,
		`{"deny": [{"tool": "*", "path": "a"}]}`, `{"deny": [5]}`, `{"allow": [{"tool": "*", "args": {"path": ""}}]}`, `{"root": "here"}`,
	} {
		eng := build(t, func(c *engine.Config) {})
		err := eng.Check(spec(section))
		require.ErrorIs(t, err, engine.ErrSpec, section)
	}
}

// counted is a tool that takes any arguments and counts how often it ran.
type counted struct {
	spec inference.ToolSpec
	ran  map[string]int
}

func (c counted) Spec() inference.ToolSpec { return c.spec }

func (c counted) Call(context.Context, *phase.Context) (engine.Output, error) {
	c.ran[c.spec.Name]++
	return engine.Text("ok"), nil
}

// tools counts how often each tool ran.
func tools(ran map[string]int) engine.Plugin {
	return engine.NewPlugin("tools", func(r *engine.Registrar) error {
		for _, s := range []inference.ToolSpec{{Name: "look", Kind: "read"}, {Name: "save", Kind: "write"}, {Name: "sh", Kind: "exec"}} {
			r.Tool(counted{s, ran})
		}
		return nil
	})
}

func build(t *testing.T, change func(*engine.Config), more ...engine.Plugin) *engine.Engine {
	t.Helper()
	config, _ := enginetest.Config(t, append([]engine.Plugin{permission.New()}, more...)...)
	change(&config)
	eng, err := engine.New(config)
	require.NoError(t, err)
	return eng
}

func spec(section string) engine.AgentSpec {
	return engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{permission.Name: inference.JSON(section)}}
}

const strict = `{"allow": ["kind:read"], "ask": ["kind:write"], "default": "deny"}`

// run has the model call tools one after the other, and returns the results.
func run(t *testing.T, section string, resolver gate.Resolver, calls ...string) (outcomes []inference.Outcome, ran map[string]int, res *engine.Result) {
	t.Helper()
	ran = map[string]int{}
	var answers []enginetest.Answer
	for i, tool := range calls {
		answers = append(answers, enginetest.Call(string(rune('a'+i)), tool, map[string]any{"n": i}))
	}
	answers = append(answers, enginetest.Say("done"))
	rec := &enginetest.Recorder{}
	eng := build(t, func(c *engine.Config) {
		c.Resolver = resolver
		c.Model = enginetest.NewScript(answers...)
		c.Observers = append(c.Observers, rec)
	}, tools(ran))
	res, err := eng.Run(t.Context(), spec(section), engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
		outcomes = append(outcomes, e.Result.Outcome)
	}
	return outcomes, ran, res
}

// answering gives the answers in turn and keeps the questions.
type answering struct {
	answers []phase.Answer
	asked   []gate.Ticket
}

func (a *answering) Resolve(_ context.Context, t gate.Ticket) (phase.Answer, error) {
	a.asked = append(a.asked, t)
	if len(a.answers) == 0 {
		return phase.Answer{}, errors.New("nobody is there")
	}
	next := a.answers[0]
	a.answers = a.answers[1:]
	return next, nil
}

// Capability G5. Rules approve, ask and deny; a no comes with its reason.
func TestDecisions(t *testing.T) {
	who := &answering{answers: []phase.Answer{{Approved: true}, {Reason: "not today"}}}
	outcomes, ran, _ := run(t, strict, who, "look", "save", "save", "sh", "unknown")
	require.Equal(t, []inference.Outcome{"ok", "ok", "denied", "blocked", "error"}, outcomes)
	require.Equal(t, map[string]int{"look": 1, "save": 1}, ran)
	require.Len(t, who.asked, 2)

	q := who.asked[0]
	require.Equal(t, permission.Name, q.Plugin)
	require.Equal(t, "Allow save?", q.Message)
	var shown permission.Preview
	require.NoError(t, q.Params.Decode(&shown))
	require.Equal(t, permission.Preview{
		Tool: "save", Kind: "write", Args: `{"n":1}`, Always: `every call of save that the rule "kind:write" asks about`,
	}, shown)
}

// Capability G5. An answer can cover the rest of the run, for that tool only, and
// no other run.
func TestAlways(t *testing.T) {
	who := &answering{answers: []phase.Answer{{Approved: true, Value: permission.Always}}}
	outcomes, ran, _ := run(t, strict, who, "save", "save", "save", "sh")
	require.Equal(t, []inference.Outcome{"ok", "ok", "ok", "blocked"}, outcomes)
	require.Equal(t, 3, ran["save"])
	require.Len(t, who.asked, 1)
}

// With no opinion by default, what no rule fits runs as without the plugin.
func TestAbstain(t *testing.T) {
	outcomes, _, _ := run(t, `{"ask": ["save"], "deny": ["sh"], "default": "abstain"}`, nil, "look", "save", "sh")
	require.Equal(t, []inference.Outcome{"ok", "denied", "blocked"}, outcomes)
}

// Capability M5. Without anybody to ask there is a stated default.
func TestUnattended(t *testing.T) {
	for unattended, want := range map[string]inference.Outcome{"": "denied", `, "unattended": "deny"`: "denied", `, "unattended": "approve"`: "ok"} {
		outcomes, _, _ := run(t, `{"ask": ["*"]`+unattended+`}`, nil, "look")
		require.Equal(t, []inference.Outcome{want}, outcomes)
	}
	outcomes, ran, res := run(t, `{"unattended": "wait"}`, nil, "look")
	require.Empty(t, outcomes)
	require.Empty(t, ran)
	require.Equal(t, phase.Waiting, res.Status)
	require.Len(t, res.Tickets, 1)
}

// shownOf returns the arguments that the question about a call shows.
func shownOf(t testing.TB, args inference.JSON) inference.JSON {
	t.Helper()
	who := &answering{}
	config, _ := enginetest.Config(t, permission.New(), tools(map[string]int{}))
	config.Resolver = who
	config.Model = enginetest.NewScript(enginetest.Call("c", "save", args), enginetest.Say("done"))
	_, err := enginetest.Engine(t, config).Run(t.Context(), spec(`{}`), engine.Prompt("go"))
	require.NoError(t, err)
	require.Len(t, who.asked, 1)
	var shown permission.Preview
	require.NoError(t, who.asked[0].Params.Decode(&shown))
	return shown.Args
}

// A question shows arguments as they are written: every member, every digit.
func FuzzPreview(f *testing.F) {
	f.Add(`{"o":{"a":1},"o":{"b":"<x>\u202e\\\""},"n":9007199254740993,"path":"a","PATH":"b"}`)
	f.Add(`{"":[1e5,-0.0,null,true,"\ud800"], "x" : {} }`)
	f.Add(`{"long":"` + strings.Repeat("x", 5000) + `"}`)
	f.Fuzz(func(t *testing.T, args string) {
		if !json.Valid([]byte(args)) || json.Unmarshal([]byte(args), &map[string]any{}) != nil || args == "null" {
			return
		}
		shown := shownOf(t, inference.JSON(args))
		require.True(t, shown.Valid())
		if len(args) <= 4000 {
			require.Equal(t, inference.JSON(args).Compact(), shown)
		}
	})
}

// A question stays small, however large the arguments are.
func TestPreviewIsCut(t *testing.T) {
	who := &answering{answers: []phase.Answer{{}}}
	eng := build(t, func(c *engine.Config) {
		c.Resolver = who
		c.Model = enginetest.NewScript(
			enginetest.Call("c", "save", map[string]any{"deep": []any{strings.Repeat("ä", 5000)}}), enginetest.Say("done"))
	}, tools(map[string]int{}))
	_, err := eng.Run(t.Context(), spec(strict), engine.Prompt("go"))
	require.NoError(t, err)
	require.Len(t, who.asked, 1)
	require.Less(t, len(who.asked[0].Params), 9000)
	require.Contains(t, string(who.asked[0].Params), "1000 more characters")
}
