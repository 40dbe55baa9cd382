package kept

import (
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/state"
)

// Record is what another process needs to go on with a run: what its first one was
// given. It is a comparable value.
type Record struct {
	Run    string `json:"run"`            // the id of the run that this is about
	Agent  string `json:"agent"`          // that it started with
	Runs   int    `json:"runs"`           // of the thread, this one included
	Spec   string `json:"spec,omitzero"`  // absolute path; "" for the built-in agent
	Dir    string `json:"dir"`            // absolute
	Report string `json:"report"`         // absolute
	Trace  string `json:"trace,omitzero"` // absolute; tools must not see it
	Hooks  string `json:"hooks,omitzero"` // absolute paths of settings files, a list in JSON
	Model  string `json:"model,omitzero"` // id of the one that all agents were given
	Prompt string `json:"prompt"`
}

// Key holds the record of the thread's newest run. It is written before the run
// starts.
var Key = state.NewCell("kept.record", state.Options[Record]{Scope: state.ScopeThread})

// Name is the name of the plugin.
const Name = "kept"

// Plugin returns the plugin that brings Key. It does nothing else.
func Plugin() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Key)
		return nil
	})
}
