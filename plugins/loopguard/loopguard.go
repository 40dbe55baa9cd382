package loopguard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "loopguard"

// Settings is the content of the section.
type Settings struct {
	// Repeats is how often the same call may run in one run. The default is 2.
	Repeats int `json:"repeats"`
	// Except lists patterns, as path.Match takes them, of the names of tools that
	// may run as often as they like.
	Except []string `json:"except"`
	// Answers is how often the model may give the same answer, in the same words and
	// without a tool call, in one run: where a run is made to go on after an answer, the
	// next one too many ends it. The default is 3, and 0 is no limit.
	Answers int `json:"answers"`
}

// ReasonRepeats is the reason of a run that ended because the model repeated itself.
const ReasonRepeats phase.Reason = "repeats"

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Repeats: 2, Answers: 3} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	if s.Repeats < 1 {
		return fmt.Errorf("loopguard: repeats is %d; want 1 or more", s.Repeats)
	}
	if s.Answers < 0 {
		return fmt.Errorf("loopguard: answers is %d; want 1 or more, or 0 for no limit", s.Answers)
	}
	for _, pattern := range s.Except {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("loopguard: %q is no pattern as path.Match takes it: %w", pattern, err)
		}
	}
	return nil
}

func (s Settings) excepts(tool string) bool {
	return slices.ContainsFunc(s.Except, func(pattern string) bool {
		ok, _ := path.Match(pattern, tool) // Validate refused malformed patterns
		return ok
	})
}

// Calls holds the gate.Fingerprint of each call of the run that ran, by "step/id". A
// call that begins again, after a crash or in a fork, is the same call.
var Calls = state.NewTable[string]("loopguard.calls", state.Options[string]{})

// Answers holds how often an answer was given in the run, by the hash of its words.
var Answers = state.NewTable[string]("loopguard.answers", state.Options[int]{})

// key is the key of the call in Calls. Models use an id again in another step.
func key(pc *phase.Context) string { return fmt.Sprintf("%d/%s", pc.Run().Step, pc.Call().ID) }

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Calls, Answers)
		r.Section(Section)
		r.Gate(gate.Func(check))
		r.Hook(phase.BeforeToolExecute, phase.HookFunc(count), engine.Writes(Calls))
		r.Hook(phase.AfterInference, phase.HookFunc(listen), engine.Writes(Answers), engine.OnError(engine.Skip))
		return nil
	})
}

func check(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	s, call := Section.Get(pc), pc.Call()
	ran, own, print := 0, key(pc), gate.Fingerprint(call)
	for k, p := range Calls.All(pc.Snapshot()) {
		if p == print && k != own {
			ran++
		}
	}
	if ran < s.Repeats || s.excepts(call.Name) {
		return gate.Abstain(), nil
	}
	return gate.Block(fmt.Sprintf("%s ran %s with exactly these arguments; use the result you have, or change them",
		call.Name, times(ran))), nil
}

func times(n int) string {
	if n == 1 {
		return "once before"
	}
	return fmt.Sprintf("%d times before", n)
}

func count(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	cmd.Update(Calls.Put(key(pc), gate.Fingerprint(pc.Call())))
	return cmd, nil
}

// listen counts an answer, and ends the run at one that came too often.
func listen(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	r, ok := pc.Response()
	words := strings.Join(strings.Fields(r.Message.Text), " ")
	if !ok || words == "" || len(r.Message.ToolCalls) > 0 {
		return cmd, nil
	}
	sum := sha256.Sum256([]byte(words))
	id := hex.EncodeToString(sum[:8])
	given, _ := Answers.Get(pc.Snapshot(), id)
	cmd.Update(Answers.Put(id, given+1))
	if most := Section.Get(pc).Answers; most > 0 && given >= most {
		cmd.EndRun(ReasonRepeats, fmt.Sprintf("the model gave the same answer more than %d times", most))
	}
	return cmd, nil
}
