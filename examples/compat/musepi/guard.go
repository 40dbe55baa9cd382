package main

import (
	"context"
	"path"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// bash is the tool that the guard looks at.
const bash = "bash"

// line is the argument of that tool.
type line struct {
	Command string `json:"command"`
}

// guard is a plugin that has a person decide about command lines that remove whole trees. If
// there is nobody to ask, the answer is no.
func guard() engine.Plugin {
	return engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Name != bash {
				return gate.Abstain(), nil
			}
			var in line
			if err := pc.Call().Args.Decode(&in); err != nil {
				return gate.Decision{}, err // what cannot be read is blocked
			}
			if !removesTrees(in.Command) {
				return gate.Abstain(), nil
			}
			// Not Ask: an allowlist that approves the line must not make this question go away.
			return gate.Suspend(gate.Ticket{
				Kind:    gate.Confirm,
				Message: "Dangerous command. Allow " + in.Command + "?",
				Default: gate.DefaultNo,
			}), nil
		}))
		return nil
	})
}

// removesTrees reports whether a command line runs rm with -r and -f in one of the usual
// spellings. A shell can hide a command better than that: to be sure of what a line runs,
// take contrib/plugins/allowlist, which parses it.
func removesTrees(command string) bool {
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(";|&()`\n", r) }) {
		var rm, recursive, force bool
		for word := range strings.FieldsSeq(part) {
			switch {
			case path.Base(word) == "rm":
				rm = true
			case word == "--recursive":
				recursive = true
			case word == "--force":
				force = true
			case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--"):
				recursive = recursive || strings.ContainsAny(word, "rR")
				force = force || strings.Contains(word, "f")
			}
		}
		if rm && recursive && force {
			return true
		}
	}
	return false
}

// attempt is what became of a command line that the model asked for.
type attempt struct {
	asked  []string // questions that a person was shown
	ran    []string // lines that the tool was given
	result inference.ToolResult
}

// try lets a model ask for a command line. answer is what a person says when asked; if it is
// nil, there is no user interface.
func try(ctx context.Context, command string, answer func(question string) bool, plugins ...engine.Plugin) (a attempt, err error) {
	c := config(script(bash, line{command}, "I see."), plugins...)
	if answer != nil {
		c.Resolver = gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
			a.asked = append(a.asked, t.Message)
			return phase.Answer{Approved: answer(t.Message), Reason: "not today"}, nil
		})
	}
	in := engine.Prompt("Tidy up.")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: bash, Kind: "exec"},
		func(_ context.Context, _ *phase.Context, in line) (engine.Output, error) {
			a.ran = append(a.ran, in.Command) // and that is all it does
			return engine.Text("done"), nil
		})}
	th, _, err := run(ctx, c, in)
	if err != nil {
		return a, err
	}
	a.result = results(th)[0]
	return a, nil
}
