package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// desk is a plugin whose tool asks what its arguments say, and tells what it was
// answered, secrets included.
func desk() []engine.Plugin {
	type question struct {
		Kind     gate.TicketKind `json:"kind"`
		Choices  []string        `json:"choices"`
		Schema   inference.JSON  `json:"schema"`
		Default  gate.Default    `json:"default"`
		Fallback inference.JSON  `json:"fallback"`
		Lifetime time.Duration   `json:"lifetime"`
	}
	return []engine.Plugin{engine.NewPlugin("desk", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "ask", Kind: "read"}, func(_ context.Context, pc *phase.Context, q question) (engine.Output, error) {
			if answer, ok := pc.Answer(); ok {
				return engine.Text("the answer is " + string(answer.Value)), nil
			}
			t := gate.Ticket{Kind: q.Kind, Message: "What is it?", Schema: q.Schema, Default: q.Default, Fallback: q.Fallback, Lifetime: q.Lifetime}
			if q.Choices != nil {
				t.Choices = gate.Choices(q.Choices...)
			}
			return engine.Output{Ask: &t}, nil
		}))
		return nil
	})}
}

func atDesk(t *testing.T, in string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), args, cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs, Plugins: desk})
	return outcome{code, out.String(), errs.String()}
}

// asking runs an agent that asks a question in a store, and returns the store.
func asking(t *testing.T, question string) (store string) {
	t.Helper()
	spec := specFile(t, "id: clerk\nmodel_id: script:script.json\nsections:\n  permission: {allow: ['kind:read']}\n",
		`{"answers": [{"tool_calls": [{"id": "q", "tool": "ask", "args": `+question+`}]}, {"text": "I heard: {{ (.Result \"q\").Content }}"}]}`)
	store = t.TempDir()
	got := atDesk(t, "", "run", spec, "--dir", t.TempDir(), "--store", store, "-q")
	require.Equal(t, cli.ExitWaiting, got.code, got.out+got.err)
	return store
}

// ticket is the question of such an agent.
const ticket = "thread-1.run-1/1/q/1"

func stillOpen(t *testing.T, store string) bool {
	t.Helper()
	got := atDesk(t, "", "pending", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	return strings.Contains(got.out, ticket)
}

// Capability B5. Every kind of question is answered by a command, an answer that does
// not fit leaves it open, and the run goes on with one that does.
func TestAnswerKinds(t *testing.T) {
	const form = `{"kind":"form","schema":{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer","minimum":1}},"required":["city"]}}`
	for name, c := range map[string]struct {
		question string
		shows    string            // by pending
		wrong    map[string]string // words, and what is said of them
		in       string
		right    []string
		heard    string
	}{
		"text": {`{"kind":"text"}`, "     kind  text\n", map[string]string{"a b": "takes one value, got 2"}, "", []string{"blue sky"}, `"blue sky"`},
		"text with a schema": {`{"kind":"text","schema":{"minLength":3}}`, `schema  {"minLength":3}`,
			map[string]string{"ab": "a text ticket wants another value: jsonschema: the value does not fit its schema: it is shorter than 3 characters"}, "", []string{"abc"}, `"abc"`},
		"text from a pipe": {`{"kind":"text"}`, "kind  text", nil, "two\nlines\r\n", nil, `"two\nlines"`},
		"choice":           {`{"kind":"choice","choices":["red","blue one"]}`, "  choices  red, blue one\n", map[string]string{"green": `"green" is not among the choices`, `"red"`: "is not among"}, "", []string{"blue one"}, `"blue one"`},
		"several":          {`{"kind":"multi_choice","choices":["a","b","c"]}`, "     kind  multi choice\n", map[string]string{"a x": `"x" is not among the choices`, `{}`: "is not among"}, "", []string{"c", "a"}, `["c","a"]`},
		"several as JSON":  {`{"kind":"multi_choice","choices":["a","b","c"]}`, "choices  a, b, c", map[string]string{`[1]`: "wants another value"}, "", []string{`["b"]`}, `["b"]`},
		"none of several":  {`{"kind":"multi_choice","choices":["a"]}`, "", nil, "", []string{"[]"}, `[]`},
		"several lines":    {`{"kind":"multi_choice","choices":["a","b"]}`, "", nil, "b\na\n", nil, `["b","a"]`},
		"form": {form, `   schema  {"properties":{"city":`, map[string]string{`{"nights":0}`: "/city: is missing; /nights: is less than 1", `{`: "is not JSON", `[]`: "wants another value", "x": "is not JSON"},
			"", []string{`{"city":"Rome"}`}, `{"city":"Rome"}`},
		"form from a pipe": {form, "", nil, "{\"city\":\n\"Rome\"}\n", nil, "{\"city\":\n\"Rome\"}"},
		"confirm":          {`{"kind":"confirm","choices":["once","always"]}`, "", map[string]string{"never": "is not JSON", `"never"`: "is not among"}, "", []string{"always"}, `"always"`},
	} {
		t.Run(name, func(t *testing.T) {
			store := asking(t, c.question)
			require.Contains(t, atDesk(t, "", "pending", "--store", store).out, c.shows)
			before := revisionOf(t, store)
			for words, says := range c.wrong {
				values := strings.Split(words, " ")
				if strings.HasPrefix(words, "{") || c.right == nil {
					values = []string{words}
				}
				got := atDesk(t, "", append(append([]string{"answer", ticket, "--store", store}, "--"), values...)...)
				require.Equal(t, cli.ExitUsage, got.code, "%s: %s", words, got.out)
				require.Contains(t, got.err, says)
				require.Empty(t, got.out)
				require.True(t, stillOpen(t, store))
			}
			empty := atDesk(t, "", "answer", ticket, "--store", store)
			require.Equal(t, cli.ExitUsage, empty.code)
			require.Contains(t, empty.err, "give a VALUE, or write it to standard input")
			require.Equal(t, before, revisionOf(t, store), "what was refused changed nothing")

			got := atDesk(t, c.in, append([]string{"answer", "q", "--store", store, "--"}, c.right...)...)
			require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
			first, _, _ := strings.Cut(c.heard, "\n")
			require.Contains(t, got.out, "I heard: the answer is "+first)
			require.False(t, stillOpen(t, store))
			again := atDesk(t, c.in, append([]string{"answer", ticket, "--store", store, "--"}, c.right...)...)
			require.Equal(t, cli.ExitOK, again.code, again.err)
			require.Contains(t, again.out, "answered  already")
		})
	}
}

// pending --json has all that is to know of a question.
func TestPendingTerms(t *testing.T) {
	store := asking(t, `{"kind":"choice","choices":["a","b"],"schema":{"maxLength":1},"default":"approve","fallback":"a","lifetime":3600000000000}`)
	var all []map[string]any
	got := atDesk(t, "", "pending", "--json", "--store", store)
	require.NoError(t, json.Unmarshal([]byte(got.out), &all))
	until, err := time.Parse(time.RFC3339Nano, all[0]["until"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), until, time.Minute)
	delete(all[0], "until")
	delete(all[0], "args")
	require.Equal(t, []map[string]any{{
		"ticket": ticket, "thread": "thread-1", "run": "thread-1.run-1", "agent": "clerk", "kind": "choice", "plugin": "tool ask",
		"message": "What is it?", "call": "q", "tool": "ask", "choices": []any{"a", "b"}, "schema": map[string]any{"maxLength": 1.0},
		"default": "approve", "fallback": "a", "mode": "pass_to_tool",
	}}, all)
	got = atDesk(t, "", "pending", "--store", store)
	require.Regexp(t, `  default  yes: "a"\n    until  .* \((59m\S+|1h0m0s) left\)\n`, got.out)
	require.Contains(t, got.out, "continue  fixpoint answer "+ticket+" CHOICE --store ")
}

// A question whose time is over takes no answer any more; its default counts when the
// run goes on.
func TestExpiredQuestion(t *testing.T) {
	for question, heard := range map[string]string{
		`{"kind":"choice","choices":["a","b"],"default":"approve","fallback":"a","lifetime":1000000000}`: `the answer is "a"`,
		`{"kind":"text","default":"deny","lifetime":1000000000}`:                                         "denied: nobody answered in time, and the default is no",
		`{"kind":"text","lifetime":1000000000}`:                                                          "called off: nobody answered in time",
	} {
		t.Run(heard, func(t *testing.T) {
			t.Parallel()
			store := asking(t, question)
			require.Eventually(t, func() bool {
				return strings.Contains(atDesk(t, "", "pending", "--store", store).out, "its time is over")
			}, time.Minute, 50*time.Millisecond)
			late := atDesk(t, "", "answer", ticket, "b", "--store", store)
			require.Equal(t, cli.ExitUsage, late.code)
			require.Contains(t, late.err, "the time of ticket "+ticket+" is over, and its default counts; nothing was changed; go on with: fixpoint resume thread-1 --store ")
			require.True(t, stillOpen(t, store))
			got := atDesk(t, "", "resume", "thread-1", "--store", store, "-q")
			require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
			require.Contains(t, got.out, "I heard: "+heard)
			late = atDesk(t, "", "answer", ticket, "b", "--store", store)
			require.Equal(t, cli.ExitUsage, late.code)
			require.Contains(t, late.err, "is not open any more")
		})
	}
}

// Capability B5. A secret is given on standard input only. It reaches the tool, and nothing that is
// written but its file in the store, which is gone when the call is over.
func TestAnswerSecret(t *testing.T) {
	const secret = "hunter2-swordfish"
	store := asking(t, `{"kind":"secret","schema":{"minLength":9}}`)
	trace := filepath.Join(t.TempDir(), "trace")
	require.Contains(t, atDesk(t, "", "pending", "--store", store).out, "continue  fixpoint answer "+ticket+" --store "+store)

	got := atDesk(t, "", "answer", ticket, secret, "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "a secret is never given as an argument")
	require.NotContains(t, got.err, secret)
	got = atDesk(t, "short-1\n", "answer", ticket, "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, "the answer was refused")
	require.NotContains(t, got.err, "short-1")
	require.True(t, stillOpen(t, store))

	got = atDesk(t, secret+"\n", "answer", ticket, "--store", store, "--trace", trace, "-v")
	require.Equal(t, cli.ExitOK, got.code, got.out+got.err)
	require.Contains(t, got.out, "I heard: the answer is \"[secret]\"")
	require.NotContains(t, got.out+got.err, secret)
	for _, folder := range []string{store, filepath.Dir(trace)} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, s := range []string{secret, "short-1"} {
				require.NotContains(t, string(text), s, path)
			}
			return err
		}))
	}
	left, err := os.ReadDir(kept.VaultFolder(store))
	require.NoError(t, err)
	require.Empty(t, left, "it is forgotten when the call is over")
	again := atDesk(t, "", "answer", ticket, "--store", store)
	require.Contains(t, again.out, "answered  already", "a repeat needs no secret: %s", again.err)
}

// An answer that is too long is not read to its end.
func TestAnswerBound(t *testing.T) {
	store := asking(t, `{"kind":"text"}`)
	got := atDesk(t, strings.Repeat("x", 2<<20), "answer", "q", "--store", store)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, got.err, fmt.Sprintf("an answer may have %d bytes", 1<<20))
	require.True(t, stillOpen(t, store))
}
