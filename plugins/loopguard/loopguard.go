package loopguard

import (
	"context"
	"fmt"
	"path"
	"slices"

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
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings { return Settings{Repeats: 2} },
	Check:   Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	if s.Repeats < 1 {
		return fmt.Errorf("loopguard: repeats is %d; want 1 or more", s.Repeats)
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

// key is the key of the call in Calls. Models use an id again in another step.
func key(pc *phase.Context) string { return fmt.Sprintf("%d/%s", pc.Run().Step, pc.Call().ID) }

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Calls)
		r.Section(Section)
		r.Gate(gate.Func(check))
		r.Hook(phase.BeforeToolExecute, phase.HookFunc(count), engine.Writes(Calls))
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
