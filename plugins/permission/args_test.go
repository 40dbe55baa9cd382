package permission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

func rulesOf(t testing.TB, section string) (rules permission.Rules) {
	t.Helper()
	require.NoError(t, inference.JSON(section).Decode(&rules))
	require.NoError(t, rules.Validate())
	return rules
}

var write = inference.ToolSpec{Name: "write_file", Kind: "write"}

// Capability G5. Rules judge by arguments too. A deny rule fits every way to write a path,
// an allow rule only those that fit however they are read.
func TestArguments(t *testing.T) {
	rules := rulesOf(t, `{
		"allow": [{"tool": "write_file", "args": {"path": "docs/**"}}, {"tool": "kind:write", "args": {"path": "*.md", "mode": "6??"}}, "look"],
		"ask":   [{"tool": "write_file", "args": {"path": "docs/drafts/*"}}],
		"deny":  [{"tool": "write_file", "args": {"path": "secrets/**"}}, {"tool": "*", "args": {"path": "**/.git/**"}}]
	}`)
	for args, want := range map[string]permission.Verdict{
		`{"path":"docs/a"}`:                                   "allow",
		`{"path":"docs/a/b/c"}`:                               "allow",
		`{"path":"docs"}`:                                     "allow",
		`{"path":"./docs//x/../a"}`:                           "allow",
		`{"path":"docs/drafts/a"}`:                            "ask",
		`{"path":"DOCS/DRAFTS/a"}`:                            "ask",
		`{"path":"docs/drafts/a/b"}`:                          "allow",
		`{"path":"a.md","mode":644}`:                          "allow",
		`{"path":"a.md","mode":"0644"}`:                       "ask",
		`{"path":"a.md"}`:                                     "ask",
		`{"path":["docs/a","docs/b"]}`:                        "allow",
		`{"path":["docs/a","else"]}`:                          "ask",
		`{"path":[]}`:                                         "ask",
		`{"path":{"docs":"docs/a"}}`:                          "ask",
		`{"path":"docs/../else"}`:                             "ask",
		`{"path":"docs/..\\else"}`:                            "ask",
		`{"path":"/docs/a"}`:                                  "ask",
		`{"path":"../docs/a"}`:                                "ask",
		`{"Path":"docs/a"}`:                                   "ask",
		`{"path":"docs/a","path":"else"}`:                     "ask",
		`{"path":"docs/a","PATH":"else"}`:                     "ask",
		`{"path":[],"path":"docs/a"}`:                         "ask",
		`{"content":"docs/a"}`:                                "ask",
		``:                                                    "ask",
		`["docs/a"]`:                                          "ask",
		`{"path":"secrets/x"}`:                                "deny",
		`{"path":"secrets"}`:                                  "deny",
		`{"path":"a/../secrets/x"}`:                           "deny",
		`{"path":"docs/../secrets/x"}`:                        "deny",
		`{"path":"../../secrets/x"}`:                          "deny",
		`{"path":"./secrets/x"}`:                              "deny",
		`{"path":"docs/.././/secrets/x"}`:                     "deny",
		`{"path":"/secrets/x"}`:                               "deny",
		`{"path":"secrets\\x"}`:                               "deny",
		`{"path":"docs\\..\\secrets\\x"}`:                     "deny",
		`{"path":"Secrets/x"}`:                                "deny",
		`{"PATH":"secrets/x"}`:                                "deny",
		`{"path":"docs/a","path":"secrets/x"}`:                "deny",
		`{"path":" secrets/x"}`:                               "deny",
		`{"path":"\u00a0\tsecrets/x\n"}`:                      "deny",
		`{"path":" docs/a"}`:                                  "ask",
		`{"path":"docs/a "}`:                                  "allow",
		`{"path":"\u017fecrets/x"}`:                           "deny",
		`{"path":{"a":"secrets/x","a":"docs/a"}}`:             "deny",
		`{"path":"secrets/x","path":"docs/a"}`:                "deny",
		`{"path":["docs/a",["secrets/x"]]}`:                   "deny",
		`{"path":{"from":"docs/a","to":"secrets"}}`:           "deny",
		`{"path":"\u0073ecrets/x"}`:                           "deny",
		`{"path":"docs/x/.git/config"}`:                       "deny",
		`{"path":".git"}`:                                     "deny",
		`{"path":"docs/.github/x"}`:                           "allow",
		`{"path":"docs/secrets/x"}`:                           "allow",
		`{"path":"secrets2/x"}`:                               "ask",
		`{"path":"x","content":"secrets/x"}`:                  "ask",
		`{"path":"docs/a","other":{"path":"else"}}`:           "allow",
		`{"path":"docs/` + strings.Repeat("x/", 1<<12) + `"}`: "allow",
	} {
		got, rule := rules.JudgeCall(write, inference.JSON(args))
		require.Equal(t, want, got, "%.80s by %s", args, rule)
	}
	got, _ := rules.JudgeCall(inference.ToolSpec{Name: "look"}, `{"path":"a/.git/x"}`)
	require.Equal(t, permission.Deny, got)
	got, _ = rules.JudgeCall(inference.ToolSpec{Name: "look"}, `{"path":"secrets/x"}`)
	require.Equal(t, permission.Allow, got)
}

// With a root, paths count as what they lead to: absolute ones below it are relative, and
// symbolic links are followed. A link that leads nobody knows where fits what denies and
// nothing that allows.
func TestRoot(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "deep"), 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "secrets"), 0o777))
	outside := t.TempDir()
	for name, target := range map[string]string{
		"docs/innocent": filepath.Join(root, "secrets"), "docs/out": outside, "docs/nowhere": filepath.Join(root, "gone"),
		"docs/self": filepath.Join(root, "docs", "self"), "docs/in": filepath.Join(root, "docs", "deep"), "way": filepath.Join(root, "secrets", "deep"),
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, filepath.FromSlash(name))))
	}
	text, err := json.Marshal(root)
	require.NoError(t, err)
	rules := rulesOf(t, `{"root": `+string(text)+`,
		"allow": [{"tool": "*", "args": {"path": "docs/**"}}], "deny": [{"tool": "*", "args": {"path": "secrets/**"}}]}`)
	for name, want := range map[string]permission.Verdict{
		"docs/a":                                "allow",
		"docs/new/a":                            "allow",
		"docs/in/a":                             "allow",
		root + "/docs/a":                        "allow",
		"docs/out/a":                            "ask",
		outside + "/docs/a":                     "ask",
		"../docs/a":                             "ask",
		"else":                                  "ask",
		"secrets/a":                             "deny",
		"gone/../secrets/a":                     "deny",
		root + "/secrets/a":                     "deny",
		"docs/innocent/a":                       "deny",
		"docs/innocent":                         "deny",
		"docs/in/../innocent/a":                 "deny",
		"docs/nowhere":                          "deny",
		"docs/self/a":                           "deny",
		"docs/" + strings.Repeat("x", 300):      "allow",
		"docs" + strings.Repeat("/a", 100_000):  "deny", // longer than any path can be
		"../" + filepath.Base(root) + "/docs/a": "allow",
	} {
		arg, err := json.Marshal(map[string]string{"path": filepath.ToSlash(name)})
		require.NoError(t, err)
		got, rule := rules.JudgeCall(write, inference.JSON(arg))
		require.Equal(t, want, got, "%s by %s", name, rule)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "secrets", "deep"), 0o777))
	got, _ := rules.JudgeCall(write, `{"path":"way/../key"}`)
	require.Equal(t, permission.Deny, got, "after a link, .. is where the link leads to")
}

// Whatever a path looks like: when it leads into the folder it is denied, and when it is
// allowed it leads into the other.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{
		"secrets/x", "a/../secrets/x", "docs/a", "docs/../secrets", "/docs/a", "", ".", "..", "docs/./../docs/x", "docs/..", "docs\\..\\secrets\\x",
		"../docs/x", "docs//..//x", "docs/...", "docs/\x00", "Secrets/x", "docs/*", "[", "docs/..\\x",
	} {
		f.Add(seed)
	}
	rules := rulesOf(f, `{"allow": [{"tool": "*", "args": {"path": "docs/**"}}], "deny": [{"tool": "*", "args": {"path": "secrets/**"}}]}`)
	f.Fuzz(func(t *testing.T, name string) {
		args, err := json.Marshal(map[string]string{"path": name})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(args, &struct{ Path *string }{&name})) // as a tool will see it
		verdict, _ := rules.JudgeCall(write, inference.JSON(args))
		for _, spelling := range []string{name, strings.ReplaceAll(name, `\`, "/")} {
			in := walk(spelling)
			if strings.HasPrefix(in+"/", "secrets/") {
				require.Equal(t, permission.Deny, verdict, name)
			}
			if verdict == permission.Allow {
				require.True(t, strings.HasPrefix(in+"/", "docs/"), name)
			}
		}
	})
}

// walk says where a path leads from the root, one step after the other.
func walk(name string) string {
	if path.IsAbs(name) {
		return path.Join("/", name)
	}
	var at []string
	for _, step := range strings.Split(name, "/") {
		switch {
		case step == "" || step == ".":
		case step == ".." && len(at) > 0 && at[len(at)-1] != "..":
			at = at[:len(at)-1]
		default:
			at = append(at, step)
		}
	}
	return strings.Join(at, "/")
}

// saver is a tool with a path.
func saver(ran *[]string) engine.Plugin {
	return engine.NewPlugin("saver", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "save", Kind: "write"}, func(_ context.Context, _ *phase.Context, in struct {
			Path string `json:"path"`
		}) (engine.Output, error) {
			*ran = append(*ran, in.Path)
			return engine.Text("ok"), nil
		}))
		return nil
	})
}

func save(t *testing.T, section string, who gate.Resolver, more []engine.Plugin, paths ...string) (ran []string) {
	t.Helper()
	var answers []enginetest.Answer
	for i, p := range paths {
		answers = append(answers, enginetest.Call(fmt.Sprintf("c%d", i), "save", map[string]string{"path": p}))
	}
	eng := build(t, func(c *engine.Config) {
		c.Resolver = who
		c.Model = enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	}, append(more, saver(&ran))...)
	_, err := eng.Run(t.Context(), spec(section), engine.Prompt("go"))
	require.NoError(t, err)
	return ran
}

// Capability B5. "always" covers what the question showed: the calls that the same rule
// asks about, and no others of the tool.
func TestAlwaysIsBoundToTheRule(t *testing.T) {
	always := phase.Answer{Approved: true, Value: permission.Always}
	who := &answering{answers: []phase.Answer{always, {Approved: true}, {}}}
	ran := save(t, `{"ask": [{"tool": "save", "args": {"path": "docs/**"}}, "save"]}`, who, nil, "docs/a", "docs/b", "else/a", "docs/c", "else/b")
	require.Equal(t, []string{"docs/a", "docs/b", "else/a", "docs/c"}, ran)
	require.Len(t, who.asked, 3)
	var shown permission.Preview
	require.NoError(t, who.asked[0].Params.Decode(&shown))
	require.Equal(t, `every call of save that the rule {"tool":"save","args":{"path":"docs/**"}} asks about`, shown.Always)
}

// Somebody else's question may have an answer of the same words; it grants nothing here.
func TestAlwaysOfAnotherQuestion(t *testing.T) {
	other := engine.NewPlugin("other", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().ID == "c0" {
				return gate.Suspend(gate.Ticket{Message: "Fine?", Params: `{"tool":"save","always":"every call of save that the default asks about"}`}), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
	who := &answering{answers: []phase.Answer{{Approved: true, Value: permission.Always}, {}}}
	require.Equal(t, []string{"a"}, save(t, `{}`, who, []engine.Plugin{other}, "a", "b"))
	require.Len(t, who.asked, 2)
}

// Capabilities B5, M2. Report 15. Arguments that were changed after the yes, by the answer
// itself or by another gate, are judged by the rules anew.
func TestEditedArgumentsAreJudgedAnew(t *testing.T) {
	section := `{"ask": ["save"], "deny": [{"tool": "save", "args": {"path": "secrets/**"}}]}`
	who := &answering{answers: []phase.Answer{{Approved: true, Args: `{"path":"x/../secrets/key"}`}}}
	require.Empty(t, save(t, section, who, nil, "a"))
	require.Len(t, who.asked, 1)

	formatter := engine.NewPlugin("formatter", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if c, _ := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID); len(c.Answers) == 1 {
				return gate.Edit(`{"path":"final"}`), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
	who = &answering{answers: []phase.Answer{{Approved: true, Value: permission.Always}, {Approved: true}}}
	require.Equal(t, []string{"final"}, save(t, section, who, []engine.Plugin{formatter}, "a"))
	require.Len(t, who.asked, 2)
	require.NotEqual(t, who.asked[0].Fingerprint, who.asked[1].Fingerprint)
	require.Contains(t, string(who.asked[1].Params), "final")
}
