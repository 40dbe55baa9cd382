package recording_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

// program is a set of random plugins. What a hook or handler writes says who it is and
// how often it was called for it, so that the state itself knows its authors.
type program struct {
	seed  uint64
	mu    sync.Mutex
	calls map[string]int
}

// author is the text that a call of a hook or handler writes.
func (p *program) author(who string, run phase.RunInfo) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := fmt.Sprintf("%s %s %d", who, run.ID, run.Step)
	p.calls[key]++
	return fmt.Sprintf("%s %d", key, p.calls[key])
}

// rng gives the same numbers whenever the hook is called in the step.
func (p *program) rng(who string, step int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", who, step)
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}

func (p *program) tidy() phase.ActionSpec[string] {
	if p.seed%2 == 0 {
		return safeTidy
	}
	return tidy
}

func (p *program) act(who string, pc *phase.Context, cmd *phase.Command, schedules bool) error {
	step := pc.Run().Step
	rng, me := p.rng(who, step), p.author(who, pc.Run())
	for range 1 + rng.IntN(3) {
		switch rng.IntN(10) {
		case 0, 1:
			cmd.Update(board.With(me))
		case 2:
			cmd.Update(total.With(int64(1 + rng.IntN(5))))
		case 3:
			cmd.Update(doors.Put(string(rune('a'+rng.IntN(4))), me))
		case 4:
			cmd.Update(doors.Delete(string(rune('a' + rng.IntN(4)))))
		case 5:
			cmd.Update(rooms.Put(rng.IntN(3), me))
		case 6:
			cmd.Update(tags.Add(string(rune('p'+rng.IntN(4))), string(rune('p'+rng.IntN(4)))))
		case 7:
			cmd.Update(tags.Remove(string(rune('p' + rng.IntN(4)))))
		case 8:
			if rng.IntN(4) == 0 {
				cmd.Update(notes.Replace(me))
			} else {
				cmd.Update(notes.Append(me, me))
			}
		case 9:
			if rng.IntN(3) == 0 {
				cmd.Update(doors.Reset())
			} else {
				cmd.Update(dream.With(me))
			}
		}
	}
	if schedules && rng.IntN(3) == 0 {
		cmd.Schedule(p.tidy().New(who))
	}
	if rng.IntN(4) == 0 {
		cmd.Emit(mail.New(me))
	}
	if rng.IntN(12) == 0 {
		return errors.New("bad day")
	}
	return nil
}

func (p *program) plugins() []engine.Plugin {
	var out []engine.Plugin
	for _, name := range []string{"a", "b", "c", "d"} {
		out = append(out, engine.NewPlugin(name, func(r *engine.Registrar) error {
			for i, at := range []phase.Phase{phase.StepStart, phase.StepStart, phase.AfterInference, phase.AfterToolExecute} {
				who := fmt.Sprintf("%s/%s/%d", name, at, i%2*min(1, i))
				if at != phase.StepStart {
					who = fmt.Sprintf("%s/%s/0", name, at)
				}
				r.Hook(at, hookFunc(func(pc *phase.Context, cmd *phase.Command) error { return p.act(who, pc, cmd, at == phase.StepStart) }),
					engine.OnError(engine.Skip), engine.Tier(int(p.seed)%2*i%2))
			}
			return nil
		}))
	}
	return append(out, engine.NewPlugin("keeper", func(r *engine.Registrar) error {
		r.Action(p.tidy().Handle(func(_ context.Context, pc *phase.Context, by string) (cmd phase.Command, err error) {
			return cmd, p.act("tidy for "+by, pc, &cmd, pc.Round() < 2 && p.seed%3 == 0)
		}))
		r.Effect(mail.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
		return nil
	}))
}

// play runs a random program on one thread, twice.
func play(t testing.TB, seed uint64) (*world, *engine.Thread) {
	p := &program{seed: seed, calls: map[string]int{}}
	w := newWorld(t, script(
		enginetest.Call("c1", "look", nil), enginetest.Call("c2", "look", nil), enginetest.Say("one"), enginetest.Call("c3", "look", nil), enginetest.Say("two"),
	), p.plugins()...)
	th, err := w.engine.NewThread("t")
	require.NoError(t, err)
	for range 2 {
		in := engine.Prompt("go")
		in.Tools = []engine.Tool{engine.NewTool(toolSpec("look"), func(_ context.Context, pc *phase.Context, _ struct{}) (out engine.Output, err error) {
			out = engine.Text("seen")
			if seed%2 == 0 {
				out.Command.Update(doors.Put("a", "call "+pc.Call().ID), total.With(1))
			}
			return out, nil
		})}
		_, err = th.Run(t.Context(), engine.AgentSpec{ID: "agent", MaxRounds: 6}, in)
		require.NoError(t, err)
	}
	return w, th
}

// Capability B2. For any key and revision of random runs, the explanation names who
// wrote the value that is really there, when, in which phase and round, whether in a
// retry, and the same value; and who lost a conflict is told with what its retry did.
func TestExplanationsAgreeWithWhatHooksDid(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(24) {
		w, _ := play(t, seed)
		checkState(t, w.rec, w.dumps)
		checkAuthors(t, w, kinds)
	}
	for _, kind := range []string{"hook", "retry", "action", "round 2", "call", "loser"} {
		require.NotZero(t, kinds[kind], kind)
	}
}

// place is a value that names its author.
type place struct{ key, entry string }

// signed are the values of a state that name their authors.
func signed(t *testing.T, d state.Dump) map[place]string {
	out := map[place]string{}
	for _, e := range d.Entries {
		switch e.Name {
		case "board":
			out[place{"board", ""}] = decoded(t, e.Raw).(string)
		case "doors", "rooms":
			for name, v := range exported(t, e, true).(map[string]any) {
				out[place{e.Name, name}] = v.(string)
			}
		}
	}
	return out
}

func checkAuthors(t *testing.T, w *world, kinds map[string]int) {
	revs := w.dumps.of["t"]
	order := make([]uint64, 0, len(revs))
	for rev := range revs {
		order = append(order, rev)
	}
	slices.Sort(order)
	since := map[place]uint64{} // revision that the value came with
	was := map[place]string{}
	all := map[place]bool{}
	for _, rev := range order {
		now := signed(t, revs[rev])
		for at, author := range now {
			all[at] = true
			if was[at] != author {
				since[at] = rev
			}
		}
		for at := range was {
			if _, still := now[at]; !still {
				since[at] = rev
			}
		}
		was = now
		for at := range all {
			x, err := w.rec.Explain(recording.Query{Thread: "t", Key: at.key, Entry: at.entry, Revision: rev})
			require.NoError(t, err)
			author, set := now[at]
			require.Equal(t, set, x.Value.Set, "%v at %d: %s", at, rev, x)
			if !set {
				continue
			}
			require.Equal(t, author, decoded(t, []byte(x.Value.JSON)))
			require.NotEmpty(t, x.Writers, "%v at %d: %s", at, rev, x)
			by := x.Writers[len(x.Writers)-1]
			if id, is := strings.CutPrefix(author, "call "); is {
				require.Equal(t, id, by.Call)
				require.Equal(t, "look", by.Tool)
				require.GreaterOrEqual(t, x.Revision, since[at]) // its values are the same each time
				kinds["call"]++
				continue
			}
			require.Equal(t, since[at], x.Revision, "%v at %d: %s", at, rev, x)
			parts := strings.Fields(author)
			step, tries := parts[len(parts)-2], parts[len(parts)-1]
			require.Equal(t, step, fmt.Sprint(by.Step))
			if parts[0] == "tidy" {
				require.Equal(t, "tidy", by.Action)
				require.Equal(t, "keeper", by.Plugin)
				require.NotZero(t, by.Round)
				require.Equal(t, "step_start", by.Phase)
				kinds["action"]++
				kinds[fmt.Sprint("round ", by.Round)]++
				continue
			}
			require.Equal(t, parts[0], by.Hook)
			require.Equal(t, strings.Split(parts[0], "/")[:2], []string{by.Plugin, by.Phase})
			require.Zero(t, by.Round)
			require.Equal(t, tries != "1", by.Retry, author)
			kinds["hook"]++
			if by.Retry {
				kinds["retry"]++
			}
			require.Contains(t, x.String(), by.Hook)
		}
	}
	// Who lost is told where the winner is, with what its retry wrote.
	for _, c := range enginetest.Select[engine.Conflict](w.events.Events()) {
		if c.Hook == "" || c.Round > 0 {
			continue
		}
		v := w.rec.View()
		told := 0
		for _, k := range v.Commits {
			for _, l := range k.Conflicts {
				if l.Hook == c.Hook && k.Step == c.Step && l.Key == c.Key && l.Entry == c.Entry && l.Winner == c.Winner {
					told++
					require.True(t, slices.ContainsFunc(k.Writes, func(w recording.Write) bool {
						return w.Plugin == c.Winner && w.Key == c.Key
					}) || c.Key == "notes", "the winner's commit has it")
					x, err := w.rec.Explain(recording.Query{Thread: "t", Key: c.Key, Entry: c.Entry, Revision: k.Rev})
					if err != nil {
						continue // an element that nobody ever added
					}
					i := slices.IndexFunc(x.Losers, func(l recording.Loser) bool { return l.Hook == c.Hook })
					if x.Revision == k.Rev {
						require.GreaterOrEqual(t, i, 0, x.String())
						if re := x.Losers[i].Retry; re != nil {
							require.Greater(t, re.Revision, k.Rev)
							require.Equal(t, c.Hook, re.Hook)
							require.True(t, re.Retry)
						}
						kinds["loser"]++
					}
				}
			}
		}
		require.NotZero(t, told, "%+v", c)
	}
}
