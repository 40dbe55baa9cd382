package cost_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/budget"
	"github.com/ddd26017/fixpoint/plugins/cost"
	"github.com/ddd26017/fixpoint/plugins/tokens"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// book keeps reports by run.
type book struct {
	mu   sync.Mutex
	runs map[string][]cost.Report
}

func (b *book) plugin() engine.Plugin {
	return cost.New(cost.Options{Tell: func(_ context.Context, r cost.Report) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.runs == nil {
			b.runs = map[string][]cost.Report{}
		}
		b.runs[r.Run] = append(b.runs[r.Run], r)
		return nil
	}})
}

// of returns what was reported of a run, in words.
func (b *book) of(run string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.runs[run] {
		line := fmt.Sprintf("%d %s", r.Step, r.Event)
		if r.At > 0 {
			line += " " + r.At.String()
		}
		if r.Model != "" {
			line += " " + r.Model
		}
		out = append(out, line+" = "+r.RunTotal.Amount.String())
	}
	return out
}

func (b *book) summary(t *testing.T, run string) cost.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.runs[run]
	require.NotEmpty(t, list)
	last := list[len(list)-1]
	require.Equal(t, cost.EventSummary, last.Event)
	return last
}

func tool(name string) engine.Tool { return enginetest.StubTool(name, engine.Text("ok")) }

func uses(in, out, cached int64) inference.Usage {
	return inference.Usage{InputTokens: in, OutputTokens: out, CachedTokens: cached}
}

// steps is a model that calls a tool n times and then says done. Each answer costs 1
// at a price of 1 for a million input tokens.
func steps(n int) *enginetest.Script {
	var answers []enginetest.Answer
	for i := range n {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), "work", nil).Costing(uses(1_000_000, 0, 0)))
	}
	return enginetest.NewScript(append(answers, enginetest.Say("done").Costing(uses(1_000_000, 0, 0)))...)
}

func spec(section string) engine.AgentSpec {
	s := engine.AgentSpec{ID: "a", ModelID: "m"}
	if section != "" {
		s.Sections = map[string]inference.JSON{cost.Name: inference.JSON(section)}
	}
	return s
}

// anyModel is a spec for an engine with one unnamed model.
func anyModel(section string) engine.AgentSpec {
	s := spec(section)
	s.ModelID = ""
	return s
}

func outcomes(rec *enginetest.Recorder) (out []inference.Outcome) {
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
		out = append(out, e.Result.Outcome)
	}
	return out
}

// start returns an engine with one model, m, whose books b keeps.
func start(t *testing.T, b *book, m inference.Model, others ...engine.Plugin) *engine.Engine {
	t.Helper()
	config, _ := enginetest.Config(t, append([]engine.Plugin{b.plugin()}, others...)...)
	config.Models = map[string]inference.Model{"m": m}
	return enginetest.Engine(t, config)
}

func prompt() engine.Input {
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{tool("work")}
	return in
}

func notes(r inference.Request) (out []string) {
	for _, m := range r.Messages {
		if m.Role == inference.RoleSystem {
			out = append(out, m.Text)
		}
	}
	return out
}

// Capability G7. Each call is charged at the price of the model that answered; run,
// thread and models have their totals, and the summary tells them.
func TestTotals(t *testing.T) {
	as := func(a enginetest.Answer, model string) enginetest.Answer {
		return enginetest.Answer{Fn: func(inference.Request) (inference.Response, error) {
			stop := inference.StopEnd
			if len(a.ToolCalls) > 0 {
				stop = inference.StopToolUse
			}
			return inference.Response{Message: inference.Assistant(a.Text, a.ToolCalls...), Usage: a.Usage, Model: model, Stop: stop}, nil
		}}
	}
	model := enginetest.NewScript(
		as(enginetest.Call("1", "work", nil).Costing(uses(1000, 100, 400)), ""),
		as(enginetest.Call("2", "work", nil).Costing(uses(2000, 200, 2500)), "big"),
		as(enginetest.Say("done").Costing(uses(10, 0, 0)), "m-2026"),
		enginetest.Say("again").Costing(uses(1_000_000, 0, 0)))
	b := &book{}
	eng := start(t, b, model)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	s := spec(`{"currency": "EUR", "prices": {"m": {"input": 1, "output": 10, "cached": "0.1"}, "big": {"input": 3, "output": 30}}}`)
	res, err := th.Run(t.Context(), s, prompt())
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, phase.ReasonNatural, res.Reason)

	small := cost.Total{Amount: 600_000 + 40_000 + 1_000_000 + 10_000, Calls: 2, Usage: uses(1010, 100, 400)}
	big := cost.Total{Amount: 6_000_000 + 6_000_000, Calls: 1, Usage: uses(2000, 200, 2500)}
	sum := b.summary(t, res.Run)
	require.Equal(t, []cost.ModelTotal{{Model: "big", Total: big}, {Model: "m", Total: small}}, sum.Models,
		"a model whose own name has no price is charged as the one that was asked for")
	require.Equal(t, small.Add(big), sum.RunTotal)
	require.Equal(t, sum.RunTotal, sum.ThreadTotal)
	require.Equal(t, "EUR", sum.Currency)
	require.Equal(t, res.Usage, sum.RunTotal.Usage)

	res, err = th.Run(t.Context(), s, prompt())
	require.NoError(t, err)
	again := b.summary(t, res.Run)
	require.Equal(t, cost.Unit, again.RunTotal.Amount)
	require.Equal(t, sum.ThreadTotal.Add(again.RunTotal), again.ThreadTotal)
	require.Equal(t, again.ThreadTotal, cost.Thread.Get(th.Snapshot()))
	require.Equal(t, cost.CacheState{Hits: 2, Misses: 2, Cold: 1}, cost.Cache.Get(th.Snapshot()))
}

// Capability G7. Thresholds are told once each, to the model in front of its next call
// and to the person at once; of two passed together the higher one is.
func TestThresholds(t *testing.T) {
	const section = `{"prices": {"*": {"input": 1}}, "tell_at": [1, 2.5, 3, 4.5], "limit": 100%s}`
	for _, note := range []string{"", `, "note": "one_shot"`} {
		model, b := steps(4), &book{}
		res, err := start(t, b, model).Run(t.Context(), spec(fmt.Sprintf(section, note)), prompt())
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, []string{"1 passed 1 = 1", "3 passed 3 = 3", "5 passed 4.5 = 5", "5 summary = 5"}, b.of(res.Run))
		require.Zero(t, res.Stats.DeadLetters, "nothing is left for a model that is not asked again")
		first, third := "This run has cost 1 USD so far. It may cost 100.", "This run has cost 3 USD so far. It may cost 100."
		var got [][]string
		for _, r := range model.Requests() {
			got = append(got, notes(r))
		}
		if note == "" {
			require.Equal(t, [][]string{nil, {first}, {first}, {first, third}, {first, third}}, got)
		} else {
			require.Equal(t, [][]string{nil, {first}, nil, {third}, nil}, got)
		}
	}
}

// Capability G1. The moment that the model's cache is lost is told the person, at the call
// that was not served by it any more.
func TestColdCache(t *testing.T) {
	var answers []enginetest.Answer
	for i, cached := range []int64{0, 40, 90, 0, 0, 80, 0} {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), "work", nil).Costing(uses(100, 1, cached)))
	}
	b := &book{}
	th, err := start(t, b, enginetest.NewScript(append(answers, enginetest.Say("done"))...)).NewThread("")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), spec(`{"prices": {"*": {"input": 0}}}`), prompt())
	require.NoError(t, err)
	require.Equal(t, []string{"4 cold_cache m = 0", "7 cold_cache m = 0", "8 summary = 0"}, b.of(res.Run))
	require.Equal(t, cost.CacheState{Hits: 3, Misses: 5, Cold: 2}, cost.Cache.Get(th.Snapshot()))
}

// At the limit the run ends, and the calls that were asked for do not run.
func TestLimitEndsRun(t *testing.T) {
	b := &book{}
	config, rec := enginetest.Config(t, b.plugin())
	config.Model = steps(9)
	res, err := enginetest.Engine(t, config).Run(t.Context(), anyModel(`{"prices": {"*": {"input": 1}}, "limit": "2.5"}`), prompt())
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, cost.ReasonLimit, res.Reason)
	require.Equal(t, "the run has cost 3 of 2.5 USD", res.Detail)
	require.Equal(t, 3, res.Steps)
	require.Equal(t, []inference.Outcome{"ok", "ok", "not_run"}, outcomes(rec))
	require.Equal(t, []string{"3 limit 2.5 = 3", "3 summary = 3"}, b.of(res.Run))
}

// With block_tools the calls are turned away instead, so that the model can answer.
func TestLimitBlocksTools(t *testing.T) {
	b := &book{}
	config, rec := enginetest.Config(t, b.plugin())
	config.Model = steps(4)
	s := anyModel(`{"prices": {"*": {"input": 1}}, "limit": 2, "at_limit": "block_tools"}`)
	res, err := enginetest.Engine(t, config).Run(t.Context(), s, prompt())
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, []inference.Outcome{"ok", "blocked", "blocked", "blocked"}, outcomes(rec))
	require.Equal(t, []string{"2 limit 2 = 2", "5 summary = 5"}, b.of(res.Run), "the limit is told once")
}

// A thread that has used up its limit starts no run any more.
func TestThreadLimit(t *testing.T) {
	model := enginetest.NewScript(
		enginetest.Say("one").Costing(uses(1_000_000, 0, 0)), enginetest.Say("two").Costing(uses(1_000_000, 0, 0)), enginetest.Say("three"))
	b := &book{}
	th, err := start(t, b, model).NewThread("")
	require.NoError(t, err)
	s := spec(`{"prices": {"m": {"input": 1}}, "thread_limit": 2}`)
	var reasons []phase.Reason
	for range 3 {
		res, err := th.Run(t.Context(), s, prompt())
		require.NoError(t, err)
		require.NoError(t, res.Err)
		reasons = append(reasons, res.Reason)
	}
	require.Equal(t, []phase.Reason{phase.ReasonNatural, cost.ReasonLimit, cost.ReasonLimit}, reasons)
	require.Len(t, model.Requests(), 2)
	require.Equal(t, 2*cost.Unit, cost.Thread.Get(th.Snapshot()).Amount)
}

// A model without a price costs nothing, is told once, and may end the run.
func TestUnknownModel(t *testing.T) {
	b := &book{}
	res, err := start(t, b, steps(2)).Run(t.Context(), spec(`{"prices": {"other": {"input": 1}}, "limit": 1}`), prompt())
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, []string{"1 unknown_model m = 0", "3 summary = 0"}, b.of(res.Run))
	require.Equal(t, res.Usage, b.summary(t, res.Run).RunTotal.Unpriced)

	res, err = start(t, b, steps(2)).Run(t.Context(), spec(`{"unknown": "end_run"}`), prompt())
	require.NoError(t, err)
	require.Equal(t, cost.ReasonUnknown, res.Reason)
	require.Equal(t, `model "m" has no price`, res.Detail)
	require.Equal(t, 1, res.Steps)
}

// A model that failed costs nothing, and the run's end is reported all the same.
func TestFailedModel(t *testing.T) {
	b := &book{}
	model := enginetest.NewScript(enginetest.Fail(errors.New("overloaded")))
	res, err := start(t, b, model).Run(t.Context(), spec(`{"prices": {"m": {"input": 1}}}`), prompt())
	require.NoError(t, err)
	require.Equal(t, phase.ReasonError, res.Reason)
	require.Equal(t, []string{"1 summary = 0"}, b.of(res.Run))
}

// What a delegate used counts for the run that called it, at its agent's price, and
// towards its limit.
func TestDelegate(t *testing.T) {
	b := &book{}
	config, _ := enginetest.Config(t, b.plugin())
	config.Models = map[string]inference.Model{
		"m": enginetest.NewScript(enginetest.Call("d", "delegate_to_b", map[string]any{"input": "do it"}).Costing(uses(1_000_000, 0, 0)),
			enginetest.Say("done").Costing(uses(1_000_000, 0, 0))),
		"n": enginetest.NewScript(enginetest.Say("did it").Costing(uses(3_000_000, 0, 0))),
	}
	config.Agents = []engine.AgentSpec{{ID: "b", ModelID: "n", Sections: map[string]inference.JSON{"cost": `{"prices": {"n": {"input": 0.5}}}`}}}
	eng := enginetest.Engine(t, config)
	s := spec(`{"prices": {"m": {"input": 1}}}`)
	s.Delegates = []string{"b"}
	res, err := eng.Run(t.Context(), s, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	sum := b.summary(t, res.Run)
	require.Equal(t, "5", sum.RunTotal.Amount.String())
	require.Equal(t, int64(2), sum.RunTotal.Calls)
	require.Equal(t, []string{cost.Elsewhere, "m"}, []string{sum.Models[0].Model, sum.Models[1].Model})
	child := b.summary(t, res.Run+"/1/d")
	require.Equal(t, res.Run, child.Parent)
	require.Equal(t, "1.5", child.RunTotal.Amount.String())

	s = spec(`{"prices": {"m": {"input": 1}}, "limit": 4}`)
	s.Delegates = []string{"b"}
	res, err = eng.Run(t.Context(), s, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, cost.ReasonLimit, res.Reason)
	require.Equal(t, 1, res.Steps, "the limit holds at the end of the delegate's step")
}

// asking is a plugin that has a person asked about every call.
func asking() engine.Plugin {
	return engine.NewPlugin("asking", func(r *engine.Registrar) error {
		r.Tool(tool("work"))
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Ask(gate.Ticket{Kind: gate.Confirm, Message: "may it?"}), nil
		}))
		return nil
	})
}

// A run that waits goes on in another process with its totals and notes.
func TestResume(t *testing.T) {
	journal := memstore.New(memstore.Options{})
	b, model := &book{}, steps(2)
	build := func() *engine.Engine {
		config, _ := enginetest.Config(t, b.plugin(), asking())
		config.Journal, config.Models = journal, map[string]inference.Model{"m": model}
		return enginetest.Engine(t, config)
	}
	s := spec(`{"prices": {"m": {"input": 1}}, "tell_at": [1, 3], "limit": 10}`)
	th, err := build().NewThread("t")
	require.NoError(t, err)
	in := engine.Prompt("go")
	in.RunID = "r"
	res, err := th.Run(t.Context(), s, in)
	require.NoError(t, err)
	for res.Status == phase.Waiting {
		th, err = build().OpenThread(t.Context(), "t")
		require.NoError(t, err)
		res, err = th.Resume(t.Context(), s, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: res.Tickets[0].ID, Approved: true}})
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, []string{"1 passed 1 = 1", "3 passed 3 = 3", "3 summary = 3"}, b.of("r"))
	last := model.Requests()[2]
	require.Equal(t, []string{"This run has cost 1 USD so far. It may cost 10."}, notes(last))
}

// Wherever the process ends, every token that the run counts is charged once.
func TestNothingIsLostInACrash(t *testing.T) {
	s := spec(`{"prices": {"m": {"input": 1}}, "tell_at": [1, 2]}`)
	again := 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		build := func(j engine.Journal) *engine.Engine {
			tools := engine.NewPlugin("tools", func(r *engine.Registrar) error { r.Tool(tool("work")); return nil })
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{cost.New(cost.Options{}), tools}, Journal: j,
				Models: map[string]inference.Model{"m": steps(2)}})
			require.NoError(t, err)
			return e
		}
		first, err := build(broken).NewThread("t")
		require.NoError(t, err)
		_, err = first.Run(t.Context(), s, engine.Prompt("go"))
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
		res, err := th.Resume(t.Context(), s, engine.Input{})
		require.NoError(t, err)
		require.NoError(t, res.Err)
		total := cost.Run.Get(th.Snapshot())
		require.Equal(t, res.Usage, total.Usage, "append %d", n)
		require.Equal(t, cost.Amount(res.Usage.InputTokens*1000), total.Amount, "append %d", n)
		require.Equal(t, total, cost.Thread.Get(th.Snapshot()), "append %d", n)
	}
}

// Capability G9. Runs side by side on one engine have totals of their own.
func TestConcurrentRuns(t *testing.T) {
	b := &book{}
	eng := start(t, b, steps(5))
	s := spec(`{"prices": {"m": {"input": 1}}, "tell_at": [2, 4]}`)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			in := prompt()
			in.RunID = fmt.Sprint("run-", i)
			_, err := eng.Run(t.Context(), s, in)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 16 {
		require.Equal(t, []string{"2 passed 2 = 2", "4 passed 4 = 4", "6 summary = 6"}, b.of(fmt.Sprint("run-", i)))
	}
}

// A person who cannot be told stops nothing.
func TestTellFails(t *testing.T) {
	config, rec := enginetest.Config(t, cost.New(cost.Options{Tell: func(context.Context, cost.Report) error { return errors.New("nobody there") }}))
	config.Model = enginetest.NewScript(enginetest.Say("done"))
	res, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Contains(t, enginetest.Select[engine.EffectFinished](rec.Events())[0].Error, "nobody there")
}

// The plugins about tokens and money work side by side: the first limit reached ends the
// run.
func TestSideBySide(t *testing.T) {
	for section, want := range map[string]phase.Reason{
		`{"prices": {"*": {"input": 1}}, "limit": 2}`: cost.ReasonLimit,
		`{"prices": {"*": {"input": 1}}, "limit": 9}`: phase.ReasonTokenBudget,
	} {
		model := steps(9)
		eng := start(t, &book{}, model, budget.New(), tokens.New())
		s := spec(section)
		s.Sections["budget"], s.Sections["tokens"] = `{"tokens": 4000000, "warn_at": 0}`, `{"budget": 4000000}`
		res, err := eng.Run(t.Context(), s, prompt())
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, want, res.Reason)
		require.Contains(t, notes(model.Requests()[1]), "This run has used 1000000 of its 4000000 tokens; 3000000 are left.")
		require.Empty(t, eng.Describe().Conflicts)
	}
}

func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, cost.New(cost.Options{}))
	config.Model = enginetest.NewScript()
	eng := enginetest.Engine(t, config)
	for section, want := range map[string]string{
		`{"prices": {"m": {"input": -1}}}`:                     `sections.cost.prices.m.input`,
		`{"prices": {"m": {"input": 1e2}}}`:                    `without sign or exponent`,
		`{"prices": {"m": {"inptu": 1}}}`:                      `inptu`,
		`{"prices": {"": {"input": 1}}}`:                       `without a name`,
		`{"tell_at": [1, 1]}`:                                  `tell_at[1] is 1`,
		`{"tell_at": [0]}`:                                     `tell_at[0] is 0`,
		`{"unknown": "free"}`:                                  `unknown is "free"`,
		`{"note": "throttled"}`:                                `note is "throttled"`,
		`{"at_limit": "shrug"}`:                                `at_limit is "shrug"`,
		`{"limit": "0.0000000001"}`:                            `more than 9 digits`,
		`{"prices": {"m": {"input": 99999999999999999999.5}}}`: `is more than 9223372036.854775807`,
	} {
		s, err := engine.ParseSpec("a.json", []byte(`{"id": "a", "sections": {"cost": `+section+`}}`))
		require.NoError(t, err)
		err = eng.Check(s)
		require.ErrorIs(t, err, engine.ErrSpec, section)
		require.ErrorContains(t, err, want, section)
		require.ErrorContains(t, err, "a.json:1:", section)
	}
	require.ErrorContains(t, cost.Settings{Limit: -1}.Validate(), "cost: a limit")
	require.ErrorContains(t, cost.Settings{Prices: map[string]cost.Price{"m": {Output: -1}}}.Validate(), "cost: prices")
}

// What the hooks write is declared, and no two of them can be in conflict.
func TestManifest(t *testing.T) {
	config, _ := enginetest.Config(t, cost.New(cost.Options{}))
	m := enginetest.Engine(t, config).Describe()
	require.Empty(t, m.Undeclared)
	require.Empty(t, m.Conflicts)
}
