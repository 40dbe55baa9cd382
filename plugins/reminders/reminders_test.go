package reminders_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/reminders"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func spec(rules ...string) engine.AgentSpec {
	return engine.AgentSpec{ID: "a", MaxRounds: 100, Sections: map[string]inference.JSON{
		reminders.Name: inference.JSON(`{"rules": [` + strings.Join(rules, ",") + `]}`)}}
}

func prompt(text string) engine.Input {
	in := engine.Prompt(text)
	for _, name := range []string{"write_a", "write_b", "look", "todo_add"} {
		in.Tools = append(in.Tools, enginetest.StubTool(name, engine.Text("result of "+name)))
	}
	return in
}

// uses is a model that in each step uses the named tools, and then says done.
func uses(steps ...string) *enginetest.Script {
	var answers []enginetest.Answer
	for i, tools := range steps {
		var a enginetest.Answer
		for j, tool := range strings.Fields(tools) {
			a = a.And(enginetest.Call(fmt.Sprintf("c%d-%d", i, j), tool, nil))
		}
		answers = append(answers, a)
	}
	return enginetest.NewScript(append(answers, enginetest.Say("done"))...)
}

// fresh returns the system messages of each request that the one before did not have.
func fresh(requests []inference.Request) (out [][]string) {
	before := map[string]int{}
	for _, r := range requests {
		var news []string
		now := map[string]int{}
		for _, m := range r.Messages {
			if m.Role == inference.RoleSystem {
				if now[m.Text]++; now[m.Text] > before[m.Text] {
					news = append(news, m.Text)
				}
			}
		}
		out, before = append(out, news), now
	}
	return out
}

func start(t *testing.T, model inference.Model, others ...engine.Plugin) *engine.Engine {
	t.Helper()
	config, _ := enginetest.Config(t, append([]engine.Plugin{reminders.New()}, others...)...)
	config.Model = model
	return enginetest.Engine(t, config)
}

// given runs the script and returns what was new in each request.
func given(t *testing.T, s engine.AgentSpec, model *enginetest.Script) [][]string {
	t.Helper()
	res, err := start(t, model).Run(t.Context(), s, prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Zero(t, res.Stats.DeadLetters)
	return fresh(model.Requests())
}

// at turns the result of given into the numbers of the steps that had something new.
func at(news [][]string) (out []int) {
	for i, list := range news {
		if len(list) > 0 {
			out = append(out, i+1)
		}
	}
	return out
}

// Capability G7. Each kind of condition is due when it says.
func TestConditions(t *testing.T) {
	script := func() *enginetest.Script {
		return uses("look", "write_a look", "write_b", "look", "todo_add", "look", "look", "look", "look")
	}
	for when, want := range map[string][]int{
		`{"every": 3}`:                             {4, 7, 10},
		`{"every": 1}`:                             {2, 3, 4, 5, 6, 7, 8, 9, 10},
		`{"every": 20}`:                            nil,
		`{"after_tool": "write_*"}`:                {3, 4},
		`{"after_tool": "todo_add"}`:               {6},
		`{"after_tool": "never"}`:                  nil,
		`{"unused": "todo_*", "steps": 3}`:         {4, 9},
		`{"unused": "write_*", "steps": 2}`:        {6, 8, 10},
		`{"unused": "*", "steps": 1}`:              nil,
		`{"message": "^go$"}`:                      {1},
		`{"message": "of write_[ab]"}`:             nil,
		`{"message": "of write_", "from": "tool"}`: {3, 4},
		`{"message": "g|of todo", "from": "any"}`:  {1, 6},
		`{"message": "x", "from": "assistant"}`:    nil,
	} {
		news := given(t, spec(`{"name": "r", "text": "Mind.", "when": `+when+`}`), script())
		require.Equal(t, want, at(news), when)
	}
}

// A rule comes as often as it may, for good or for one call, and rules that are due
// together come in their order.
func TestTimesAndNotes(t *testing.T) {
	model := uses("look", "look", "look", "look")
	given(t, spec(
		`{"name": "b", "text": "second", "when": {"every": 1}, "times": 2}`,
		`{"name": "a", "text": "first", "when": {"every": 2}, "note": "one_shot", "times": 1}`), model)
	var all [][]string
	for _, r := range model.Requests() {
		var texts []string
		for _, m := range r.Messages {
			if m.Role == inference.RoleSystem {
				texts = append(texts, m.Text)
			}
		}
		all = append(all, texts)
	}
	require.Equal(t, [][]string{nil, {"second"}, {"second", "second", "first"}, {"second", "second"}, {"second", "second"}}, all)
}

// A call that did not run is no use of its tool.
func TestBlockedCallIsNoUse(t *testing.T) {
	guard := engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Name == "todo_add" {
				return gate.Block("no"), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
	model := uses("todo_add", "todo_add", "look", "fails")
	in := prompt("go")
	in.Tools = append(in.Tools, engine.NewTool(inference.ToolSpec{Name: "fails"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Output{}, errors.New("no")
	}))
	_, err := start(t, model, guard).Run(t.Context(), spec(
		`{"name": "a", "text": "after", "when": {"after_tool": "todo_add"}}`,
		`{"name": "u", "text": "unused", "when": {"unused": "todo_add", "steps": 3}}`,
		`{"name": "f", "text": "failed", "when": {"after_tool": "fails"}}`), in)
	require.NoError(t, err)
	require.Equal(t, [][]string{nil, nil, nil, {"unused"}, {"failed"}}, fresh(model.Requests()))
}

// Of a history that somebody cut, what the user says next is looked at all the same.
func TestCutHistory(t *testing.T) {
	model := uses("look", "look")
	th, err := start(t, model).NewThread("")
	require.NoError(t, err)
	s := spec(`{"name": "r", "text": "Ask before you deploy.", "when": {"message": "deploy"}}`)
	for _, input := range []string{"deploy it", "and now deploy that"} {
		_, err = th.Run(t.Context(), s, prompt(input))
		require.NoError(t, err)
		var cmd phase.Command
		cmd.Update(engine.Transcript.Replace(inference.User("deploy: the story so far"), inference.Assistant("I see")))
		_, err = th.Submit(t.Context(), "compactor", cmd)
		require.NoError(t, err)
	}
	requests := model.Requests()
	require.Len(t, requests[len(requests)-2].Messages, 4)
	require.Equal(t, "Ask before you deploy.", requests[len(requests)-2].Messages[3].Text)
	require.Equal(t, "Ask before you deploy.", requests[0].Messages[1].Text)
}

// The same run tells the same story, whatever the timing of parallel calls.
func TestDeterminism(t *testing.T) {
	enginetest.CheckDeterminism(t, 9, func(shuffle enginetest.Shuffle) []string {
		config, rec := enginetest.Config(t, reminders.New())
		config.Model = uses("look write_a look", "write_b look write_a", "look look look todo_add")
		s := spec(`{"name": "a", "text": "a", "when": {"after_tool": "write_*"}}`, `{"name": "u", "text": "u", "when": {"unused": "write_*", "steps": 1}}`,
			`{"name": "m", "text": "m", "when": {"message": "of look", "from": "tool"}, "note": "one_shot"}`)
		s.ToolExecution = engine.ToolsParallel
		in := engine.Prompt("go")
		for _, name := range []string{"write_a", "write_b", "look", "todo_add"} {
			in.Tools = append(in.Tools, engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
				shuffle()
				return engine.Text("result of " + name), nil
			}))
		}
		res, err := enginetest.Engine(t, config).Run(t.Context(), s, in)
		require.NoError(t, err)
		require.NoError(t, res.Err)
		return rec.Lines()
	})
}

// rule is a condition of the reference model below.
type rule struct {
	kind, pattern string
	n, times      int

	done, fired int
}

// due is the rule in the plainest words: whether it is due behind the steps so far.
func (r *rule) due(steps []string) bool {
	used := func(step string) bool {
		for _, tool := range strings.Fields(step) {
			if ok, _ := path.Match(r.pattern, tool); ok {
				return true
			}
		}
		return false
	}
	if r.times > 0 && r.fired == r.times {
		return false
	}
	since := steps[r.done:]
	switch r.kind {
	case "every":
		return len(since) >= r.n
	case "after_tool":
		return len(steps) > 0 && used(steps[len(steps)-1])
	default:
		if len(since) < r.n {
			return false
		}
		for _, step := range since[len(since)-r.n:] {
			if used(step) {
				return false
			}
		}
		return true
	}
}

// Whatever the rules and the tools that are used, what is given is what a plain model of
// the rules says.
func TestAgainstReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	for range 60 {
		var rules []*rule
		var texts []string
		for i := range 1 + rnd.IntN(4) {
			r := &rule{kind: pick("every", "after_tool", "unused"), pattern: pick("write_*", "look", "todo_*", "*"), n: 1 + rnd.IntN(4), times: rnd.IntN(4)}
			when := map[string]string{
				"every":      fmt.Sprintf(`{"every": %d}`, r.n),
				"after_tool": fmt.Sprintf(`{"after_tool": %q}`, r.pattern),
				"unused":     fmt.Sprintf(`{"unused": %q, "steps": %d}`, r.pattern, r.n),
			}[r.kind]
			rules = append(rules, r)
			texts = append(texts, fmt.Sprintf(`{"name": "r%d", "text": "rule %d", "when": %s, "times": %d, "note": %q}`, i, i, when, r.times, pick("", "one_shot")))
		}
		var steps []string
		for range 2 + rnd.IntN(8) {
			steps = append(steps, strings.Join([]string{pick("look", "write_a", "todo_add"), pick("", "write_b", "look")}, " "))
		}
		var want [][]string
		for i := range len(steps) + 1 {
			var news []string
			for j, r := range rules {
				if r.due(steps[:i]) {
					r.done, r.fired = i, r.fired+1
					news = append(news, fmt.Sprint("rule ", j))
				}
			}
			want = append(want, news)
		}
		s := spec(texts...)
		if rnd.IntN(2) == 0 {
			s.ToolExecution = engine.ToolsParallel
		}
		model := uses(steps...)
		res, err := start(t, model).Run(t.Context(), s, prompt("go"))
		require.NoError(t, err)
		require.NoError(t, res.Err)
		var got [][]string
		seen := map[string]int{} // in the history; a one-shot text is never there
		for _, r := range model.Requests() {
			var news []string
			now := map[string]int{}
			for _, m := range r.Messages {
				if m.Role != inference.RoleSystem {
					continue
				}
				if now[m.Text]++; now[m.Text] > seen[m.Text] {
					news = append(news, m.Text)
				}
			}
			for text := range now {
				if persistent(texts, text) {
					seen[text] = now[text]
				}
			}
			got = append(got, news)
		}
		for i := range want {
			require.ElementsMatch(t, want[i], got[i], "step %d of %q under %q", i+1, steps, texts)
		}
	}
}

// persistent reports whether the rule of that text stays in the history.
func persistent(rules []string, text string) bool {
	for _, r := range rules {
		if strings.Contains(r, `"`+text+`"`) {
			return strings.Contains(r, `"note": ""`)
		}
	}
	return false
}

func remind(id, text string, after int) enginetest.Answer {
	return enginetest.Call(id, reminders.Tool, map[string]any{"text": text, "after_steps": after})
}

// The model is reminded of what it wanted, once, also in a later run of the thread.
func TestTool(t *testing.T) {
	model := enginetest.NewScript(
		remind("1", "far", 4).And(remind("2", "near", 1)), enginetest.Call("3", "look", nil), enginetest.Say("one"),
		enginetest.Say("two"), enginetest.Say("three"), enginetest.Say("four"))
	th, err := start(t, model).NewThread("")
	require.NoError(t, err)
	for _, input := range []string{"a", "b", "c", "d"} {
		res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a"}, prompt(input))
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.Equal(t, [][]string{nil, {"You wanted to be reminded: near"}, nil, nil, {"You wanted to be reminded: far"}, nil}, fresh(model.Requests()))
	require.Zero(t, reminders.Pending.Len(th.Snapshot()))
}

// Bad arguments are told and set nothing, and there is an end to what a thread keeps.
func TestToolRefuses(t *testing.T) {
	var answers []enginetest.Answer
	for i, args := range []string{`{}`, `{"text": " ", "after_steps": 1}`, `{"text": "x", "after_steps": 0}`, `{"text": "x", "after_steps": 1001}`,
		`{"text": "x", "after_steps": 1.5}`, `{"text": "x"}`, `{"text": "x", "after_steps": 1, "often": true}`, `nonsense`,
		`{"text": "` + strings.Repeat("x", reminders.MaxText+1) + `", "after_steps": 1}`} {
		answers = append(answers, enginetest.Call(fmt.Sprint("bad", i), reminders.Tool, inference.JSON(args)))
	}
	bad := len(answers)
	for i := range reminders.MaxPending + 1 {
		answers = append(answers, remind(fmt.Sprint("good", i), "x", reminders.MaxSteps))
	}
	config, rec := enginetest.Config(t, reminders.New())
	config.Model = enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	_, err = th.Run(t.Context(), engine.AgentSpec{ID: "a", MaxRounds: 100}, engine.Prompt("go"))
	require.NoError(t, err)
	results := enginetest.Select[engine.ToolFinished](rec.Events())
	for i, e := range results {
		require.Equal(t, i < bad || i == len(results)-1, e.Result.IsError, "%d: %s", i, e.Result.Content)
	}
	require.Contains(t, results[len(results)-1].Result.Content, "32 reminders are set already")
	require.Equal(t, reminders.MaxPending, reminders.Pending.Len(th.Snapshot()))
}

// A run that waits goes on in another process with its counts and reminders.
func TestResume(t *testing.T) {
	journal := memstore.New(memstore.Options{})
	model := enginetest.NewScript(remind("1", "far", 3), enginetest.Call("2", "look", nil), enginetest.Call("3", "todo_add", nil),
		enginetest.Call("4", "look", nil), enginetest.Call("5", "look", nil), enginetest.Say("done"))
	build := func() *engine.Engine {
		asking := engine.NewPlugin("asking", func(r *engine.Registrar) error {
			r.Tool(prompt("").Tools...)
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
				return gate.Ask(gate.Ticket{Kind: gate.Confirm, Message: "may it?"}), nil
			}))
			return nil
		})
		config, _ := enginetest.Config(t, reminders.New(), asking)
		config.Journal, config.Model = journal, model
		return enginetest.Engine(t, config)
	}
	s := spec(`{"name": "todo", "text": "todo", "when": {"unused": "todo_*", "steps": 2}}`,
		`{"name": "hello", "text": "hello", "when": {"message": "go"}}`,
		`{"name": "look", "text": "looked", "when": {"after_tool": "look"}, "times": 2}`)
	th, err := build().NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), s, engine.Prompt("go"))
	require.NoError(t, err)
	waits := 0
	for ; res.Status == phase.Waiting; waits++ {
		th, err = build().OpenThread(t.Context(), "t")
		require.NoError(t, err)
		res, err = th.Resume(t.Context(), s, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: res.Tickets[0].ID, Approved: true}})
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.Equal(t, 5, waits)
	require.Equal(t, [][]string{{"hello"}, nil, {"todo", "looked"}, {"You wanted to be reminded: far"}, {"looked"}, {"todo"}}, fresh(model.Requests()))
}

// Wherever the process ends, the model is reminded once of what it wanted.
func TestReminderSurvivesCrash(t *testing.T) {
	again := 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		build := func(j engine.Journal) *engine.Engine {
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{reminders.New()}, Journal: j,
				Model: enginetest.NewScript(remind("1", "it", 1), remind("2", "that", 1), enginetest.Say("done"))})
			require.NoError(t, err)
			return e
		}
		first, err := build(broken).NewThread("t")
		require.NoError(t, err)
		_, err = first.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
		require.NoError(t, err)
		if broken.Counts().Faults[faultstore.Crash] == 0 {
			require.Greater(t, again, 10, "it has to begin again in many places")
			return
		}
		th, err := build(inner).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		if phase.RunLifecycle.Get(th.Snapshot()).Status != phase.Running {
			continue
		}
		again++
		res, err := th.Resume(t.Context(), engine.AgentSpec{ID: "a"}, engine.Input{})
		require.NoError(t, err)
		require.NoError(t, res.Err)
		var got []string
		for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
			if m.Role == inference.RoleSystem {
				got = append(got, m.Text)
			}
		}
		require.Equal(t, []string{"You wanted to be reminded: it", "You wanted to be reminded: that"}, got, "append %d", n)
	}
}

// Capability G9. Runs side by side on one engine are reminded of their own.
func TestConcurrentRuns(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	scripts := map[string]*enginetest.Script{}
	for i := range 16 {
		id := fmt.Sprint("run ", i)
		scripts[id] = enginetest.NewScript(remind("1", id, 2), enginetest.Call("2", "look", nil), enginetest.Call("3", "look", nil), enginetest.Say("done"))
	}
	eng := start(t, inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		id := r.Messages[0].Text
		mu.Lock()
		got[id] = append(got[id], fresh([]inference.Request{r})[0]...)
		mu.Unlock()
		return scripts[id].Generate(ctx, r)
	}))
	var wg sync.WaitGroup
	for id := range scripts {
		wg.Go(func() {
			s := spec(`{"name": "r", "text": "looked", "when": {"after_tool": "look"}, "times": 1, "note": "one_shot"}`)
			if _, err := eng.Run(t.Context(), s, prompt(id)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for id := range scripts {
		wanted := "You wanted to be reminded: " + id
		require.Equal(t, []string{wanted, "looked", wanted}, got[id])
	}
}

// A mistake in a condition is refused with its place.
func TestFaultyRules(t *testing.T) {
	eng := start(t, uses())
	check := func(rules string) error {
		s, err := engine.ParseSpec("a.json", []byte("{\"id\": \"a\", \"sections\": {\"reminders\": {\"rules\": [\n"+rules+"]}}}"))
		require.NoError(t, err)
		return eng.Check(s)
	}
	for when, want := range map[string]string{
		`{}`:                                     `when has 0 conditions`,
		`null`:                                   `rules[0].when`,
		`{"every": 0}`:                           `when has 0 conditions`,
		`{"every": -2}`:                          `every is -2`,
		`{"every": "often"}`:                     `every`,
		`{"evry": 1}`:                            `evry`,
		`{"every": 1, "message": "x"}`:           `2 conditions (every, message)`,
		`{"after_tool": "["}`:                    `"[" is no pattern`,
		`{"unused": "x"}`:                        `steps is 0`,
		`{"unused": "[", "steps": 1}`:            `"[" is no pattern`,
		`{"every": 1, "steps": 3}`:               `steps is 3`,
		`{"message": "("}`:                       `no regular expression`,
		`{"message": "x", "from": "system"}`:     `from is "system"`,
		`{"after_tool": "x", "from": "user"}`:    `it belongs to message`,
		`{"message": "x", "from": ["user"]}`:     `from`,
		`{"every": 1, "a": {"b": [1, {}, "}"]}}`: `unknown field`,
	} {
		err := check(`{"name": "n", "text": "t", "when": ` + when + `}`)
		require.ErrorIs(t, err, engine.ErrSpec, when)
		require.ErrorContains(t, err, want, when)
		require.ErrorContains(t, err, "a.json:2:", when)
	}
	for rules, want := range map[string]string{
		`{"text": "t", "when": {"every": 1}}`: `rules[0] has no name`,
		`{"name": "n", "text": "t", "when": {"every": 1}}, {"name": "n", "text": "t", "when": {"every": 1}}`: `rules[1]: there is a rule "n"`,
		`{"name": "n", "text": " ", "when": {"every": 1}}`:                                                   `rules[0].text has 1 bytes`,
		`{"name": "n", "text": "t", "when": {"every": 1}, "times": -1}`:                                      `rules[0].times is -1`,
		`{"name": "n", "text": "t", "when": {"every": 1}, "note": "loud"}`:                                   `rules[0].note is "loud"`,
		`{"name": "n", "text": "t"}`:                                                                         `rules[0]: reminders: when has 0`,
		`{"name": "n", "text": "t", "wehn": {"every": 1}}`:                                                   `wehn`,
	} {
		err := check(rules)
		require.ErrorIs(t, err, engine.ErrSpec, rules)
		require.ErrorContains(t, err, want)
	}
}

// Whatever is read as a condition is one, and reads the same when it is written.
func FuzzWhen(f *testing.F) {
	for _, s := range []string{`{"every": 1}`, `{"after_tool": "a*"}`, `{"unused": "a", "steps": 2}`, `{"message": "(a|b)", "from": "any"}`, `{}`, `[]`, `{"message": "("}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var w reminders.When
		if err := w.UnmarshalJSON([]byte(text)); err != nil {
			require.ErrorContains(t, err, "reminders: ")
			return
		}
		require.NoError(t, w.Validate())
		raw, err := inference.ToJSON(w)
		require.NoError(t, err)
		var again reminders.When
		require.NoError(t, again.UnmarshalJSON([]byte(raw)))
		require.Equal(t, w, again)
	})
}

func TestManifest(t *testing.T) {
	config, _ := enginetest.Config(t, reminders.New())
	m := enginetest.Engine(t, config).Describe()
	require.Empty(t, m.Undeclared)
	require.Empty(t, m.Conflicts)
}
