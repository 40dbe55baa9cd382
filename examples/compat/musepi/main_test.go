package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// Capability M1. With a person to ask the answer decides; what is not dangerous is not asked
// about.
func TestGuardAsks(t *testing.T) {
	for _, c := range []struct {
		command     string
		yes         bool
		asked, runs bool
		outcome     inference.Outcome
	}{
		{"ls build", false, false, true, inference.OutcomeOK},
		{"rm notes", false, false, true, inference.OutcomeOK},
		{"rm -rf build", true, true, true, inference.OutcomeOK},
		{"rm -rf build", false, true, false, inference.OutcomeDenied},
	} {
		a, err := try(t.Context(), c.command, func(string) bool { return c.yes }, guard())
		require.NoError(t, err)
		require.Equal(t, c.outcome, a.result.Outcome, c.command)
		if c.asked {
			require.Equal(t, []string{"Dangerous command. Allow " + c.command + "?"}, a.asked)
		} else {
			require.Empty(t, a.asked, c.command)
		}
		if c.runs {
			require.Equal(t, []string{c.command}, a.ran)
		} else {
			require.Empty(t, a.ran)
			require.Contains(t, a.result.Content, "not today")
		}
	}
}

// Capability M5. Without a user interface the stated default counts: no.
func TestGuardWithoutUserInterface(t *testing.T) {
	a, err := try(t.Context(), "rm -rf build", nil, guard())
	require.NoError(t, err)
	require.Empty(t, a.ran)
	require.Equal(t, inference.OutcomeDenied, a.result.Outcome)
	require.Contains(t, a.result.Content, "the default is no")

	a, err = try(t.Context(), "rm -rf build", nil) // the guard is what keeps it from running
	require.NoError(t, err)
	require.Equal(t, []string{"rm -rf build"}, a.ran)
}

// Capability M1. A plugin that approves everything does not outvote the guard, wherever it is
// registered.
func TestGuardIsNotOutvoted(t *testing.T) {
	approver := engine.NewPlugin("approver", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Approve(), nil }))
		return nil
	})
	for _, plugins := range [][]engine.Plugin{{guard(), approver}, {approver, guard()}} {
		a, err := try(t.Context(), "rm -rf build", nil, plugins...)
		require.NoError(t, err)
		require.Empty(t, a.ran)
	}
}

func TestRemovesTrees(t *testing.T) {
	for command, want := range map[string]bool{
		"rm -rf x": true, "rm -fr x": true, "rm -r -f x": true, "rm x -Rf": true, "/bin/rm --recursive --force x": true,
		"cd x && rm  -rf y": true, "sudo rm -rf /": true, "echo $(rm -rf x)": true,
		"rm -r x": false, "rm -f x": false, "rm x; cp -rf a b": false, "charm -rf": false, "": false,
	} {
		require.Equal(t, want, removesTrees(command), command)
	}
}

// Capability M2. A key that was redacted stays redacted, whether the formatter is registered
// before or behind the redactor, both edits are in the result, and the key is nowhere in the state.
func TestRedactionStays(t *testing.T) {
	for _, plugins := range [][]engine.Plugin{{redactor(), formatter()}, {formatter(), redactor()}} {
		told, th, err := read(t.Context(), plugins...)
		require.NoError(t, err)
		require.Equal(t, "1 HOST=localhost\n2 API_KEY=[redacted]\n3 DEBUG=1\n", told.Content)
		require.JSONEq(t, `{"path": ".env", "lines": ["HOST=localhost", "API_KEY=[redacted]", "DEBUG=1"]}`, string(told.Details))
		dump, err := th.Export()
		require.NoError(t, err)
		state, err := json.Marshal(dump)
		require.NoError(t, err)
		require.Contains(t, string(state), "API_KEY=[redacted]")
		require.NotContains(t, string(state), "k-0123456789")
	}
	told, _, err := read(t.Context(), formatter()) // the redactor is what takes the key out
	require.NoError(t, err)
	require.Contains(t, told.Content, "k-0123456789")
}

// Capability M2. The result of a tool that failed is redacted too.
func TestRedactionOfFailure(t *testing.T) {
	in := engine.Prompt("What is in .env?")
	in.Tools = []engine.Tool{enginetest.StubTool("read", engine.Output{Content: "cannot parse " + settings, IsError: true})}
	th, _, err := run(t.Context(), config(script("read", nil, "Broken."), redactor()), in)
	require.NoError(t, err)
	told := results(th)[0]
	require.True(t, told.IsError)
	require.Equal(t, inference.OutcomeError, told.Outcome)
	require.Equal(t, "cannot parse HOST=localhost\nAPI_KEY=[redacted]\nDEBUG=1\n", told.Content)
}

// Capability M3. The request of the first call has no messages for debugging, and the
// history has them all: without the filter the next call shows them.
func TestDebugMessages(t *testing.T) {
	histories, requests, err := talk(t.Context())
	require.NoError(t, err)
	require.Len(t, requests, 2)
	require.Equal(t, []inference.Message{inference.User("Hi.")}, requests[0].Messages)
	require.Len(t, histories[0], 3)
	require.True(t, isDebug(histories[0][1]))
	require.Equal(t, append(histories[0], inference.User("What is wrong?")), requests[1].Messages[:4])
	require.True(t, isDebug(requests[1].Messages[4]))
	require.Equal(t, histories[0], histories[1][:3])
}

// Capability M6. The command goes on in a new thread with what the old one came to, and
// leaves the old one as it was.
func TestHandoff(t *testing.T) {
	eng, commands, s, err := office(handoff("office"))
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close(t.Context())) }()
	first := s.thread
	answer, err := s.say(t.Context(), commands, "Find the bug.")
	require.NoError(t, err)
	require.Equal(t, "It is in line 7.", answer)
	before := engine.Transcript.Get(first.Snapshot()).Slice()

	_, err = s.say(t.Context(), commands, "/handoff")
	require.ErrorIs(t, err, slash.ErrArgs)
	require.Same(t, first, s.thread)

	answer, err = s.say(t.Context(), commands, "/handoff Fix it.")
	require.NoError(t, err)
	require.Equal(t, "Line 7 is fixed.", answer)
	require.NotSame(t, first, s.thread)
	origin, forked := s.thread.Origin()
	require.True(t, forked)
	require.Equal(t, first.ID(), origin.Thread)
	require.Equal(t, []inference.Message{
		inference.User("Go on from what was said last: It is in line 7."),
		inference.User("Fix it."),
		inference.Assistant("Line 7 is fixed."),
	}, engine.Transcript.Get(s.thread.Snapshot()).Slice())
	require.Equal(t, before, engine.Transcript.Get(first.Snapshot()).Slice())
}

// Capability M6. During a run the command is refused at once, and a second command of its
// name is an error that names both plugins.
func TestHandoffRefused(t *testing.T) {
	_, err := engine.New(config(enginetest.NewScript(), handoff("office"), handoff("desk")))
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, "office")
	require.ErrorContains(t, err, "desk")

	var refused error
	var commands slash.Set
	var s *session
	eng, commands, s, err := office(handoff("office"), engine.NewPlugin("inside", func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, phase.HookFunc(func(ctx context.Context, _ *phase.Context) (phase.Command, error) {
			_, refused = commands.Run(ctx, s.thread, s, "/handoff Fix it.")
			return phase.Command{}, nil
		}))
		return nil
	}))
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close(t.Context())) }()
	_, err = s.say(t.Context(), commands, "Find the bug.")
	require.NoError(t, err)
	require.ErrorIs(t, refused, engine.ErrBusy)
}

func Example() {
	if err := show(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// == rm -rf, with a person to ask and without
	// ls build: ran true, the model reads "done"
	//   Dangerous command. Allow rm -rf build? Yes.
	// rm -rf build: ran true, the model reads "done"
	//   Dangerous command. Allow rm -r -f build? No.
	// rm -r -f build: ran false, the model reads "denied: not today"
	// rm -rf build: ran false, the model reads "denied: nobody is there to ask, and the default is no"
	//
	// == API keys, with a formatter behind the redactor and before it
	// redactor, then formatter:
	// 1 HOST=localhost
	// 2 API_KEY=[redacted]
	// 3 DEBUG=1
	// details: {"lines":["HOST=localhost","API_KEY=[redacted]","DEBUG=1"],"path":".env"}
	// formatter, then redactor:
	// 1 HOST=localhost
	// 2 API_KEY=[redacted]
	// 3 DEBUG=1
	// details: {"lines":["HOST=localhost","API_KEY=[redacted]","DEBUG=1"],"path":".env"}
	//
	// == messages for debugging, left out of the first run's call
	// call 1: the model is asked
	//   user: Hi.
	// messages in the history behind it: 3
	// call 2: the model is asked
	//   user: Hi.
	//   system: debug: messages so far: 1
	//   assistant: Hello.
	//   user: What is wrong?
	//   system: debug: messages so far: 4
	// messages in the history behind it: 6
	//
	// == the slash command handoff
	// /handoff next=... goes on in a new thread
	// > Find the bug.
	// It is in line 7.
	// > /handoff
	// slash: unusable arguments: say what is next
	// > /handoff Fix it.
	// Line 7 is fixed.
	// the history of the new thread, which comes from the first:
	//   user: Go on from what was said last: It is in line 7.
	//   user: Fix it.
	//   assistant: Line 7 is fixed.
}
