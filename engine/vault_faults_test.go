package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// tkFaults are the ways in which a vault does not keep a secret.
var tkFaults = map[string]func() (string, error){
	"error":                  func() (string, error) { return "h", errors.New("no room for " + tkSecret) },
	"panic":                  func() (string, error) { panic(tkSecret) },
	"goexit":                 func() (string, error) { runtime.Goexit(); return "", nil },
	"hang":                   func() (string, error) { time.Sleep(time.Hour); return "h", nil },
	"no handle":              func() (string, error) { return "", nil },
	"the secret":             func() (string, error) { return tkSecret, nil },
	"a handle that shows it": func() (string, error) { return "user:" + tkSecret, nil },
}

// A vault that does not keep a secret has the decision refused, whole, and without a word
// of the secret; it can be repeated when the vault works again.
func TestVaultsThatDoNotKeep(t *testing.T) {
	for name, fault := range tkFaults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trail, v, got := &tkTrail{}, &tkVault{keep: fault}, &gbLog{}
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "plain", ""))), Vault: v, Logger: rsLogger(&trail.log),
					Plugins: []engine.Plugin{gbTools(trail.login(got, true), gbToolOf("plain", nil)), trail.plugin(), gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if pc.Call().Name == "plain" {
							return gate.Suspend(gate.Ticket{}), nil
						}
						return gate.Abstain(), nil
					})},
					Limits: engine.Limits{JournalTimeout: time.Second},
				})
				w.say("go")
				err := w.refused(engine.ErrVault, 1, rsYes("c2"), engine.Decision{Call: "c1", Answer: tkYes(tkValue)})
				require.NotContains(t, err.Error(), "hunter2")
				v.repair()
				require.Equal(t, phase.Done, w.resume(rsYes("c2"), engine.Decision{Call: "c1", Answer: tkYes(tkValue)}).Status)
				require.Equal(t, []string{tkSecret}, got.all())
				trail.clean(t, w)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// Who answers in place is there and has nobody to repeat it: the call goes on with the
// secret, and a warning says that it would not survive the process.
func TestVaultsThatDoNotKeepInPlace(t *testing.T) {
	for name, fault := range tkFaults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trail, got := &tkTrail{}, &gbLog{}
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Vault: &tkVault{keep: fault}, Logger: rsLogger(&trail.log),
					Plugins:  []engine.Plugin{gbTools(trail.login(got, true)), trail.plugin()},
					Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return tkYes(tkValue), nil }),
					Limits:   engine.Limits{JournalTimeout: time.Second},
				})
				require.Equal(t, phase.Done, w.say("go").Status)
				require.Equal(t, []string{tkSecret}, got.all())
				require.Contains(t, gbOf[engine.Warning](w.events)[0].Message, "lost if the process ends")
				trail.clean(t, w)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// A vault that does not forget holds nothing up; that the secret is still there is in a
// warning, with its handle.
func TestVaultsThatDoNotForget(t *testing.T) {
	for name, fault := range tkFaults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trail, got := &tkTrail{}, &gbLog{}
				v := &tkVault{forget: func() error {
					if _, err := fault(); err != nil {
						return err
					}
					return nil
				}}
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Vault: v, Logger: rsLogger(&trail.log),
					Plugins:  []engine.Plugin{gbTools(trail.login(got, true)), trail.plugin()},
					Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return tkYes(tkValue), nil }),
					Limits:   engine.Limits{Grace: time.Second},
				})
				res := w.say("go")
				require.Equal(t, phase.Done, res.Status)
				require.NoError(t, res.Err)
				trail.clean(t, w)
				if len(v.has()) > 0 {
					require.Contains(t, fmt.Sprint(gbOf[engine.Warning](w.events)), "vault-1")
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// A resolver that fails over a secret is warned about without its error, which may quote
// it. Its answer of another form is told without the answer.
func TestResolversThatQuoteASecret(t *testing.T) {
	for name, c := range map[string]struct {
		resolver gate.ResolverFunc
		says     string
	}{
		"error": {func(context.Context, gate.Ticket) (phase.Answer, error) {
			return tkYes(tkValue), errors.New(tkSecret)
		}, "may show a secret"},
		"panic": {func(context.Context, gate.Ticket) (phase.Answer, error) { panic(tkSecret) }, "may show a secret"},
		"form": {func(context.Context, gate.Ticket) (phase.Answer, error) {
			return tkYes("[" + tkValue + "]"), nil
		}, "wants a text"},
	} {
		t.Run(name, func(t *testing.T) {
			trail, got := &tkTrail{}, &gbLog{}
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Logger: rsLogger(&trail.log), Resolver: c.resolver,
				Plugins: []engine.Plugin{gbTools(trail.login(got, true)), trail.plugin()},
			})
			require.Equal(t, phase.Waiting, w.say("go").Status)
			require.Contains(t, gbOf[engine.Warning](w.events)[0].Message, c.says)
			trail.clean(t, w)
		})
	}
}

// An answer with a secret and arguments that the tool refuses blocks the call, and no
// hook sees the secret.
func TestSecretWithBadArguments(t *testing.T) {
	trail, got := &tkTrail{}, &gbLog{}
	tool := trail.login(got, true)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))), Vault: &tkVault{}, Logger: rsLogger(&trail.log),
		Plugins: []engine.Plugin{gbTools(tkChecked{tool}), trail.plugin()},
		Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
			a := tkYes(tkValue)
			a.Args = `{"n":2}`
			return a, nil
		}),
	})
	require.Equal(t, phase.Done, w.say("go").Status)
	require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
	require.Empty(t, got.all())
	trail.clean(t, w)
}

// tkChecked is a tool that takes only the arguments {"n":1}.
type tkChecked struct{ *gbTool }

func (tkChecked) Validate(args inference.JSON) error {
	if args != `{"n":1}` {
		return errors.New("n must be 1")
	}
	return nil
}

// Secrets are taken out of results however they are written, and what is left is JSON.
// Texts of less than four bytes stay, since they would be found everywhere.
func TestResultsWithoutSecrets(t *testing.T) {
	for _, c := range []struct {
		secrets []string
		out     engine.Output
		content string
		details inference.JSON
	}{
		{[]string{"1234"}, engine.Output{Content: "pin 1234, port 12345", Details: `{"pin":1234,"port":12345,"big":100000000000000000001}`},
			"pin [secret], port [secret]5", `{"big":100000000000000000001,"pin":"[secret]","port":"[secret]5"}`},
		{[]string{"true"}, engine.Output{Content: "true", Details: `[true,"true"]`}, "[secret]", `[true,"[secret]"]`},
		{[]string{`","`}, engine.Output{Content: `a","b`, Details: `["a","b"]`}, `a","b`, `["a","b"]`},
		{[]string{`":{"`}, engine.Output{Content: `x":{"y`, Details: `{"a":{"b":1}}`}, `x[secret]y`, `{"a":{"b":1}}`},
		{[]string{"abcd", "abcdefg"}, engine.Output{Content: "abcdefgh abcde"}, "[secret]h [secret]e", ""},
		{[]string{"secret"}, engine.Output{Content: "a secret"}, "a [secret]", ""},
		{[]string{"key-1"}, engine.Output{Details: `{"key-1":{"key-1x":["key-1"]}}`}, "", `{"[secret]":{"[secret]x":["[secret]"]}}`},
		{[]string{"a\nb\tc"}, engine.Output{Content: `"a\nb\tc" ` + "a\nb\tc"}, `"[secret]" [secret]`, ""},
		{[]string{"abc"}, engine.Output{Content: "abc", Details: `{ "a" : "abc" }`}, "abc", `{ "a" : "abc" }`},
		{[]string{"other"}, engine.Output{Content: "x", Details: `{ "b":1.50, "a":2 }`}, "x", `{ "b":1.50, "a":2 }`},
	} {
		tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			if n := len(pc.Answers()); n < len(c.secrets) {
				return engine.Output{Ask: &gate.Ticket{Kind: gate.Secret, Message: fmt.Sprint(n)}}, nil
			}
			return c.out, nil
		})
		var n int
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: []engine.Plugin{gbTools(tool)},
			Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
				value, err := json.Marshal(c.secrets[n])
				n++
				return tkYes(inference.JSON(value)), err
			}),
		})
		w.say("go")
		require.Equal(t, c.content, w.one().Content, "%q", c.secrets)
		require.Equal(t, c.details, w.one().Details, "%q", c.secrets)
	}
}

// A command that is refused is told in the result, which the state's own words could
// bring the secret into.
func TestRefusedCommandWithASecret(t *testing.T) {
	trail := &tkTrail{}
	tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
		if len(pc.Answers()) == 0 {
			return engine.Output{Ask: &gate.Ticket{Kind: gate.Secret}}, nil
		}
		var text string
		a, _ := pc.Answer()
		err = a.Value.Decode(&text)
		out.Command.Schedule(phase.NewAction[string](text, phase.StepEnd).New(text))
		return out, err
	})
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: []engine.Plugin{gbTools(tool), trail.plugin()}, Logger: rsLogger(&trail.log),
		Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return tkYes(`"hunter2"`), nil }),
	})
	w.say("go")
	require.True(t, strings.HasPrefix(w.one().Content, "the tool ran, but its state changes were refused"))
	require.Contains(t, w.one().Content, "[secret]")
	trail.clean(t, w)
}

// A handle may happen to have in it what a short secret is.
func TestShortSecretsAndHandles(t *testing.T) {
	v := &tkVault{}
	got := &gbLog{}
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Vault: v, Plugins: []engine.Plugin{gbTools((&tkTrail{}).login(got, true))},
	})
	w.say("go")
	require.Equal(t, phase.Done, w.resume(engine.Decision{Answer: tkYes(`"1"`)}).Status)
	require.Equal(t, []string{"1"}, got.all())
	require.Equal(t, []string{"keep vault-1 of thread"}, v.calls("keep"))
}

// What was given as a secret for the release of a result is forgotten too.
func TestSecretOfAWithheldResultIsForgotten(t *testing.T) {
	v, trail := &tkVault{}, &tkTrail{}
	hold := engine.WithholdResult.New(gate.Ticket{Kind: gate.Secret, Message: "Code?"})
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Vault: v, Logger: rsLogger(&trail.log),
		Plugins:  []engine.Plugin{gbTools(gbToolOf("ask", nil)), rsHold(phase.AfterToolExecute, hold), trail.plugin()},
		Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return tkYes(tkValue), nil }),
	})
	require.Equal(t, phase.Done, w.say("go").Status)
	require.Equal(t, "ask ran", w.one().Content)
	require.Empty(t, v.has())
	require.Len(t, v.calls("forget"), 1)
	trail.clean(t, w)
}
