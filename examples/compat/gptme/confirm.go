package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ddd26017/fixpoint/contrib/plugins/allowlist"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
	"github.com/ddd26017/fixpoint/plugins/shell"
)

// line is what the shell is asked for.
type line struct {
	Command string `json:"command"`
}

// lines are what the model asks for, one after the other.
var lines = []string{
	"cat notes.txt",          // on the list
	"echo milk >> notes.txt", // echo is on the list, but this writes a file
	"rm notes.txt",
	"echo rum >> notes.txt",
	"touch a",
	"touch b",
	"cat secret.txt", // on the list, but the guard is against it
}

// person says what somebody at the terminal answers about a line.
func person(command string) confirm.Answer {
	switch command {
	case "rm notes.txt":
		return confirm.Answer{Choice: confirm.No, Reason: "I need them"}
	case "echo rum >> notes.txt":
		return confirm.Answer{Choice: confirm.Edit, Args: `{"command": "echo tea >> notes.txt"}`}
	case "touch a":
		return confirm.Answer{Choice: confirm.Times, N: 1} // and the next call
	}
	return confirm.Answer{Choice: confirm.Yes}
}

// guard is a plugin that lets nobody read the secret.
func guard() engine.Plugin {
	return engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			var in line
			if err := pc.Call().Args.Decode(&in); err != nil {
				return gate.Decision{}, err // what cannot be read is blocked
			}
			if strings.Contains(in.Command, "secret") {
				return gate.Block("nobody reads the secret"), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
}

// chain is the plugins that decide about a line.
func chain() []engine.Plugin {
	return []engine.Plugin{allowlist.New(), confirm.New(confirm.Options{}), guard()}
}

// session is what became of the lines.
type session struct {
	asked   []string // lines that the person was asked about
	results []inference.ToolResult
	notes   string   // what is in the file in the end
	files   []string // in the directory
}

// work lets a model run the lines in a directory of its own. answer is asked when somebody
// has to decide; if it is nil, nobody is there.
func work(ctx context.Context, answer func(command string) confirm.Answer, decide ...engine.Plugin) (s session, err error) {
	dir, err := os.MkdirTemp("", "gptme")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, text := range map[string]string{"notes.txt": "bread\n", "secret.txt": "rosebud\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return s, err
		}
	}
	sh, err := shell.New(dir, shell.Options{})
	if err != nil {
		return s, err
	}
	var answers []enginetest.Answer
	for i, command := range lines {
		answers = append(answers, enginetest.Call(fmt.Sprint("c", i+1), shell.Tool, line{command}))
	}
	c := engine.Config{
		Plugins: append([]engine.Plugin{sh}, decide...),
		Model:   enginetest.NewScript(append(answers, enginetest.Say("That is all."))...),
		Schemas: confirm.Schemas(nil),
	}
	if answer != nil {
		c.Resolver = gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
			var shown confirm.Preview
			var in line
			if err := t.Params.Decode(&shown); err != nil {
				return phase.Answer{}, err
			}
			if err := shown.Args.Decode(&in); err != nil {
				return phase.Answer{}, err
			}
			s.asked = append(s.asked, in.Command)
			return answer(in.Command).Reply()
		})
	}
	th, err := run(ctx, c, engine.AgentSpec{ID: "gptme", Sections: map[string]inference.JSON{
		allowlist.Name: `{"allow": ["cat *", "echo *"]}`,
	}}, engine.Prompt("Keep my notes."))
	if err != nil {
		return s, err
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Role == inference.RoleTool {
			s.results = append(s.results, m.Result)
		}
	}
	notes, err := os.ReadFile(filepath.Join(dir, "notes.txt"))
	if err != nil {
		return s, err
	}
	s.notes = string(notes)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		s.files = append(s.files, e.Name())
	}
	return s, err
}
