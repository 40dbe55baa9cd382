package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

const tkSecret = `hunter2 "<&>" ü`

// tkValue is the secret as an answer has it.
var tkValue = func() inference.JSON { v, _ := inference.ToJSON(tkSecret); return v }()

// tkVault keeps secrets in memory, under handles that count.
type tkVault struct {
	mu     sync.Mutex
	kept   map[string]string
	log    []string
	keep   func() (string, error) // instead of keeping
	reveal func() (string, error) // instead of revealing
	forget func() error           // before forgetting
}

func (v *tkVault) Keep(_ context.Context, thread, secret string) (string, error) {
	v.mu.Lock()
	instead := v.keep
	v.mu.Unlock()
	if instead != nil {
		return instead()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil {
		v.kept = map[string]string{}
	}
	handle := fmt.Sprintf("vault-%d", len(v.log)+1)
	v.kept[handle] = secret
	v.log = append(v.log, "keep "+handle+" of "+thread)
	return handle, nil
}

func (v *tkVault) Reveal(_ context.Context, handle string) (string, error) {
	if v.reveal != nil {
		return v.reveal()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, "reveal "+handle)
	secret, ok := v.kept[handle]
	if !ok {
		return "", errors.New("gone: " + handle)
	}
	return secret, nil
}

func (v *tkVault) Forget(_ context.Context, handle string) error {
	if v.forget != nil {
		if err := v.forget(); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, "forget "+handle)
	delete(v.kept, handle)
	return nil
}

// repair lets the vault work from now on.
func (v *tkVault) repair() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keep = nil
}

// has returns the handles of what is kept.
func (v *tkVault) has() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.kept))
}

// calls returns what was done so far.
func (v *tkVault) calls(of string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return gbLines(v.log, of)
}

// tkTrail collects everything that could show a secret.
type tkTrail struct {
	log gbLog // slog lines, and what hooks and gates are told
}

// plugin notes what gates and hooks are told of the answers.
func (l *tkTrail) plugin() engine.Plugin {
	return engine.NewPlugin("trail", func(r *engine.Registrar) error {
		note := func(pc *phase.Context) {
			a, _ := pc.Answer()
			l.log.add("%s %+v %+v %+v", pc.Phase(), a, pc.Answers(), pc.Result())
		}
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			note(pc)
			return gate.Abstain(), nil
		}))
		for p := range phase.All() {
			if p != phase.ToolGate {
				r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					note(pc)
					return phase.Command{}, nil
				}))
			}
		}
		return nil
	})
}

// clean fails the test if the secret, in any way it may be written, is anywhere in what
// was collected, in a world or in the journal.
func (l *tkTrail) clean(t *testing.T, worlds ...*gbWorld) {
	t.Helper()
	all := l.log.all()
	for _, w := range worlds {
		dump, err := w.thread.Export()
		require.NoError(t, err)
		text, err := json.Marshal(dump)
		require.NoError(t, err)
		all = append(all, string(text), fmt.Sprintf("%+v %+v", w.messages(), w.thread.Tickets()))
		for _, e := range w.events.all() {
			text, err := json.Marshal(e)
			require.NoError(t, err)
			all = append(all, string(text), fmt.Sprintf("%+v", e))
		}
		if store, ok := w.journal.(*memstore.Store); ok {
			image, err := store.Load(t.Context(), "thread", 0)
			require.NoError(t, err)
			require.NotZero(t, image.Revision)
			for at := uint64(1); at <= image.Revision; at++ {
				image, err := store.LoadAt(t.Context(), "thread", at)
				require.NoError(t, err)
				all = append(all, string(image.Snapshot))
				for _, r := range image.Tail {
					all = append(all, string(r.Record))
				}
			}
		}
	}
	for _, text := range all {
		require.NotContains(t, text, "hunter2")
	}
}

// login is a tool that notes what it is told, and tells everything in every way.
func (l *tkTrail) login(got *gbLog, ask bool) *gbTool {
	return gbToolOf("ask", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
		if ask && len(pc.Answers()) == 0 {
			return engine.Output{Ask: &gate.Ticket{Kind: gate.Secret, Message: "Password?"}}, nil
		}
		a, _ := pc.Answer()
		var text string
		if err := a.Value.Decode(&text); err != nil {
			return out, err
		}
		got.add("%s", text)
		escaped, _ := json.Marshal(map[string]any{text: []any{1.50, text, map[string]string{"in": "a " + text + " b"}}})
		out.Content = "said " + text + " and " + string(a.Value) + " and " + string(escaped)
		out.Details = inference.JSON(escaped)
		if pc.Call().ID == "fails" {
			return out, fmt.Errorf("no entry with %q: %s", text, a.Value)
		}
		return out, nil
	})
}

// tkSecrets runs a test for every place and every way to ask for a secret.
func tkSecrets(t *testing.T, vault bool, test func(t *testing.T, trail *tkTrail, v *tkVault, got *gbLog, begin func(call string) *gbWorld, then func(*gbWorld) *gbWorld)) {
	ticket := gate.Ticket{Kind: gate.Secret, Message: "Password?", Mode: gate.PassToTool}
	for _, asker := range []string{"gate", "action", "tool"} {
		t.Run(asker, func(t *testing.T) {
			tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
				trail, v, got := &tkTrail{}, &tkVault{}, &gbLog{}
				config := func(call string) engine.Config {
					plugins := []engine.Plugin{gbTools(trail.login(got, asker == "tool")), trail.plugin()}
					switch asker {
					case "gate":
						plugins = append(plugins, rsAsker(ticket))
					case "action":
						plugins = append(plugins, rsHold(phase.BeforeToolExecute, engine.SuspendCall.New(ticket)))
					}
					c := engine.Config{Model: gbScript(gbAsk(gbCall(call, "ask", ""))), Plugins: plugins, Logger: rsLogger(&trail.log)}
					if vault {
						c.Vault = v
					}
					return c
				}
				test(t, trail, v, got, func(call string) *gbWorld {
					c := config(call)
					return begin(c)
				}, func(w *gbWorld) *gbWorld { return then(w, config("c1")) })
			})
		})
	}
}

// Capability G6. Scenario: secret answer. A secret reaches the tool, once, and is nowhere
// else: not in state, the export, the journal, the events, the log, the result with its
// details, or what hooks and gates are told, whether the tool succeeds or quotes it in an
// error. The vault forgets it with the call's result.
func TestSecretsStayInTheVault(t *testing.T) {
	for _, vault := range []bool{true, false} {
		for _, call := range []string{"c1", "fails"} {
			tkSecrets(t, vault, func(t *testing.T, trail *tkTrail, v *tkVault, got *gbLog, begin func(string) *gbWorld, then func(*gbWorld) *gbWorld) {
				first := begin(call)
				first.say("go")
				w := then(first)
				res := w.resume(engine.Decision{ID: "d", Answer: tkYes(tkValue)})
				require.Equal(t, phase.Done, res.Status)
				require.Equal(t, []string{tkSecret}, got.all())
				if call == "c1" {
					require.Contains(t, w.one().Content, "said [secret] and ")
					var details map[string][]any
					require.NoError(t, json.Unmarshal([]byte(w.one().Details), &details))
					require.Equal(t, "[secret]", details["[secret]"][1])
					require.Contains(t, string(w.one().Details), `1.5`, "the rest of the details is as it was")
				} else {
					require.Contains(t, w.one().Content, `no entry with `)
				}
				trail.clean(t, first, w)
				if vault {
					require.Equal(t, []string{"keep vault-1 of thread"}, v.calls("keep"))
					require.Empty(t, v.calls("reveal"), "who brought it need not ask for it")
					require.Equal(t, []string{"forget vault-1"}, v.calls("forget"))
				}
				// A repeat of the decision does not keep it again.
				w.resume(engine.Decision{ID: "d", Answer: tkYes(tkValue)})
				require.Empty(t, v.has())
				trail.clean(t, w)
			})
		}
	}
}

// A secret that was refused is a no like any other, and is not kept.
func TestDeniedSecretsAreNotKept(t *testing.T) {
	tkSecrets(t, true, func(t *testing.T, trail *tkTrail, v *tkVault, got *gbLog, begin func(string) *gbWorld, then func(*gbWorld) *gbWorld) {
		w := begin("c1")
		w.say("go")
		w = then(w)
		w.resume(engine.Decision{Answer: phase.Answer{Value: `{"hunter2":"hunter2"}`, Reason: "no"}})
		require.Equal(t, inference.OutcomeDenied, w.one().Outcome)
		require.Empty(t, v.calls(""))
		require.Empty(t, got.all())
		trail.clean(t, w)
	})
}

// Capability G6. A secret survives its process where there is a vault: the call waits for
// something else, and who goes on with it elsewhere reveals it there. Each batch that is
// refused has its secrets forgotten.
func TestSecretsSurviveTheProcess(t *testing.T) {
	for _, lost := range []bool{false, true} {
		tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
			trail, v, got := &tkTrail{}, &tkVault{}, &gbLog{}
			ticket := gate.Ticket{Kind: gate.Secret, Message: "Password?", Mode: gate.PassToTool}
			config := func() engine.Config {
				return engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Vault: v, Logger: rsLogger(&trail.log),
					Plugins: []engine.Plugin{gbTools(trail.login(got, false)), rsAsker(ticket), trail.plugin(), gbVote("second", gate.Suspend(gate.Ticket{Message: "Sure?"}))},
				}
			}
			w := begin(config())
			w.say("go")
			w = then(w, config())
			_, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: tkYes(tkValue)}, rsYes("c9"))
			require.ErrorIs(t, err, engine.ErrUnknownTicket)
			require.NotContains(t, err.Error(), "hunter2")
			require.Empty(t, v.has(), "the batch was refused")

			res := w.resume(engine.Decision{ID: "d1", Answer: tkYes(tkValue)})
			require.Equal(t, "second", res.Tickets[0].Plugin)
			require.Len(t, v.has(), 1)
			handle := v.has()[0]
			w.resume(engine.Decision{ID: "d1", Answer: tkYes(tkValue)})
			require.Len(t, v.calls("keep"), 2, "a repeat keeps nothing")
			last := w
			w = then(w, config())
			if lost {
				v.reveal = func() (string, error) { return "", errors.New("hunter2") }
			}
			res = w.resume(engine.Decision{Call: "c1", Answer: phase.Answer{Approved: true}})
			if lost && w != last || lost && len(res.Tickets) > 0 {
				require.Equal(t, gate.Secret, res.Tickets[0].Kind, "what nobody knows any more is asked for again")
				require.Empty(t, got.all())
				require.Contains(t, strings.Join(trail.log.all(), "\n"), "did not reveal the answer to ticket")
				v.reveal = nil
				res = w.resume(engine.Decision{Answer: tkYes(tkValue)})
			}
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, []string{tkSecret}, got.all())
			if !lost {
				require.Equal(t, []string{"reveal " + handle}, v.calls("reveal"))
			}
			require.Empty(t, v.has())
			trail.clean(t, w)
		})
	}
}
