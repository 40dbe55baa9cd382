package deferred_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/deferred"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func tool(name, description, schema string) engine.Tool {
	return engine.NewTool(inference.ToolSpec{Name: name, Description: description, Schema: inference.JSON(schema)},
		func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			return engine.Text(name + " ran"), nil
		})
}

func office() []engine.Tool {
	return []engine.Tool{
		tool("send_mail", "Send a mail to somebody.", `{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"}}}`),
		tool("listMails", "List the mails in a folder.", `{"type":"object","properties":{"folder":{"type":"string","enum":["inbox","archive"]}}}`),
		tool("book_room", "Book a meeting room.", `{"type":"object","properties":{"floor":{"type":"integer","description":"storey of the building"}}}`),
		tool("pay_invoice", "Pay an invoice of a supplier.", ""),
	}
}

func search(id, query string) enginetest.Answer {
	return enginetest.Call(id, deferred.SearchTool, map[string]any{"query": query})
}

// agent returns a spec with the section, which may be empty.
func agent(section string) engine.AgentSpec {
	spec := engine.AgentSpec{ID: "a"}
	if section != "" {
		spec.Sections = map[string]inference.JSON{deferred.Name: inference.JSON(section)}
	}
	return spec
}

// office is an engine with the tools deferred, and its thread.
type fixture struct {
	eng   *engine.Engine
	model *enginetest.Script
	rec   *enginetest.Recorder
	th    *engine.Thread
}

func build(t *testing.T, adjust func(*engine.Config), answers ...enginetest.Answer) fixture {
	t.Helper()
	config, rec := enginetest.Config(t, deferred.New(deferred.Options{Tools: office(), About: "office work"}))
	f := fixture{model: enginetest.NewScript(answers...), rec: rec}
	config.Model = f.model
	if adjust != nil {
		adjust(&config)
	}
	f.eng = enginetest.Engine(t, config)
	var err error
	f.th, err = f.eng.NewThread("t")
	require.NoError(t, err)
	return f
}

func (f fixture) run(t *testing.T, spec engine.AgentSpec) *engine.Result {
	t.Helper()
	res, err := f.th.Run(t.Context(), spec, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return res
}

// offered is what each request offered, by name.
func offered(model *enginetest.Script) (out [][]string) {
	for _, r := range model.Requests() {
		var names []string
		for _, s := range r.Tools {
			names = append(names, s.Name)
		}
		slices.Sort(names)
		out = append(out, names)
	}
	return out
}

// results are the results of the calls, by "step id".
func results(events []engine.Event) map[string]inference.ToolResult {
	out := map[string]inference.ToolResult{}
	for _, e := range enginetest.Select[engine.ToolFinished](events) {
		out[fmt.Sprintf("%d %s", e.Step, e.Call.ID)] = e.Result
	}
	return out
}

// Capability G7 (part). The model sees one tool, finds another, and can call it from
// its next step on; what it has not found does not run and says how to.
func TestSearchLoads(t *testing.T) {
	f := build(t, nil,
		enginetest.Call("c1", "send_mail", nil),
		search("c2", "write a mail"),
		enginetest.Call("c3", "send_mail", nil).And(enginetest.Call("c4", "book_room", nil)),
		enginetest.Say("done"))
	f.run(t, agent(`{"results": 1}`))
	only := []string{deferred.SearchTool}
	require.Equal(t, [][]string{only, only, {"search_tools", "send_mail"}, {"search_tools", "send_mail"}}, offered(f.model))

	got := results(f.rec.Events())
	require.Equal(t, inference.OutcomeBlocked, got["1 c1"].Outcome)
	require.Equal(t, "blocked: send_mail is not loaded yet; call search_tools with its name, or with words that say what you need, and call it in your next step", got["1 c1"].Content)
	require.Equal(t, "send_mail: Send a mail to somebody.\n1 more fit less well; use more exact words to load others.\nYou can call these tools from your next step on.", got["2 c2"].Content)
	require.JSONEq(t, `{"loaded": ["send_mail"], "matches": 2}`, string(got["2 c2"].Details))
	require.Equal(t, "send_mail ran", got["3 c3"].Content)
	require.Equal(t, inference.OutcomeBlocked, got["3 c4"].Outcome)
	require.Empty(t, enginetest.Select[engine.OverrideApplied](f.rec.Events()), "a request needs no commit of its own")
	require.Contains(t, f.model.Requests()[0].Tools[0].Description, "4 that you do not see. They are about: office work.")
}

// Searches of one step add up, run in parallel or in turn, and a second one says
// what was there.
func TestParallelSearchesMerge(t *testing.T) {
	for _, how := range []engine.ToolExecution{engine.ToolsParallel, engine.ToolsSequential} {
		f := build(t, nil,
			search("c1", "room").And(search("c2", "invoice"), search("c3", "room")),
			search("c4", "book_room"), enginetest.Say("done"))
		spec := agent("")
		spec.ToolExecution = how
		f.run(t, spec)
		require.Equal(t, []string{"book_room", "pay_invoice", "search_tools"}, offered(f.model)[1])
		for _, r := range results(f.rec.Events()) {
			require.Equal(t, inference.OutcomeOK, r.Outcome, r.Content)
		}
		require.Equal(t, "book_room: Book a meeting room. (was loaded before)", results(f.rec.Events())["2 c4"].Content)
		require.Empty(t, f.rec.Filter("conflict"))
	}
}

// What is loaded ends with the run, or stays with the thread.
func TestKeep(t *testing.T) {
	for keep, want := range map[deferred.Keep][]string{
		deferred.KeepRun:    {"search_tools"},
		deferred.KeepThread: {"book_room", "search_tools"},
	} {
		f := build(t, nil, search("c1", "room"), enginetest.Say("done"), enginetest.Say("again"))
		spec := agent(fmt.Sprintf(`{"keep": %q}`, keep))
		f.run(t, spec)
		f.run(t, spec)
		require.Equal(t, want, offered(f.model)[2], keep)
		require.Equal(t, keep == deferred.KeepThread, deferred.LoadedInThread.Has(f.th.Snapshot(), "book_room"))
	}
}

// Capability G9. Runs that go on at the same time have loaded what they have loaded
// themselves.
func TestConcurrentRunsLoadForThemselves(t *testing.T) {
	models, want := map[string]*enginetest.Script{}, map[string]string{"mail": "listMails search_tools send_mail", "room": "book_room search_tools", "invoice": "pay_invoice search_tools"}
	f := build(t, func(c *engine.Config) {
		c.Models = map[string]inference.Model{}
		for query := range want {
			models[query] = enginetest.NewScript(search("c", query), enginetest.Say("done"))
			c.Models[query] = models[query]
		}
	})
	var wg sync.WaitGroup
	for query := range want {
		for range 5 {
			wg.Go(func() {
				res, err := f.eng.Run(t.Context(), engine.AgentSpec{ID: query, ModelID: query}, engine.Prompt("go"))
				if err != nil || res.Err != nil {
					t.Errorf("%v %v", err, res)
				}
			})
		}
	}
	wg.Wait()
	for query, list := range want {
		got := offered(models[query])
		require.Len(t, got, 10)
		for _, names := range got {
			require.Contains(t, []string{"search_tools", list}, strings.Join(names, " "))
		}
	}
}

// Some tools are there from the start.
func TestAlways(t *testing.T) {
	f := build(t, nil, enginetest.Call("c1", "send_mail", nil), enginetest.Say("done"))
	f.run(t, agent(`{"always": ["send_*", "listMails"]}`))
	require.Equal(t, []string{"listMails", "search_tools", "send_mail"}, offered(f.model)[0])
	require.Equal(t, "send_mail ran", results(f.rec.Events())["1 c1"].Content)
}

// Capability A17. What the spec and the engine's own actions hide stays hidden, found
// or not, and is not found by an agent that may not use it; an agent without
// search_tools has nothing to search for.
func TestSpecsAndActionsHideToo(t *testing.T) {
	t.Run("spec", func(t *testing.T) {
		f := build(t, nil, search("c1", "mail"), enginetest.Call("c2", "send_mail", nil), enginetest.Say("done"))
		spec := agent("")
		spec.AllowedTools, spec.AllowedToolPatterns, spec.ExcludedTools = []string{deferred.SearchTool}, []string{"*ail*"}, []string{"send_mail"}
		f.run(t, spec)
		require.Equal(t, []string{"listMails", "search_tools"}, offered(f.model)[1])
		got := results(f.rec.Events())
		require.NotContains(t, got["1 c1"].Content, "send_mail")
		require.Contains(t, got["2 c2"].Content, `there is no tool "send_mail"`)
	})
	t.Run("no search", func(t *testing.T) {
		f := build(t, nil, enginetest.Call("c1", "send_mail", nil), enginetest.Say("done"))
		spec := agent("")
		spec.AllowedTools = []string{"send_mail", "book_room"}
		f.run(t, spec)
		require.Equal(t, []string{"book_room", "send_mail"}, offered(f.model)[0])
		require.Equal(t, "send_mail ran", results(f.rec.Events())["1 c1"].Content)
	})
	t.Run("action", func(t *testing.T) {
		f := build(t, func(c *engine.Config) {
			c.Plugins = append(c.Plugins, engine.NewPlugin("narrow", func(r *engine.Registrar) error {
				r.Hook(phase.BeforeInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					switch pc.Run().Step {
					case 2:
						cmd.Schedule(engine.ExcludeTool.New("send_mail"))
					case 3:
						cmd.Schedule(engine.IncludeOnlyTools.New([]string{"send_mail"}))
					}
					return cmd, nil
				}))
				return nil
			}))
		}, search("c1", "mail"), enginetest.Call("c2", "send_mail", nil), enginetest.Call("c3", "send_mail", nil), enginetest.Say("done"))
		f.run(t, agent(""))
		require.Equal(t, [][]string{{"search_tools"}, {"listMails", "search_tools"}, {"send_mail"}, {"listMails", "search_tools", "send_mail"}}, offered(f.model))
		got := results(f.rec.Events())
		require.Contains(t, got["2 c2"].Content, `there is no tool "send_mail"`)
		require.Equal(t, "send_mail ran", got["3 c3"].Content)
	})
}

// A run that waited and was resumed elsewhere, and one that was forked, go on with
// what was loaded.
func TestResumedAndForkedRunsKeepWhatWasLoaded(t *testing.T) {
	journal := memstore.New(memstore.Options{})
	adjust := func(c *engine.Config) {
		c.Journal = journal
		c.Plugins = append(c.Plugins, engine.NewPlugin("asker", func(r *engine.Registrar) error {
			r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Name == "pay_invoice" {
					return gate.Ask(gate.Ticket{Message: "pay?"}), nil
				}
				return gate.Abstain(), nil
			}))
			return nil
		}))
	}
	answers := []enginetest.Answer{search("c1", "invoice"), enginetest.Call("c2", "pay_invoice", nil), enginetest.Call("c3", "pay_invoice", nil), enginetest.Say("done")}
	f := build(t, adjust, answers...)
	require.Equal(t, phase.Waiting, f.run(t, agent("")).Status)

	elsewhere := build(t, func(c *engine.Config) { adjust(c); c.NewID = enginetest.NewIDs("other") }, answers...)
	th, err := elsewhere.eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	fork, err := th.Fork(t.Context(), th.Snapshot().Revision(), "forked")
	require.NoError(t, err)
	for _, th := range []*engine.Thread{th, fork} {
		elsewhere.model.Reset()
		if len(th.Tickets()) == 0 { // a fork's calls begin anew
			_, err := th.Resume(t.Context(), agent(""), engine.Input{})
			require.NoError(t, err)
		}
		res, err := th.Resume(t.Context(), agent(""), engine.Input{}, engine.Decision{Call: "c2", Answer: phase.Answer{Approved: true}})
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, phase.Waiting, res.Status)
		require.Equal(t, []string{"pay_invoice", "search_tools"}, offered(elsewhere.model)[0])
	}
}

// A delegate searches for itself: what it has loaded is its own business, and its
// parent's gate lets its calls through.
func TestDelegatesSearchForThemselves(t *testing.T) {
	f := build(t, func(c *engine.Config) {
		c.Agents = []engine.AgentSpec{{ID: "clerk", ModelID: "clerk"}}
		c.Models = map[string]inference.Model{"clerk": enginetest.NewScript(
			search("d1", "room"), enginetest.Call("d2", "book_room", nil), enginetest.Say("booked"))}
	}, enginetest.Call("c1", "delegate_to_clerk", map[string]any{"input": "book a room"}), enginetest.Call("c2", "book_room", nil), enginetest.Say("done"))
	spec := agent("")
	spec.Delegates = []string{"clerk"}
	f.run(t, spec)
	got := results(f.rec.Events())
	require.Equal(t, "book_room ran", got["2 d2"].Content)
	require.Equal(t, "booked", got["1 c1"].Content)
	require.Equal(t, inference.OutcomeBlocked, got["2 c2"].Outcome, "the parent has not loaded it")
}

// The order in which tools were given and everything but the query count for nothing.
func TestRanking(t *testing.T) {
	for query, want := range map[string]string{
		"mail":                   "send_mail,listMails",
		"send mail":              "send_mail,listMails",
		"MAILS":                  "listMails,send_mail",
		"list":                   "listMails",
		"archive":                "listMails",
		"storey":                 "book_room",
		"inv":                    "pay_invoice",
		"invoices, please!":      "pay_invoice",
		"book_room":              "book_room",
		"object string property": "",
		"???":                    "",
		"a mail":                 "send_mail,listMails", // all have the first word
		"a":                      "book_room,listMails,pay_invoice,send_mail",
	} {
		for seed := range uint64(3) {
			tools := office()
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
			out := find(t, tools, query)
			require.Equal(t, want, strings.Join(out, ","), query)
		}
	}
}

// find runs one search and returns what it loaded.
func find(t enginetest.TB, tools []engine.Tool, query string) []string {
	out := enginetest.Driver{
		Plugins: []engine.Plugin{deferred.New(deferred.Options{Tools: tools})},
		Model:   enginetest.NewScript(search("c", query), enginetest.Say("done")),
	}.RunPhase(t, phase.AfterToolExecute)
	if out.Err != nil {
		t.Fatalf("%v", out.Err)
	}
	var told struct {
		Loaded  []string
		Matches int
	}
	call, _ := engine.ToolCalls.Get(out.Snapshot, "c")
	if details := call.Result.Details; details != "" {
		if err := details.Decode(&told); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return told.Loaded
}

func TestEmptyQueryAndFaultySettings(t *testing.T) {
	f := build(t, nil, search("c1", " "), search("c2", "helicopter"), enginetest.Say("done"))
	f.run(t, agent(""))
	got := results(f.rec.Events())
	require.True(t, got["1 c1"].IsError)
	require.Contains(t, got["1 c1"].Content, "the query is empty")
	require.Equal(t, "None of 4 tools has anything to do with that. Try other words.", got["2 c2"].Content)

	require.NoError(t, deferred.Settings{Results: 1, Keep: deferred.KeepRun}.Validate())
	for _, section := range []string{`{"results": 0}`, `{"results": 51}`, `{"keep": "ever"}`, `{"always": ["["]}`} {
		_, err := deferred.Section.From(agent(section))
		require.ErrorContains(t, err, "deferred: ", section)
	}
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{deferred.New(deferred.Options{Tools: []engine.Tool{nil}})}})
	require.ErrorIs(t, err, engine.ErrRegistration)
}

// Any row of searches and calls, against a set that is kept beside.
func TestLoadedToolsAgainstModel(t *testing.T) {
	tools := []string{"send_mail", "listMails", "book_room", "pay_invoice"}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		loaded := map[string]bool{}
		var answers []enginetest.Answer
		var want []inference.Outcome
		var requests [][]string
		offers := func() []string {
			names := []string{deferred.SearchTool}
			for _, n := range tools {
				if loaded[n] {
					names = append(names, n)
				}
			}
			slices.Sort(names)
			return names
		}
		for range 12 {
			requests = append(requests, offers())
			var step enginetest.Answer
			for j := range 1 + rng.IntN(3) {
				name, id := tools[rng.IntN(len(tools))], fmt.Sprintf("c%d", j)
				outcome := inference.OutcomeOK
				if rng.IntN(3) == 0 {
					step = step.And(search(id, name))
					loaded[name] = true
				} else {
					step = step.And(enginetest.Call(id, name, nil))
					if !loaded[name] {
						outcome = inference.OutcomeBlocked
					}
				}
				want = append(want, outcome)
			}
			answers = append(answers, step)
		}
		requests = append(requests, offers())
		f := build(t, nil, append(answers, enginetest.Say("done"))...)
		f.run(t, agent(`{"results": 1}`))
		var got []inference.Outcome
		for _, e := range enginetest.Select[engine.ToolFinished](f.rec.Events()) {
			got = append(got, e.Result.Outcome)
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, requests, offered(f.model), "seed %d", seed)
	}
}

// What is saved: a hundred tools with schemas of the usual size.
func TestRequestIsSmaller(t *testing.T) {
	var many []engine.Tool
	for i := range 100 {
		many = append(many, tool(fmt.Sprintf("service%d_update", i), strings.Repeat(fmt.Sprintf("Updates what service %d keeps. ", i), 4),
			`{"type":"object","properties":{"id":{"type":"string","description":"which one"},"fields":{"type":"array","items":{"type":"string"}},`+
				`"dry_run":{"type":"boolean","description":"only say what would be done"}},"required":["id"],"additionalProperties":false}`))
	}
	weigh := func(plugin engine.Plugin) (bytes []int) {
		model := enginetest.NewScript(search("c1", "service42_update"), enginetest.Say("done"))
		config, _ := enginetest.Config(t, plugin)
		config.Model = model
		res, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
		require.NoError(t, err)
		require.NoError(t, res.Err)
		for _, r := range model.Requests() {
			text, err := inference.ToJSON(r.Tools)
			require.NoError(t, err)
			bytes = append(bytes, len(text))
		}
		return bytes
	}
	all := weigh(engine.NewPlugin("all", func(r *engine.Registrar) error { r.Tool(many...); return nil }))
	some := weigh(deferred.New(deferred.Options{Tools: many}))
	t.Logf("tools of a request: %d bytes, deferred %d bytes, after a search %d bytes", all[0], some[0], some[1])
	require.Greater(t, all[0], 40_000)
	require.Less(t, some[0], all[0]/50)
	require.Less(t, some[1], all[0]/10)
}

// FuzzSearch searches for anything among tools that say anything: what is found is
// there, once, whatever order the tools come in.
func FuzzSearch(f *testing.F) {
	f.Add("mail", "sendMail", "Send a mail.", `{"type":"object","properties":{"to":{"type":"string"}}}`)
	f.Add("ärger \xff", "x", "", `{"properties":{"a":{"properties":[1]}},"enum":["y"],"description":7}`)
	f.Fuzz(func(t *testing.T, query, name, description, schema string) {
		if name == "" || !utf8.ValidString(name) || name == deferred.SearchTool || !inference.JSON(schema).Valid() || strings.TrimSpace(query) == "" {
			return
		}
		tools := append(office(), tool(name+"_2", description, schema))
		if slices.ContainsFunc(tools[:4], func(o engine.Tool) bool { return o.Spec().Name == name+"_2" }) {
			return
		}
		got := find(t, tools, query)
		slices.Reverse(tools)
		if again := find(t, tools, query); !slices.Equal(got, again) {
			t.Errorf("%q finds %q, and in another order of tools %q", query, got, again)
		}
		for i, n := range got {
			known := slices.ContainsFunc(tools, func(o engine.Tool) bool { return o.Spec().Name == n })
			if !known || slices.Contains(got[:i], n) {
				t.Errorf("%q finds %q", query, got)
			}
		}
		if own := find(t, tools, name+"_2"); len(own) == 0 || own[0] != name+"_2" {
			t.Errorf("%q does not find itself but %q", name+"_2", own)
		}
	})
}
