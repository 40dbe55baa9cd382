// Command hello rebuilds the example of chapter 32 of hello-harness, "an extension
// registers hooks": six hooks around a run, its model calls and its tool calls.
//
//	go run ./examples/compat/hello
//
// A model whose answers are written down in advance is asked for twice 21 and calls a tool.
// There is no network and no key, and the output is always the same.
//
// # What is rebuilt
//
//   - The six hooks, in the order in which they fire: the plugin of hooks.go has one on each
//     of six phases, and puts a note into each request, as the chapter's extension does.
//   - The chapter's own trace extension is plugins/trace here. It is an observer: it is told
//     more than a hook sees, such as gates and durations, and can change nothing.
//   - The same run without hooks. Its result and its history are the same.
//
// # What is different
//
//   - What comes after fires on failures too. There, a model that fails leaves out the
//     hook after the model.
//   - A hook gets copies and returns a command, so that an edit in place reaches nothing.
//     There, the list of messages is a copy but the messages in it are the thread's own; a
//     hook that changes one changes the history. Here the note is an action that asks for
//     one call to see it.
//   - Hooks print nothing. They say what there is to tell with an effect, which is delivered
//     once, after the commit, also when a hook had to run twice.
//   - What the chapter lists as open is settled: a gate may refuse a tool call, a hook that
//     panics does not end the run, tiers say which hook comes first, and the manifest lists
//     hooks.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

func main() {
	if err := show(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func show(ctx context.Context) error {
	say := func(text string) { fmt.Println("  " + text) }
	fmt.Println("== six hooks take part in a run")
	hooked, err := run(ctx, willing(), hooks(say))
	if err != nil {
		return err
	}
	fmt.Println(hooked)
	fmt.Println("\n== the hooks are in the manifest")
	for _, h := range hooked.hooks {
		fmt.Printf("%s, tier %d, on error %s\n", h.ID, h.Tier, h.OnError)
	}

	fmt.Println("\n== what comes after fires on failures too: the tool fails, then the model")
	failed, err := run(ctx, failing(), hooks(say))
	if err != nil {
		return err
	}
	fmt.Println(failed)

	fmt.Println("\n== the same run without hooks")
	bare, err := run(ctx, willing())
	if err != nil {
		return err
	}
	fmt.Println(bare)
	fmt.Println("same result and history:", same(hooked, bare))

	fmt.Println("\n== a guard that refuses the call, and a hook that panics")
	guarded, err := run(ctx, willing(), guard(), broken())
	if err != nil {
		return err
	}
	fmt.Println(guarded)
	fmt.Printf("tool calls that ran: %d, warnings: %d, the first:\n%s\n", guarded.ran, len(guarded.warnings), guarded.warnings[0])

	fmt.Println("\n== the same run with its timing, as an observer is told of it")
	_, err = run(ctx, willing(), hooks(func(string) {}), trace.New(trace.Options{Text: os.Stdout, Show: trace.TimelineOnly}))
	return err
}

// errOverloaded is the fault of the model that fails.
var errOverloaded = errors.New("the model is overloaded")

// outcome is what a run left.
type outcome struct {
	result   *engine.Result
	history  []inference.Message
	requests []inference.Request
	warnings []string
	hooks    []engine.HookManifest // of all plugins
	ran      int                   // how often the tool did
}

func (o outcome) String() string {
	text := fmt.Sprintf("%s after %d steps: %s", o.result.Reason, o.result.Steps, o.result.Text)
	if o.result.Err != nil {
		text += o.result.Err.Error()
	}
	return text
}

// willing is a model that asks the tool and repeats what it says.
func willing() *enginetest.Script {
	return enginetest.NewScript(
		enginetest.Call("c1", "double", map[string]int{"n": 21}),
		enginetest.Answer{Fn: func(r inference.Request) (inference.Response, error) {
			told := slices.IndexFunc(r.Messages, func(m inference.Message) bool { return m.Role == inference.RoleTool })
			return inference.Response{Message: inference.Assistant("The tool says: " + r.Messages[told].Result.Content)}, nil
		}})
}

// failing is a model that wants what the tool cannot do, and then fails itself.
func failing() *enginetest.Script {
	return enginetest.NewScript(
		enginetest.Call("c1", "double", map[string]int{"n": -1}),
		enginetest.Fail(errOverloaded))
}

// run asks the model what twice 21 is.
func run(ctx context.Context, model *enginetest.Script, plugins ...engine.Plugin) (o outcome, err error) {
	warned, c := &enginetest.Recorder{}, &clock{}
	config := engine.Config{
		Model: inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
			c.advance(300 * time.Millisecond)
			return model.Generate(ctx, r)
		}),
		Plugins:     plugins,
		Observers:   []engine.Observer{warned},
		Now:         c.now,
		NewID:       enginetest.NewIDs("id"),
		CheckFreeze: true,
	}
	for _, p := range plugins {
		if observer, ok := p.(engine.Observer); ok {
			config.Observers = append(config.Observers, observer)
		}
	}
	eng, err := engine.New(config)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, eng.Close(ctx)) }()
	th, err := eng.NewThread("thread")
	if err != nil {
		return o, err
	}
	in := engine.Prompt("What is twice 21?")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "double"},
		func(_ context.Context, _ *phase.Context, in struct {
			N int `json:"n"`
		}) (engine.Output, error) {
			o.ran++
			c.advance(20 * time.Millisecond)
			if in.N < 0 {
				return engine.Output{}, errors.New("it only knows numbers from 0 on")
			}
			return engine.Text(fmt.Sprint(2 * in.N)), nil
		})}
	o.result, err = th.Run(ctx, engine.AgentSpec{ID: "hello"}, in)
	o.history = engine.Transcript.Get(th.Snapshot()).Slice()
	o.requests = model.Requests()
	for _, p := range eng.Describe().Plugins {
		o.hooks = append(o.hooks, p.Hooks...)
	}
	for _, w := range enginetest.Select[engine.Warning](warned.Events()) {
		o.warnings = append(o.warnings, w.Message)
	}
	return o, err
}

// clock stands still while nothing takes time, so that the trace shows what does.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time          { return enginetest.Epoch().Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// same reports whether two runs came to the same end by the same way.
func same(a, b outcome) bool {
	return a.result.Reason == b.result.Reason && a.result.Steps == b.result.Steps && a.result.Text == b.result.Text &&
		slices.EqualFunc(a.history, b.history, func(x, y inference.Message) bool {
			return x.Role == y.Role && x.Text == y.Text && x.Result == y.Result && slices.Equal(x.ToolCalls, y.ToolCalls)
		})
}
