package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/elicit"
)

// vault keeps secrets in memory.
type vault map[string]string

func (v vault) Keep(_ context.Context, thread, secret string) (string, error) {
	handle := fmt.Sprintf("handle-%d-of-%s", len(v)+1, thread)
	v[handle] = secret
	return handle, nil
}

func (v vault) Reveal(_ context.Context, handle string) (string, error) { return v[handle], nil }

func (v vault) Forget(_ context.Context, handle string) error { delete(v, handle); return nil }

// short is a checker whose only schema allows values of at most 12 bytes.
func short(_, value inference.JSON) error {
	if len(value) > 12 {
		return errors.New("too long")
	}
	return nil
}

// world is a thread whose model asks one question.
type world struct {
	thread *engine.Thread
	rec    *enginetest.Recorder
	spec   engine.AgentSpec
}

func newWorld(t *testing.T, section string, args any, change func(*engine.Config)) *world {
	t.Helper()
	config, rec := enginetest.Config(t, elicit.New())
	config.Schemas = engine.SchemaCheckerFunc(short)
	config.Model = enginetest.NewScript(enginetest.Call("c1", elicit.Tool, args), enginetest.Say("done"))
	config.Now = nil
	if change != nil {
		change(&config)
	}
	th, err := enginetest.Engine(t, config).NewThread("thread")
	require.NoError(t, err)
	w := &world{thread: th, rec: rec, spec: engine.AgentSpec{ID: "a"}}
	if section != "" {
		w.spec.Sections = map[string]inference.JSON{elicit.Name: inference.JSON(section)}
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

func (w *world) resume(t *testing.T, a ...phase.Answer) *engine.Result {
	t.Helper()
	var ds []engine.Decision
	for _, one := range a {
		ds = append(ds, engine.Decision{Answer: one})
	}
	res, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, ds...)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return res
}

// result returns the result of the only call.
func (w *world) result(t *testing.T) inference.ToolResult {
	t.Helper()
	done := enginetest.Select[engine.ToolFinished](w.rec.Events())
	require.Len(t, done, 1)
	return done[0].Result
}

func yes(value inference.JSON) phase.Answer { return phase.Answer{Approved: true, Value: value} }

// Capability G6. Every kind of question is asked as what it is, and its answer, a no and
// a cancellation are results of one shape, that are no errors. Answers of another form
// are refused.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		args   string
		bad    []inference.JSON
		good   inference.JSON
		result string
	}{
		{`{"kind":"text","message":"Name?"}`, []inference.JSON{`5`, ``}, `"Ada"`, `{"status":"answered","kind":"text","value":"Ada"}`},
		{`{"kind":"text","message":"Name?","schema":{"type":"string"}}`, []inference.JSON{`"Ada of London"`}, `"Ada"`, `{"status":"answered","kind":"text","value":"Ada"}`},
		{`{"kind":"choice","message":"Which?","choices":["a","b"]}`, []inference.JSON{`"c"`, ``, `["a"]`}, `"b"`, `{"status":"answered","kind":"choice","value":"b"}`},
		{`{"kind":"multi_choice","message":"Which?","choices":["a","b"]}`, []inference.JSON{`["c"]`, `"a"`}, `["b","a"]`, `{"status":"answered","kind":"multi_choice","value":["b","a"]}`},
		{`{"kind":"form","message":"Where?","schema":{"type":"object"}}`, []inference.JSON{`[]`, `{"long":"0123456789"}`}, `{"n":1}`, `{"status":"answered","kind":"form","value":{"n":1}}`},
		{`{"kind":"confirm","message":"Sure?"}`, nil, ``, `{"status":"answered","kind":"confirm","value":true}`},
	} {
		t.Run(c.args, func(t *testing.T) {
			var q elicit.Question
			require.NoError(t, json.Unmarshal([]byte(c.args), &q))
			for answer, want := range map[phase.Answer]string{
				yes(c.good):                        c.result,
				{Reason: "not now"}:                fmt.Sprintf(`{"status":"declined","kind":"%s","reason":"not now"}`, q.Kind),
				{Cancel: true, Reason: "I'm gone"}: fmt.Sprintf(`{"status":"cancelled","kind":"%s","reason":"I'm gone"}`, q.Kind),
			} {
				if q.Kind == gate.Confirm && answer.Reason == "not now" {
					want = `{"status":"answered","kind":"confirm","value":false,"reason":"not now"}`
				}
				w := newWorld(t, `{"unattended":"wait"}`, q, nil)
				res := w.run(t)
				require.Equal(t, phase.Waiting, res.Status)
				ticket := res.Tickets[0]
				require.Equal(t, q.Kind, ticket.Kind)
				require.Equal(t, q.Message, ticket.Message)
				require.Equal(t, q.Schema, ticket.Schema)
				for _, bad := range c.bad {
					_, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: yes(bad)})
					require.ErrorIs(t, err, engine.ErrBadAnswer, bad)
				}
				require.Equal(t, phase.Done, w.resume(t, answer).Status)
				got := w.result(t)
				require.Equal(t, want, got.Content)
				require.Equal(t, inference.JSON(want), got.Details)
				require.False(t, got.IsError)
			}
		})
	}
}

// Capability G6. Of a secret the model, the state and the events have a handle, with
// which tools find it in the vault after the call. Without a vault it is refused, and it
// is nowhere.
func TestSecrets(t *testing.T) {
	for _, kept := range []bool{true, false} {
		v := vault{}
		w := newWorld(t, `{"unattended":"wait"}`, elicit.Question{Kind: gate.Secret, Message: "Token?"}, func(c *engine.Config) {
			if kept {
				c.Vault = v
			}
		})
		require.Len(t, w.run(t).Tickets, 1)
		w.resume(t, yes(`"hunter2"`))
		got := w.result(t)
		if kept {
			require.Equal(t, `{"status":"answered","kind":"secret","handle":"handle-1-of-thread"}`, got.Content)
			require.Equal(t, vault{"handle-1-of-thread": "hunter2"}, v, "the result hands it on")
		} else {
			require.True(t, got.IsError)
			require.Contains(t, got.Content, elicit.ErrNoVault.Error())
			require.Empty(t, v)
		}
		dump, err := w.thread.Export()
		require.NoError(t, err)
		text, err := json.Marshal(dump)
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2")
		require.NotContains(t, strings.Join(w.rec.Lines(), "\n"), "hunter2")
	}
}

// Capability M5. Without anybody to ask, a question's own default counts, or else what
// the section says; with a lifetime, when that is over.
func TestUnattended(t *testing.T) {
	for _, c := range []struct{ section, args, want string }{
		{``, `{"kind":"text","message":"?"}`, `{"status":"cancelled","kind":"text","reason":"nobody is there to ask"}`},
		{`{"unattended":"cancel"}`, `{"kind":"confirm","message":"?"}`, `{"status":"cancelled","kind":"confirm","reason":"nobody is there to ask"}`},
		{`{"unattended":"decline"}`, `{"kind":"form","message":"?"}`, `{"status":"declined","kind":"form","reason":"nobody is there to ask, and the default is no"}`},
		{`{"unattended":"decline"}`, `{"kind":"confirm","message":"?"}`, `{"status":"answered","kind":"confirm","value":false,"reason":"nobody is there to ask, and the default is no"}`},
		{`{"unattended":"decline"}`, `{"kind":"secret","message":"?"}`, `{"status":"declined","kind":"secret","reason":"nobody is there to ask, and the default is no"}`},
		{`{"unattended":"wait"}`, `{"kind":"text","message":"?"}`, ""},
		{`{"unattended":"wait"}`, `{"kind":"text","message":"?","default":""}`, `{"status":"answered","kind":"text","value":""}`},
		{``, `{"kind":"choice","message":"?","choices":["a","b"],"default":"b"}`, `{"status":"answered","kind":"choice","value":"b"}`},
		{``, `{"kind":"multi_choice","message":"?","choices":["a"],"default":[]}`, `{"status":"answered","kind":"multi_choice","value":[]}`},
		{``, `{"kind":"form","message":"?","default":{"n":1}}`, `{"status":"answered","kind":"form","value":{"n":1}}`},
		{``, `{"kind":"confirm","message":"?","default":true}`, `{"status":"answered","kind":"confirm","value":true}`},
		{``, `{"kind":"confirm","message":"?","default":false}`, `{"status":"answered","kind":"confirm","value":false,"reason":"nobody is there to ask, and the default is no"}`},
	} {
		w := newWorld(t, c.section, json.RawMessage(c.args), nil)
		if c.want == "" {
			require.Equal(t, phase.Waiting, w.run(t).Status)
			continue
		}
		require.Equal(t, phase.Done, w.run(t).Status)
		require.Equal(t, c.want, w.result(t).Content)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{"lifetime":"10m"}`, json.RawMessage(`{"kind":"text","message":"?"}`), nil)
		require.Equal(t, phase.Waiting, w.run(t).Status)
		time.Sleep(10*time.Minute - 1)
		require.Equal(t, phase.Waiting, w.resume(t).Status)
		time.Sleep(time.Nanosecond)
		require.Equal(t, phase.Done, w.resume(t).Status)
		require.Equal(t, `{"status":"cancelled","kind":"text","reason":"nobody answered in time"}`, w.result(t).Content)
	})
}

// Arguments are taken strictly: the model is told what is wrong where, and nobody is
// asked.
func TestFaultyQuestions(t *testing.T) {
	for args, says := range map[string]string{
		`{"kind":"text","message":"?","extra":1}`:                                     `offset`,
		`{"kind":"text","message":5}`:                                                 `offset`,
		`{"kind":"poll","message":"?"}`:                                               `kind is "poll"`,
		`{"message":"?"}`:                                                             `kind is ""`,
		`{"kind":"text"}`:                                                             `message is empty`,
		`{"kind":"choice","message":"?"}`:                                             `choices are empty`,
		`{"kind":"text","message":"?","choices":["a"]}`:                               `choices are for`,
		`{"kind":"choice","message":"?","choices":["a","b","a"]}`:                     `choices[2] is "a" again`,
		`{"kind":"confirm","message":"?","schema":{}}`:                                `schema is for text and form`,
		`{"kind":"form","message":"?","schema":[]}`:                                   `schema is no JSON object`,
		`{"kind":"secret","message":"?","default":"x"}`:                               `a secret has none`,
		`{"kind":"confirm","message":"?","default":"yes"}`:                            `default does not suit a confirm`,
		`{"kind":"form","message":"?","default":[1]}`:                                 `default does not suit a form`,
		`{"kind":"multi_choice","message":"?","choices":["a"],"default":"a"}`:         `default does not suit a multi_choice`,
		`{"kind":"choice","message":"?","choices":["a"],"default":"b"}`:               `default: "b" is none of`,
		`{"kind":"text","message":"?","schema":{},"default":"longer than it may be"}`: `fallback that its own question does not allow`,
	} {
		asked := false
		w := newWorld(t, "", json.RawMessage(args), func(c *engine.Config) {
			c.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
				asked = true
				return yes(`"x"`), nil
			})
		})
		require.Equal(t, phase.Done, w.run(t).Status)
		require.True(t, w.result(t).IsError, args)
		require.Contains(t, w.result(t).Content, says)
		require.False(t, asked)
	}
}

func TestFaultySettings(t *testing.T) {
	for _, section := range []string{`{"unattended":"guess"}`, `{"lifetime":"soon"}`, `{"lifetime":"-1s"}`, `{"lifetime":"0s"}`, `{"life":"1s"}`} {
		config, _ := enginetest.Config(t, elicit.New())
		err := enginetest.Engine(t, config).Check(engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{elicit.Name: inference.JSON(section)}})
		require.ErrorIs(t, err, engine.ErrSpec, section)
	}
}

// The result of a gate's no to the call stays as it is: that question was another one.
func TestDeniedByAGate(t *testing.T) {
	w := newWorld(t, "", elicit.Question{Kind: gate.Text, Message: "?"}, func(c *engine.Config) {
		c.Plugins = append(c.Plugins, engine.NewPlugin("guard", func(r *engine.Registrar) error {
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
				return gate.Suspend(gate.Ticket{Message: "May it ask?", Default: gate.DefaultNo}), nil
			}))
			return nil
		}))
	})
	w.run(t)
	require.True(t, w.result(t).IsError)
	require.Equal(t, "denied: nobody is there to ask, and the default is no", w.result(t).Content)
}
