// Command musepi rebuilds the examples of MusePi's page about hooks.
//
//	go run ./examples/compat/musepi
//
// Models have their answers written down in advance and no tool touches a file, so there is
// no network and no key, and the output is always the same.
//
// # What is rebuilt
//
//   - guard.go: rm -rf is blocked, or asked about where there is a person to ask.
//   - redact.go: API keys are taken out of what the model reads.
//   - debug.go: messages for debugging are left out of a model call.
//   - handoff.go: the slash command "handoff" goes on in a new thread.
//
// # What is different
//
//   - The guard does not look whether there is a user interface. It states its question, and
//     the answer that counts when nobody can be asked, so it is the same for a terminal and a
//     batch job. It knows the usual spellings of rm -rf, and no allowlist outvotes it.
//   - A redaction holds whatever is registered before or behind it. There, each handler of
//     the hook runner gets the original content and the last one's result counts as a whole,
//     so that a formatter brings the key back. Here each field is merged by itself, and who
//     comes second gets what the first has made. The details of a result are redacted too,
//     and the results of tools that failed.
//   - Messages are filtered by a transform, which gets a request of its own. A second run
//     with the plugin switched off sees what is in the history.
//   - The command takes an argument, which is checked. It has a session only between runs,
//     and while a run is under way it is told so instead of waiting, since a command that
//     waited for the run it is in would wait for ever. Two commands of one name are an error
//     that names both plugins; there, which of them wins depends on who loaded them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

func main() {
	if err := show(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func show(ctx context.Context) error {
	return errors.Join(showGuard(ctx), showRedaction(ctx), showDebug(ctx), showHandoff(ctx))
}

func showGuard(ctx context.Context) error {
	fmt.Println("== rm -rf, with a person to ask and without")
	answers := func(yes bool) func(string) bool {
		return func(question string) bool {
			fmt.Printf("  %s %s\n", question, map[bool]string{true: "Yes.", false: "No."}[yes])
			return yes
		}
	}
	for _, c := range []struct {
		command string
		person  func(string) bool
	}{
		{"ls build", answers(true)}, {"rm -rf build", answers(true)}, {"rm -r -f build", answers(false)},
		{"rm -rf build", nil},
	} {
		a, err := try(ctx, c.command, c.person, guard())
		if err != nil {
			return err
		}
		fmt.Printf("%s: ran %t, the model reads %q\n", c.command, len(a.ran) == 1, a.result.Content)
	}
	return nil
}

func showRedaction(ctx context.Context) error {
	fmt.Println("\n== API keys, with a formatter behind the redactor and before it")
	for _, plugins := range [][]engine.Plugin{{redactor(), formatter()}, {formatter(), redactor()}} {
		told, _, err := read(ctx, plugins...)
		if err != nil {
			return err
		}
		fmt.Printf("%s, then %s:\n%sdetails: %s\n", plugins[0].Name(), plugins[1].Name(), told.Content, told.Details)
	}
	return nil
}

func showDebug(ctx context.Context) error {
	fmt.Println("\n== messages for debugging, left out of the first run's call")
	histories, requests, err := talk(ctx)
	if err != nil {
		return err
	}
	for i, r := range requests {
		fmt.Printf("call %d: the model is asked\n", i+1)
		list(r.Messages)
		fmt.Printf("messages in the history behind it: %d\n", len(histories[i]))
	}
	return nil
}

func showHandoff(ctx context.Context) error {
	fmt.Println("\n== the slash command handoff")
	eng, commands, s, err := office(handoff("office"))
	if err != nil {
		return err
	}
	for c := range commands.All() {
		fmt.Printf("%s %s\n", c.Usage(), c.Description())
	}
	for _, text := range []string{"Find the bug.", "/handoff", "/handoff Fix it."} {
		answer, err := s.say(ctx, commands, text)
		if err != nil {
			answer = err.Error()
		}
		fmt.Printf("> %s\n%s\n", text, answer)
	}
	origin, _ := s.thread.Origin()
	fmt.Printf("the history of the new thread, which comes from the %s:\n", origin.Thread)
	list(engine.Transcript.Get(s.thread.Snapshot()).Slice())
	return eng.Close(ctx)
}

func list(messages []inference.Message) {
	for _, m := range messages {
		fmt.Printf("  %s: %s\n", m.Role, m.Text)
	}
}

// office is an engine with a conversation that has not begun.
func office(plugins ...engine.Plugin) (*engine.Engine, slash.Set, *session, error) {
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		answers := map[string]string{"Find the bug.": "It is in line 7.", "Fix it.": "Line 7 is fixed."}
		return inference.Response{Message: inference.Assistant(answers[r.Messages[len(r.Messages)-1].Text])}, nil
	})
	eng, err := engine.New(config(model, plugins...))
	if err != nil {
		return nil, slash.Set{}, nil, err
	}
	s := &session{agent: engine.AgentSpec{ID: "musepi"}}
	commands, err := slash.For(eng, s.agent)
	if err != nil {
		return nil, slash.Set{}, nil, err
	}
	s.thread, err = eng.NewThread("first")
	return eng, commands, s, err
}

// script is a model that asks for one tool call and then says something.
func script(tool string, args any, text string) *enginetest.Script {
	return enginetest.NewScript(enginetest.Call("c1", tool, args), enginetest.Say(text))
}

// config is an engine whose ids and times are always the same.
func config(model inference.Model, plugins ...engine.Plugin) engine.Config {
	return engine.Config{
		Model:       model,
		Plugins:     plugins,
		Now:         enginetest.NewClock(enginetest.Epoch()).Now,
		NewID:       enginetest.NewIDs("id"),
		CheckFreeze: true,
	}
}

// run has one run on a thread of its own. A run that failed is an error.
func run(ctx context.Context, c engine.Config, in engine.Input) (*engine.Thread, *engine.Result, error) {
	eng, err := engine.New(c)
	if err != nil {
		return nil, nil, err
	}
	th, err := eng.NewThread("")
	if err != nil {
		return nil, nil, err
	}
	res, err := th.Run(ctx, engine.AgentSpec{ID: "musepi"}, in)
	if err != nil {
		return nil, nil, err
	}
	return th, res, errors.Join(res.Err, eng.Close(ctx))
}

// results are those of all tool calls in the history.
func results(th *engine.Thread) (rs []inference.ToolResult) {
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Role == inference.RoleTool {
			rs = append(rs, m.Result)
		}
	}
	return rs
}
