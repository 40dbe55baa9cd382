package confirm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
	"github.com/ddd26017/fixpoint/state"
)

// world is a thread with the plugin, some tools that count their calls, and gates.
type world struct {
	thread *engine.Thread
	rec    *enginetest.Recorder
	spec   engine.AgentSpec
	ran    []string // "tool args" of the calls that ran, in order
	asked  []gate.Ticket
}

type setup struct {
	section string
	options confirm.Options
	plugins []engine.Plugin
	change  func(*engine.Config)
	answers []phase.Answer // of a resolver; without any nobody is there, and ErrLeftOpen beyond them
	loose   bool           // the tools take members in any case, and the last of several
}

// loose is a tool that reads its arguments as encoding/json does.
type loose struct {
	spec inference.ToolSpec
	call func(pc *phase.Context, in saveArgs) engine.Output
}

func (l loose) Spec() inference.ToolSpec { return l.spec }

func (l loose) Call(_ context.Context, pc *phase.Context) (engine.Output, error) {
	var in saveArgs
	if err := json.Unmarshal([]byte(pc.Call().Args), &in); err != nil {
		return engine.Output{}, err
	}
	return l.call(pc, in), nil
}

type saveArgs struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
}

func (w *world) tools(lax bool) engine.Plugin {
	ran := func(pc *phase.Context, _ saveArgs) engine.Output {
		w.ran = append(w.ran, pc.Call().Name+" "+string(pc.Call().Args))
		return engine.Text("ok")
	}
	return engine.NewPlugin("tools", func(r *engine.Registrar) error {
		for _, s := range []inference.ToolSpec{{Name: "look", Kind: "read"}, {Name: "save", Kind: "write"}, {Name: "sh", Kind: "exec"}} {
			if lax {
				r.Tool(loose{s, ran})
				continue
			}
			r.Tool(engine.NewTool(s, func(_ context.Context, pc *phase.Context, in saveArgs) (engine.Output, error) {
				return ran(pc, in), nil
			}))
		}
		return nil
	})
}

func gating(name string, fn func(pc *phase.Context) gate.Decision) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) { return fn(pc), nil }))
		return nil
	})
}

func newWorld(t *testing.T, s setup, calls ...enginetest.Answer) *world {
	t.Helper()
	w := &world{}
	plugins := append([]engine.Plugin{confirm.New(s.options), w.tools(s.loose)}, s.plugins...)
	config, rec := enginetest.Config(t, plugins...)
	w.rec = rec
	config.Schemas = confirm.Schemas(nil)
	config.Model = enginetest.NewScript(append(calls, enginetest.Say("done"))...)
	if s.answers != nil {
		left := s.answers
		config.Resolver = gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
			w.asked = append(w.asked, ticket)
			if len(left) == 0 {
				return phase.Answer{}, gate.ErrLeftOpen
			}
			next := left[0]
			left = left[1:]
			return next, nil
		})
	}
	if s.change != nil {
		s.change(&config)
	}
	th, err := enginetest.Engine(t, config).NewThread("thread")
	require.NoError(t, err)
	w.thread = th
	w.spec = engine.AgentSpec{ID: "a"}
	if s.section != "" {
		w.spec.Sections = map[string]inference.JSON{confirm.Name: inference.JSON(s.section)}
	}
	return w
}

func (w *world) run(t *testing.T) *engine.Result {
	t.Helper()
	res, err := w.thread.Run(t.Context(), w.spec, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return res
}

func (w *world) resume(t *testing.T, a phase.Answer) (*engine.Result, error) {
	t.Helper()
	return w.thread.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: a})
}

// outcomes are those of the calls so far, as "tool outcome".
func (w *world) outcomes() (list []string) {
	for _, e := range enginetest.Select[engine.ToolFinished](w.rec.Events()) {
		list = append(list, fmt.Sprintf("%s %s", e.Call.Name, e.Result.Outcome))
	}
	return list
}

// last is what the model read last.
func (w *world) last(t *testing.T) string {
	t.Helper()
	done := enginetest.Select[engine.ToolFinished](w.rec.Events())
	require.NotEmpty(t, done)
	return done[len(done)-1].Result.Content
}

func value(text inference.JSON) phase.Answer { return phase.Answer{Approved: true, Value: text} }

func call(id, tool, args string) enginetest.Answer {
	return enginetest.Call(id, tool, inference.JSON(args))
}

// Capability G5. Yes runs the call, no does not and the model reads why, in whichever way
// it is said; tools of kind read are not asked about, and an unknown one is not either.
func TestYesAndNo(t *testing.T) {
	no, err := confirm.Answer{Choice: confirm.No, Reason: "not on Fridays"}.Reply()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		answer  phase.Answer
		outcome string
		says    string
	}{
		"plain yes":    {phase.Answer{Approved: true}, "save ok", "ok"},
		"yes":          {value(`{"choice":"yes"}`), "save ok", "ok"},
		"plain no":     {phase.Answer{Reason: "not on Fridays"}, "save denied", "denied: not on Fridays"},
		"no":           {no, "save denied", "denied: not on Fridays"},
		"no in value":  {value(`{"choice":"no","reason":"not on Fridays"}`), "save blocked", "blocked: not on Fridays"},
		"a silent no":  {value(`{"choice":"no"}`), "save blocked", "blocked: the user said no"},
		"not bothered": {phase.Answer{Cancel: true}, "save cancelled", "called off: nobody decided"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setup{answers: []phase.Answer{c.answer}},
				call("c1", "look", `{"path":"a"}`), call("c2", "dance", `{}`), call("c3", "save", `{"path":"a"}`))
			w.run(t)
			require.Equal(t, []string{"look ok", "dance error", c.outcome}, w.outcomes())
			require.Equal(t, c.says, w.last(t))
			require.Len(t, w.asked, 1)
			require.Equal(t, "Allow save?", w.asked[0].Message)
			require.Equal(t, confirm.Name, w.asked[0].Plugin)
		})
	}
}

// Which tools are asked about is the section's to say.
func TestWhichToolsAreAsked(t *testing.T) {
	for section, want := range map[string][]string{
		``:                                 {"save", "sh"},
		`{}`:                               {"save", "sh"},
		`{"except":[]}`:                    {"look", "save", "sh"},
		`{"ask":["kind:exec"]}`:            {"sh"},
		`{"ask":["s*"],"except":["save"]}`: {"sh"},
		`{"ask":[]}`:                       nil,
	} {
		yes := phase.Answer{Approved: true}
		w := newWorld(t, setup{section: section, answers: []phase.Answer{yes, yes, yes}},
			call("c1", "look", `{"path":"a"}`), call("c2", "save", `{"path":"a"}`), call("c3", "sh", `{"path":"a"}`))
		w.run(t)
		var got []string
		for _, ticket := range w.asked {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(ticket.Message, "Allow "), "?"))
		}
		require.Equal(t, want, got, section)
		require.Len(t, w.ran, 3)
	}
}

// A value that is no answer is an error and changes nothing: the same question stands.
func TestBadAnswersChangeNothing(t *testing.T) {
	w := newWorld(t, setup{section: `{"unattended":"wait"}`}, call("c1", "save", `{"path":"a"}`))
	res := w.run(t)
	require.Len(t, res.Tickets, 1)
	ticket, before := res.Tickets[0], w.thread.Snapshot().Revision()
	for _, bad := range []inference.JSON{
		`"yes"`, `{}`, `{"choice":"perhaps"}`, `{"choice":"yes","n":3}`, `{"choice":"times"}`, `{"choice":"times","n":0}`,
		`{"choice":"times","n":1001}`, `{"choice":"times","n":1.5}`, `{"choice":"edit"}`, `{"choice":"edit","args":null}`,
		`{"choice":"edit","args":[1]}`, `{"choice":"always","scope":"ever"}`, `{"choice":"always","covers":"some"}`,
		`{"choice":"always","scope":"persistent"}`, `{"choice":"no","args":{}}`, `{"choice":"yes","more":1}`, `{"choice":"yes"} 1`,
	} {
		_, err := w.resume(t, value(bad))
		require.ErrorIs(t, err, engine.ErrDecision, bad)
		require.ErrorIs(t, err, engine.ErrBadAnswer, bad)
	}
	require.Equal(t, before, w.thread.Snapshot().Revision())
	require.Equal(t, []gate.Ticket{ticket}, w.thread.Tickets())
	_, err := w.resume(t, value(`{"choice":"yes"}`))
	require.NoError(t, err)
	require.Equal(t, []string{"save ok"}, w.outcomes())
}

// Even if the engine's checker lets everything through, an answer that cannot be used is
// no approval: the call stays, and the next question says what was wrong with it.
func TestAnswersThatNobodyChecked(t *testing.T) {
	w := newWorld(t, setup{
		section: `{"no_edit":["save"]}`,
		answers: []phase.Answer{value(`{"choice":"perhaps"}`), value(`{"choice":"perhaps"}`), value(`{"choice":"edit","args":{"path":"b"}}`), value(`{"choice":"yes"}`)},
		change: func(c *engine.Config) {
			c.Schemas = engine.SchemaCheckerFunc(func(_, _ inference.JSON) error { return nil })
		},
	}, call("c1", "save", `{"path":"a"}`))
	w.run(t)
	require.Len(t, w.asked, 4)
	require.Contains(t, w.asked[1].Message, `choice is "perhaps"; use yes, no`)
	require.Contains(t, w.asked[2].Message, w.asked[1].ID)
	require.Contains(t, w.asked[3].Message, "this tool does not take edited arguments")
	require.Equal(t, []string{`save {"path":"a"}`}, w.ran)
}

func saves(paths ...string) (calls []enginetest.Answer) {
	for i, p := range paths {
		tool := "save"
		if strings.HasPrefix(p, "sh:") {
			tool, p = "sh", p[3:]
		}
		calls = append(calls, call(fmt.Sprintf("c%d", i+1), tool, `{"path":"`+p+`"}`))
	}
	return calls
}

// Capability G5. Always holds for what it covers: the tool, exactly these arguments, or all.
func TestAlwaysCovers(t *testing.T) {
	for covers, asks := range map[string]int{
		``:                 2, // a; sh
		`,"covers":"tool"`: 2,
		`,"covers":"call"`: 3, // a; b; sh
		`,"covers":"all"`:  1,
	} {
		yes := phase.Answer{Approved: true}
		w := newWorld(t, setup{answers: []phase.Answer{value(inference.JSON(`{"choice":"always"` + covers + `}`)), yes, yes, yes}},
			saves("a", "a", "b", "sh:a")...)
		w.run(t)
		require.Len(t, w.ran, 4)
		require.Len(t, w.asked, asks, covers)
	}
}

// Arguments that tools may read in several ways are covered only as they are written,
// although their fingerprint is the same.
func TestAlwaysCoversOneReading(t *testing.T) {
	for first, then := range map[string]string{
		`{"PATH":"evil","path":"a"}`:   `{"path":"a","PATH":"evil"}`,
		`{"path":"a"}`:                 `{"path":"evil","path":"a"}`,
		`{"path":"a","text":"\u0062"}`: `{"Text":"evil","text":"b","path":"a"}`,
		`{"path":"a","text":"b"}`:      "",
		`{"path":"a","text":"{\"path\":1,\"path\":[[{}],\"path\"]}"}`: "",
	} {
		want := 2
		if then == "" {
			then, want = first, 1
		}
		w := newWorld(t, setup{loose: true, answers: []phase.Answer{value(`{"choice":"always","covers":"call"}`), {}}}, call("c1", "save", first), call("c2", "save", then))
		w.run(t)
		require.Len(t, w.asked, want, then)
		require.Len(t, w.ran, 3-want, then)
	}
}

// Capability G5. Always holds for the run, the thread, or for all runs of the owner, and
// then until it is taken back.
func TestAlwaysScopes(t *testing.T) {
	profiles := enginetest.NewProfiles()
	owner := "ann"
	options := confirm.Options{Profiles: profiles, Owner: func(phase.RunInfo) string { return owner }}
	for _, c := range []struct {
		scope       string
		again, anew int // questions in a second run of the thread, and in a run of another thread
	}{{"run", 1, 1}, {"thread", 0, 1}, {"persistent", 0, 0}} {
		first := phase.Answer{Approved: true, Value: inference.JSON(`{"choice":"always","scope":"` + c.scope + `"}`)}
		yes := phase.Answer{Approved: true}
		w := newWorld(t, setup{options: options, answers: []phase.Answer{first, yes, yes}},
			append(append(saves("a", "b"), enginetest.Say("done")), saves("c")...)...)
		w.run(t)
		require.Len(t, w.asked, 1, c.scope)
		w.run(t)
		require.Len(t, w.asked, 1+c.again, c.scope)
		require.Len(t, w.ran, 3)

		other := newWorld(t, setup{options: options, answers: []phase.Answer{yes}}, saves("d")...)
		other.run(t)
		require.Len(t, other.asked, c.anew, c.scope)
	}
	kept, err := confirm.Profile.Get(t.Context(), profiles, "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"tool:save"}, kept)

	owner = "bob"
	w := newWorld(t, setup{options: options, answers: []phase.Answer{{}}}, saves("d")...)
	w.run(t)
	require.Len(t, w.asked, 1, "it is the owner's")

	owner = "ann"
	_, err = confirm.Profile.Update(t.Context(), profiles, owner, func([]string) []string { return nil })
	require.NoError(t, err)
	w = newWorld(t, setup{options: options, answers: []phase.Answer{{}}}, saves("d")...)
	w.run(t)
	require.Len(t, w.asked, 1, "it was taken back")
}

type brokenProfiles struct{ state.ProfileStore }

func (brokenProfiles) LoadProfile(context.Context, string, string) ([]byte, uint64, error) {
	return nil, 0, errors.New("the disk is gone")
}

// Profiles that cannot be read or written cost questions, not the run.
func TestBrokenProfiles(t *testing.T) {
	w := newWorld(t, setup{
		options: confirm.Options{Profiles: brokenProfiles{}},
		answers: []phase.Answer{value(`{"choice":"always","scope":"persistent"}`)},
	}, saves("a", "b")...)
	require.Equal(t, phase.ReasonNatural, w.run(t).Reason)
	require.Len(t, w.ran, 2)
	require.Len(t, w.asked, 1, "for the run it holds")
	require.Contains(t, strings.Join(w.rec.Lines(), "\n"), "the disk is gone")
}

// What the person said for later counts only if the call went ahead: a guard's block
// voids the rest too.
func TestNothingIsRememberedOfABlockedCall(t *testing.T) {
	stricter := gating("stricter", func(pc *phase.Context) gate.Decision {
		if c, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID); len(c.Answers) > 0 && pc.Call().ID == "c1" {
			return gate.Block("on second thoughts")
		}
		return gate.Abstain()
	})
	w := newWorld(t, setup{answers: []phase.Answer{value(`{"choice":"always","covers":"all"}`), {}}, plugins: []engine.Plugin{stricter}}, saves("a", "b")...)
	w.run(t)
	require.Equal(t, []string{"save blocked", "save denied"}, w.outcomes())
}

// The value of an answer to another plugin's question is none of this plugin's business.
func TestOtherQuestionsAreNotItsOwn(t *testing.T) {
	other := gating("other", func(pc *phase.Context) gate.Decision {
		if pc.Call().ID == "c1" {
			return gate.Suspend(gate.Ticket{Message: "Another question"})
		}
		return gate.Abstain()
	})
	w := newWorld(t, setup{answers: []phase.Answer{value(`{"choice":"always","covers":"all"}`), {}}, plugins: []engine.Plugin{other}}, saves("a", "b")...)
	w.run(t)
	require.Len(t, w.asked, 2, "a yes to any question about exactly this call approves it")
	require.Equal(t, []string{"other", "confirm"}, []string{w.asked[0].Plugin, w.asked[1].Plugin})
	require.Equal(t, []string{"save ok", "save denied"}, w.outcomes())
}

// A gate that asked another question and has no more to say leaves the call to be asked
// about, also when it is a delegate's.
func TestAnotherYesIsNoYesToThis(t *testing.T) {
	other := gating("other", func(pc *phase.Context) gate.Decision {
		if _, answered := pc.Answer(); !answered && pc.Call().Name == "save" {
			return gate.Suspend(gate.Ticket{Message: "Another question"})
		}
		return gate.Abstain()
	})
	plugins := func(w *world) (list []string) {
		for _, ticket := range w.asked {
			list = append(list, ticket.Plugin)
		}
		return list
	}
	yes := phase.Answer{Approved: true}
	w := newWorld(t, setup{answers: []phase.Answer{yes, {}}, plugins: []engine.Plugin{other}}, saves("a")...)
	w.run(t)
	require.Equal(t, []string{"other", "confirm"}, plugins(w))
	require.Empty(t, w.ran)

	w = newWorld(t, setup{section: `{"except":["kind:delegate"]}`, answers: []phase.Answer{yes, {}}, plugins: []engine.Plugin{other}, change: func(c *engine.Config) {
		c.Agents = []engine.AgentSpec{{ID: "helper", ModelID: "helper", ActiveHookFilter: []string{"tools"}}}
		c.Models = map[string]inference.Model{"helper": enginetest.NewScript(append(saves("a"), enginetest.Say("saved"))...)}
	}}, enginetest.Call("d1", engine.DelegatePrefix+"helper", map[string]string{"input": "save it"}))
	w.spec.Delegates = []string{"helper"}
	w.run(t)
	require.Equal(t, []string{"other", "confirm"}, plugins(w))
	require.Empty(t, w.ran)
}

func shown(t *testing.T, ticket gate.Ticket) (p confirm.Preview) {
	t.Helper()
	require.NoError(t, ticket.Params.Decode(&p))
	return p
}

// The question shows the arguments to be read and the diff that the tool's previewer
// makes. What hides is escaped, what is long is cut in the middle, a previewer that fails
// does not keep the question from being asked.
func TestPreviews(t *testing.T) {
	files := fstest.MapFS{"notes/a": {Data: []byte("one\ntwo\n")}, "raw": {Data: []byte{0xff}}}
	options := confirm.Options{Previews: map[string]confirm.Previewer{"save": confirm.FileDiff(files, "path", "text")}}
	for _, c := range []struct {
		args, text, diff, fault string
	}{
		{`{"path":"x/../notes/a","text":"one\nzwei\n"}`, "{\n  \"path\": \"x/../notes/a\",\n  \"text\": \"one\\nzwei\\n\"\n}",
			"--- a/notes/a\n+++ b/notes/a\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n", ""},
		{`{"path":"new","text":"1"}`, "{\n  \"path\": \"new\",\n  \"text\": \"1\"\n}", "--- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+1\n\\ No newline at end of file\n", ""},
		{`{"path":"raw","text":"1"}`, "{\n  \"path\": \"raw\",\n  \"text\": \"1\"\n}", "", "raw is too long to compare, or no text"},
		{`{"path":"../a","text":"1"}`, "{\n  \"path\": \"../a\",\n  \"text\": \"1\"\n}", "", "is not below the folder"},
		{"{\"path\":\"gpj\u202eexe\U000e0041\"}", "{\n  \"path\": \"gpj\\u202eexe\\udb40\\udc41\"\n}", "", "no text in path or text"},
		{"{\"path\":\"a\u3164\u115f\u034f\ufe0f\u2800b\"}", "{\n  \"path\": \"a\\u3164\\u115f\\u034f\\ufe0f\\u2800b\"\n}", "", "no text in path or text"},
		{"{\"path\":\"../\u202e\",\"text\":\"1\"}", "{\n  \"path\": \"../\\u202e\",\n  \"text\": \"1\"\n}", "", `../\u202e is not below`},
		// Tools take the last of these for the path, and may take a path without the space around it.
		{`{"path":"new","PATH":"notes/a","text":"1"}`, "{\n  \"path\": \"new\",\n  \"PATH\": \"notes/a\",\n  \"text\": \"1\"\n}", "", "more than one member"},
		{`{"path":" notes/a","text":"1"}`, "{\n  \"path\": \" notes/a\",\n  \"text\": \"1\"\n}", "", "has space around it"},
	} {
		w := newWorld(t, setup{loose: true, options: options, answers: []phase.Answer{{}}}, call("c1", "save", c.args))
		w.run(t)
		p := shown(t, w.asked[0])
		require.Equal(t, c.text, p.Text)
		require.Equal(t, c.diff, p.Diff)
		if c.fault == "" {
			require.Empty(t, p.DiffError)
		} else {
			require.Contains(t, p.DiffError, c.fault)
		}
		require.Equal(t, c.args, string(p.Args))
		require.Equal(t, "write", p.Kind)
		require.Equal(t, []confirm.Choice{"yes", "no", "edit", "always", "times"}, p.Choices)
		require.Equal(t, []confirm.Scope{"run", "thread"}, p.Scopes)
	}

	w := newWorld(t, setup{options: options, answers: []phase.Answer{{}}},
		call("c1", "save", `{"path":"new","text":"`+strings.Repeat(`ä\n`, 100_000)+`end"}`))
	w.run(t)
	p := shown(t, w.asked[0])
	require.Empty(t, p.Args)
	for _, text := range []string{p.Text, p.Diff} {
		require.Less(t, len(text), confirm.LongText+100)
		require.Contains(t, text, "bytes are not shown")
		require.Contains(t, text[len(text)-100:], "end")
	}
}

// Faults of the section are found before anything runs.
func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, confirm.New(confirm.Options{}))
	eng := enginetest.Engine(t, config)
	for section, says := range map[string]string{
		`{"ask":["["]}`:            "no pattern",
		`{"except":["kind:["]}`:    "no pattern",
		`{"no_edit":["["]}`:        "no pattern",
		`{"auto":-2}`:              "auto is -2",
		`{"unattended":"approve"}`: "use deny, allow or wait",
		`{"lifetime":"0s"}`:        "positive duration",
		`{"lifetime":"soon"}`:      "positive duration",
		`{"aks":["*"]}`:            "aks",
	} {
		err := eng.Check(engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{confirm.Name: inference.JSON(section)}})
		require.ErrorIs(t, err, engine.ErrSpec, section)
		require.ErrorContains(t, err, says)
	}
}

// Without somebody to check answers nothing is asked, and the reason says what to do.
func TestNoSchemaChecker(t *testing.T) {
	w := newWorld(t, setup{answers: []phase.Answer{{Approved: true}}, change: func(c *engine.Config) { c.Schemas = nil }}, saves("a")...)
	w.run(t)
	require.Empty(t, w.ran)
	require.Contains(t, w.last(t), "Config.Schemas")
}
