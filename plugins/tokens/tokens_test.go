package tokens_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/tokens"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func spec(section string) engine.AgentSpec {
	s := engine.AgentSpec{ID: "a"}
	if section != "" {
		s.Sections = map[string]inference.JSON{tokens.Name: inference.JSON(section)}
	}
	return s
}

// steps is a model that works n steps and then says done, with 100 tokens more of input
// each time and 10 of output.
func steps(n int) *enginetest.Script {
	var answers []enginetest.Answer
	usage := func(i int) inference.Usage {
		return inference.Usage{InputTokens: int64(100 * (i + 1)), OutputTokens: 10}
	}
	for i := range n {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), "work", nil).Costing(usage(i)))
	}
	return enginetest.NewScript(append(answers, enginetest.Say("done").Costing(usage(n)))...)
}

func prompt() engine.Input {
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{enginetest.StubTool("work", engine.Text("ok"))}
	return in
}

// notes returns the system messages of each request.
func notes(requests []inference.Request) (out [][]string) {
	for _, r := range requests {
		var texts []string
		for _, m := range r.Messages {
			if m.Role == inference.RoleSystem {
				texts = append(texts, m.Text)
			}
		}
		out = append(out, texts)
	}
	return out
}

func run(t *testing.T, section string, model *enginetest.Script) [][]string {
	t.Helper()
	config, _ := enginetest.Config(t, tokens.New())
	config.Model = model
	res, err := enginetest.Engine(t, config).Run(t.Context(), spec(section), prompt())
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Zero(t, res.Stats.DeadLetters)
	out := notes(model.Requests())
	for i, list := range out {
		if len(list) > 1 {
			last := model.Requests()[i].Messages
			require.Equal(t, list[1], last[len(last)-1].Text, "it stands behind everything else")
		}
	}
	return out
}

// Capability G7. Capability H3. The budget is told at the start and stays; what is used
// is told behind tool results, for one call each.
func TestTold(t *testing.T) {
	first := "You may use 1000 tokens in this run. Your context window has 4000 tokens."
	require.Equal(t, [][]string{
		{first},
		{first, "This run has used 110 of its 1000 tokens; 890 are left. Your context holds 110 of 4000 tokens."},
		{first, "This run has used 320 of its 1000 tokens; 680 are left. Your context holds 210 of 4000 tokens."},
		{first, "This run has used 630 of its 1000 tokens; 370 are left. Your context holds 310 of 4000 tokens."},
		{first, "This run has used 1040 of its 1000 tokens; 0 are left. Your context holds 410 of 4000 tokens."},
	}, run(t, `{"budget": 1000, "windows": {"*": 4000}}`, steps(4)))

	require.Equal(t, [][]string{nil, {"This run has used 110 tokens."}}, run(t, "", steps(1)), "without a section there is nothing to tell at first")
}

// Notes come every so many steps, from a share on.
func TestThrottled(t *testing.T) {
	count := func(notes [][]string) (out []int) {
		for i, list := range notes {
			if len(list) > 1 {
				out = append(out, i+1)
			}
		}
		return out
	}
	require.Equal(t, []int{4, 7}, count(run(t, `{"budget": 10000, "every": 3}`, steps(8))))
	require.Empty(t, count(run(t, `{"budget": 10000, "every": 0}`, steps(8))))
	require.Equal(t, []int{5, 6}, count(run(t, `{"budget": 2000, "from": 0.5}`, steps(5))))
	require.Equal(t, []int{4, 5, 6}, count(run(t, `{"budget": 100000, "windows": {"*": 600}, "from": 0.5}`, steps(5))), "the window counts too")
	require.Equal(t, [][]string{nil, nil, nil}, run(t, `{"from": 0.5}`, steps(2)), "a share of nothing is never reached")

	silent := enginetest.NewScript(enginetest.Call("c", "work", nil), enginetest.Say("done"))
	require.Empty(t, count(run(t, `{"budget": 100}`, silent)), "a model that tells no usage has nothing to be told")
}

// The window is that of the model that answered, if it is known, and after a handoff that
// of the other agent, whose model counts tokens in its own way.
func TestWindows(t *testing.T) {
	answer := func(model string) enginetest.Answer {
		return enginetest.Answer{Fn: func(inference.Request) (inference.Response, error) {
			call := inference.ToolCall{ID: "x-" + model, Name: "work"}
			return inference.Response{Message: inference.Assistant("", call), Model: model, Stop: inference.StopToolUse,
				Usage: inference.Usage{InputTokens: 50}}, nil
		}}
	}
	a := enginetest.NewScript(answer("big"), answer("never heard of"),
		enginetest.Call("h", "hand_off", nil).Costing(inference.Usage{InputTokens: 70}),
		enginetest.Say("done"))
	config, _ := enginetest.Config(t, tokens.New())
	config.Models = map[string]inference.Model{"m": a, "n": a}
	config.Agents = []engine.AgentSpec{{ID: "b", ModelID: "n", Sections: map[string]inference.JSON{"tokens": `{"windows": {"n": 3}}`}}}
	s := spec(`{"windows": {"m": 100, "big": 1000}}`)
	s.ModelID = "m"
	in := prompt()
	var hand phase.Command
	hand.Update(engine.HandOff("b"))
	in.Tools = append(in.Tools, enginetest.StubTool("hand_off", engine.Output{Content: "ok", Command: hand}))
	res, err := enginetest.Engine(t, config).Run(t.Context(), s, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, "b", res.Agent)
	var last []string
	for _, list := range notes(a.Requests()) {
		last = append(last, list[len(list)-1])
	}
	require.Equal(t, []string{
		"Your context window has 100 tokens.",
		"This run has used 50 tokens. Your context holds 50 of 1000 tokens.",
		"This run has used 100 tokens. Your context holds 50 of 100 tokens.",
		"This run has used 170 tokens.",
	}, last)
}

// A second run of a thread knows how full the context is, and counts its own use.
func TestSecondRun(t *testing.T) {
	model := enginetest.NewScript(enginetest.Say("one").Costing(inference.Usage{InputTokens: 40}),
		enginetest.Call("c", "work", nil).Costing(inference.Usage{InputTokens: 60}), enginetest.Say("two"))
	config, _ := enginetest.Config(t, tokens.New())
	config.Model = model
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	for range 2 {
		res, err := th.Run(t.Context(), spec(`{"windows": {"*": 100}}`), prompt())
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.Equal(t, []string{
		"Your context window has 100 tokens.",
		"Your context window has 100 tokens. At least 40 of them are taken.",
		"This run has used 60 tokens. Your context holds 60 of 100 tokens.",
	}, notes(model.Requests()[2:])[0])
	require.Equal(t, tokens.Fill{Agent: "a", Tokens: 60}, tokens.Context.Get(th.Snapshot()))
}

// A run that waits goes on in another process: the start is not told again, and what was
// used before counts.
func TestResume(t *testing.T) {
	journal, model := memstore.New(memstore.Options{}), steps(3)
	asking := engine.NewPlugin("asking", func(r *engine.Registrar) error {
		r.Tool(enginetest.StubTool("work", engine.Text("ok")))
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Ask(gate.Ticket{Kind: gate.Confirm, Message: "may it?"}), nil
		}))
		return nil
	})
	build := func() *engine.Engine {
		config, _ := enginetest.Config(t, tokens.New(), asking)
		config.Journal, config.Model = journal, model
		return enginetest.Engine(t, config)
	}
	s := spec(`{"budget": 5000, "every": 2}`)
	th, err := build().NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), s, engine.Prompt("go"))
	require.NoError(t, err)
	for res.Status == phase.Waiting {
		th, err = build().OpenThread(t.Context(), "t")
		require.NoError(t, err)
		res, err = th.Resume(t.Context(), s, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: res.Tickets[0].ID, Approved: true}})
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	first := "You may use 5000 tokens in this run."
	require.Equal(t, [][]string{{first}, {first}, {first, "This run has used 320 of its 5000 tokens; 4680 are left."}, {first}},
		notes(model.Requests()))
}

// Capability G9. Runs side by side on one engine count for themselves.
func TestConcurrentRuns(t *testing.T) {
	config, _ := enginetest.Config(t, tokens.New())
	var mu sync.Mutex
	got := map[string][]string{} // by the run's input
	script := steps(4)
	config.Model = inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		mu.Lock()
		last := r.Messages[len(r.Messages)-1]
		got[r.Messages[0].Text] = append(got[r.Messages[0].Text], last.Text)
		mu.Unlock()
		return script.Generate(ctx, r)
	})
	eng := enginetest.Engine(t, config)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			in := prompt()
			in.Messages = []inference.Message{inference.User(fmt.Sprint("go ", i))}
			if _, err := eng.Run(t.Context(), spec(`{"budget": 2000}`), in); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, got, 16)
	for _, texts := range got {
		require.Equal(t, []string{
			"You may use 2000 tokens in this run.",
			"This run has used 110 of its 2000 tokens; 1890 are left.",
			"This run has used 320 of its 2000 tokens; 1680 are left.",
			"This run has used 630 of its 2000 tokens; 1370 are left.",
			"This run has used 1040 of its 2000 tokens; 960 are left.",
		}, texts)
	}
}

func TestFaultySettings(t *testing.T) {
	for want, s := range map[string]tokens.Settings{
		"tokens: budget is -1":          {Budget: -1},
		"tokens: windows has a model":   {Windows: map[string]int64{"": 1}},
		`tokens: windows["m"] is 0`:     {Windows: map[string]int64{"m": 0}},
		"tokens: every is -1":           {Every: -1},
		"tokens: from is 1.5":           {From: 1.5},
		"want a share from 0 to 1":      {From: -0.5},
		`use its model id, or "*" for `: {Windows: map[string]int64{"": 1}},
	} {
		require.ErrorContains(t, s.Validate(), want)
	}
	require.NoError(t, tokens.Settings{}.Validate())
	config, _ := enginetest.Config(t, tokens.New())
	config.Model = steps(0)
	s, err := engine.ParseSpec("a.json", []byte("{\"id\": \"a\", \"sections\": {\"tokens\": {\n \"windows\": {\"m\": \"big\"}}}}"))
	require.NoError(t, err)
	require.ErrorContains(t, enginetest.Engine(t, config).Check(s), "a.json:2:19: sections.tokens.windows.m")
}

func TestManifest(t *testing.T) {
	config, _ := enginetest.Config(t, tokens.New())
	m := enginetest.Engine(t, config).Describe()
	require.Empty(t, m.Undeclared)
	require.Empty(t, m.Conflicts)
}
