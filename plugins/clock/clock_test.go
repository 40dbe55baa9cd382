package clock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // for machines without

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/clock"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func noon() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

func spec(section string) engine.AgentSpec {
	s := engine.AgentSpec{ID: "a", MaxRounds: 100}
	if section != "" {
		s.Sections = map[string]inference.JSON{clock.Name: inference.JSON(section)}
	}
	return s
}

// wait is a tool that takes as long as it is asked to.
func wait(pass func(time.Duration)) engine.Tool {
	return engine.NewTool(inference.ToolSpec{Name: "wait"}, func(_ context.Context, _ *phase.Context, in struct{ For clock.Duration }) (engine.Output, error) {
		pass(time.Duration(in.For))
		return engine.Text("ok"), nil
	})
}

// waits is a model that waits for each of the times in turn.
func waits(times ...string) *enginetest.Script {
	var answers []enginetest.Answer
	for i, d := range times {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i), "wait", map[string]any{"For": d}))
	}
	return enginetest.NewScript(append(answers, enginetest.Say("done"))...)
}

func notes(r inference.Request) (out []string) {
	for _, m := range r.Messages {
		if m.Role == inference.RoleSystem {
			out = append(out, m.Text)
		}
	}
	return out
}

// run returns the notes of each request, and the lines of its trace.
func run(t *testing.T, section string, times ...string) (out [][]string, trace []string) {
	t.Helper()
	now, model := enginetest.NewClock(noon()), waits(times...)
	config, rec := enginetest.Config(t, clock.New(clock.Options{Now: now.Now}))
	config.Model, config.Now = model, now.Now
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{wait(now.Advance)}
	res, err := enginetest.Engine(t, config).Run(t.Context(), spec(section), in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Zero(t, res.Stats.DeadLetters)
	for _, r := range model.Requests() {
		out = append(out, notes(r))
	}
	return out, rec.Lines()
}

// Capability G7. The date comes first; a mark that was passed is told once, the last of
// several, and later ones at their distance.
func TestMarks(t *testing.T) {
	got, trace := run(t, "", "50s", "15s", "1m", "12m", "1m", "6m", "5m", "5m", "1h", "9m")
	want := []string{
		"It is Sunday, 1 March 2026, 12:00 UTC.",
		"This run has taken 1 min so far. It is 12:01 UTC.",
		"This run has taken 14 min so far. It is 12:14 UTC.",
		"This run has taken 15 min so far. It is 12:15 UTC.",
		"This run has taken 21 min so far. It is 12:21 UTC.",
		"This run has taken 31 min so far. It is 12:31 UTC.",
		"This run has taken 1 h 31 min so far. It is 13:31 UTC.",
		"This run has taken 1 h 40 min so far. It is 13:40 UTC.",
	}
	require.Equal(t, want, got[len(got)-1])
	var lengths []int
	for _, list := range got {
		require.Equal(t, want[:len(list)], list, "notes stay in the history")
		lengths = append(lengths, len(list))
	}
	require.Equal(t, []int{1, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8}, lengths)

	again, sameTrace := run(t, "", "50s", "15s", "1m", "12m", "1m", "6m", "5m", "5m", "1h", "9m")
	require.Equal(t, got, again)
	require.Equal(t, trace, sameTrace, "an injected clock makes runs deterministic")
}

// Capability H3. One-shot notes are seen by one call and leave the history alone.
func TestOneShotAndZone(t *testing.T) {
	got, _ := run(t, `{"at": ["30s"], "then_every": "0s", "zone": "Asia/Tokyo", "note": "one_shot"}`, "40s", "5m", "72h")
	start := "It is Sunday, 1 March 2026, 21:00 JST."
	require.Equal(t, [][]string{{start}, {start, "This run has taken 40 s so far. It is 21:00 JST."}, {start}, {start}}, got)

	got, _ = run(t, `{"at": [], "then_every": "48h"}`, "1h", "73h")
	require.Equal(t, "This run has taken 3 d 2 h so far. It is 14:00 UTC.", got[2][1])
}

// Steps that are shorter than the marks are apart tell each mark, and each once.
func TestNoMarkTwice(t *testing.T) {
	var times []string
	for range 40 {
		times = append(times, "40s")
	}
	got, _ := run(t, `{"at": ["1m", "5m"], "then_every": "2m"}`, times...)
	last := got[len(got)-1]
	require.Len(t, last, 1+2+(40*40/60-5)/2)
	slices.Sort(last)
	require.Len(t, slices.Compact(last), len(last))
}

// Without a clock of its own it is the real one, or that of a bubble.
func TestDefaultClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := waits("2m")
		eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{clock.New(clock.Options{})}, Model: model})
		require.NoError(t, err)
		in := engine.Prompt("go")
		in.Tools = []engine.Tool{wait(time.Sleep)}
		res, err := eng.Run(t.Context(), spec(""), in)
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, []string{"It is Saturday, 1 January 2000, 00:00 UTC.", "This run has taken 2 min so far. It is 00:02 UTC."}, notes(model.Requests()[1]))
	})
}

// A run that waits goes on in another process. The wait does not count, the time before
// and after it does, and the date is told anew after a long one only.
func TestResume(t *testing.T) {
	journal, model, now := memstore.New(memstore.Options{}), waits("3m", "1m", "1m", "4m"), enginetest.NewClock(noon())
	build := func() *engine.Engine {
		asking := engine.NewPlugin("asking", func(r *engine.Registrar) error {
			r.Tool(wait(now.Advance))
			r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().ID == "c2" {
					return gate.Approve(), nil
				}
				return gate.Ask(gate.Ticket{Kind: gate.Confirm, Message: "may it?"}), nil
			}))
			return nil
		})
		config, _ := enginetest.Config(t, clock.New(clock.Options{Now: now.Now}), asking)
		config.Journal, config.Model, config.Now = journal, model, now.Now
		return enginetest.Engine(t, config)
	}
	th, err := build().NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), spec(""), engine.Prompt("go"))
	require.NoError(t, err)
	for _, away := range []time.Duration{2 * time.Hour, 10 * time.Second, 26 * time.Hour} {
		require.Equal(t, phase.Waiting, res.Status)
		now.Advance(away)
		th, err = build().OpenThread(t.Context(), "t")
		require.NoError(t, err)
		res, err = th.Resume(t.Context(), spec(""), engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: res.Tickets[0].ID, Approved: true}})
		require.NoError(t, err)
		require.NoError(t, res.Err)
	}
	require.Equal(t, phase.ReasonNatural, res.Reason)
	requests := model.Requests()
	require.Equal(t, []string{
		"It is Sunday, 1 March 2026, 12:00 UTC.",
		"The run stood still for 2 h. It is now Sunday, 1 March 2026, 14:03 UTC.",
		"This run has taken 3 min so far. It is 14:03 UTC.",
		"This run has taken 5 min so far. It is 14:05 UTC.",
		"The run stood still for 1 d 2 h. It is now Monday, 2 March 2026, 16:09 UTC.",
	}, notes(requests[len(requests)-1]))
	require.Equal(t, 9*time.Minute, clock.Elapsed.Get(th.Snapshot()).Worked.Truncate(time.Minute))
}

// A second run of a thread has a time of its own.
func TestSecondRun(t *testing.T) {
	now := enginetest.NewClock(noon())
	config, _ := enginetest.Config(t, clock.New(clock.Options{Now: now.Now}))
	model := enginetest.NewScript(enginetest.Say("one"), enginetest.Say("two"))
	config.Model, config.Now = model, now.Now
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	for range 2 {
		_, err = th.Run(t.Context(), spec(""), engine.Prompt("go"))
		require.NoError(t, err)
		now.Advance(90 * time.Minute)
	}
	require.Equal(t, []string{"It is Sunday, 1 March 2026, 12:00 UTC.", "It is Sunday, 1 March 2026, 13:30 UTC."}, notes(model.Requests()[1]))
}

// A clock that is set back takes nothing away and tells nothing twice.
func TestClockSetBack(t *testing.T) {
	now := enginetest.NewClock(noon())
	config, _ := enginetest.Config(t, clock.New(clock.Options{Now: now.Now}))
	model := waits("6m", "-3m", "4m", "5m")
	config.Model, config.Now = model, now.Now
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{wait(now.Advance)}
	_, err := enginetest.Engine(t, config).Run(t.Context(), spec(""), in)
	require.NoError(t, err)
	require.Equal(t, []string{
		"It is Sunday, 1 March 2026, 12:00 UTC.",
		"This run has taken 6 min so far. It is 12:06 UTC.",
		"This run has taken 12 min so far. It is 12:12 UTC.",
	}, notes(model.Requests()[4]))
}

// Capability G9. Runs side by side on one engine, each in a bubble's time, have times of
// their own.
func TestConcurrentRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string][]string{}
		scripts := map[string]*enginetest.Script{}
		for i := range 8 {
			scripts[fmt.Sprint(i)] = waits(fmt.Sprint(i+1, "m"), "30m")
		}
		model := inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
			id := r.Messages[0].Text
			mu.Lock()
			got[id] = notes(r)
			mu.Unlock()
			return scripts[id].Generate(ctx, r)
		})
		eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{clock.New(clock.Options{})}, Model: model})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for id := range scripts {
			wg.Go(func() {
				in := engine.Prompt(id)
				in.Tools = []engine.Tool{wait(time.Sleep)}
				if _, err := eng.Run(t.Context(), spec(""), in); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i := range 8 {
			require.Equal(t, []string{
				"It is Saturday, 1 January 2000, 00:00 UTC.",
				fmt.Sprintf("This run has taken %d min so far. It is 00:%02d UTC.", i+1, i+1),
				fmt.Sprintf("This run has taken %d min so far. It is 00:%02d UTC.", i+31, i+31),
			}, got[fmt.Sprint(i)])
		}
	})
}

func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, clock.New(clock.Options{}))
	config.Model = waits()
	eng := enginetest.Engine(t, config)
	for section, want := range map[string]string{
		`{"at": ["soon"]}`:       `sections.clock.at[0]: clock: "soon" is no duration`,
		`{"at": [60]}`:           `sections.clock.at[0]`,
		`{"at": ["5m", "1m"]}`:   `clock: at[1] is 1m0s`,
		`{"at": ["0s"]}`:         `clock: at[0] is 0s`,
		`{"then_every": "-1m"}`:  `clock: then_every is -1m0s`,
		`{"zone": "Mars/North"}`: `clock: zone is "Mars/North"`,
		`{"note": "throttled"}`:  `clock: note is "throttled"`,
		`{"every": "1m"}`:        `every`,
	} {
		s, err := engine.ParseSpec("a.json", []byte(`{"id": "a", "sections": {"clock": `+section+`}}`))
		require.NoError(t, err)
		err = eng.Check(s)
		require.ErrorIs(t, err, engine.ErrSpec, section)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "a.json:1:")
	}
}

// What is read as a duration is written as one that reads the same.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"1m", "1h30m", "-5s", "1.5h", "0", "x", "9999999h", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, again clock.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			require.ErrorContains(t, err, "clock: ")
			require.Zero(t, d)
			return
		}
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &again))
		require.Equal(t, d, again)
	})
}

func TestManifest(t *testing.T) {
	config, _ := enginetest.Config(t, clock.New(clock.Options{}))
	m := enginetest.Engine(t, config).Describe()
	require.Empty(t, m.Undeclared)
	require.Empty(t, m.Conflicts)
}
