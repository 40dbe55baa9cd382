package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

// hookHelp is the part of help texts about hook programs.
const hookHelp = "With --hooks, programs of your own are run on the events of the run, by settings files as\n" +
	"coding agents have them: {\"hooks\": {\"PreToolUse\": [...]}}. They run with all your rights,\n" +
	"so name only files that you trust, and none that an agent may write.\n\n"

func (f *showFlags) addHooks(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.hooks, "hooks", nil, "run the hook programs of this settings `file`, which you trust; may be repeated")
}

// hookFiles are settings files of hook programs, by their absolute paths.
type hookFiles []string

// hookFiles returns the files of the flag.
func (f showFlags) hookFiles() (all hookFiles, err error) {
	for _, name := range f.hooks {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		all = append(all, abs)
	}
	return all, nil
}

// text is how a record has the files; "" for none.
func (h hookFiles) text() string {
	if len(h) == 0 {
		return ""
	}
	raw, _ := json.Marshal(h) // of texts, which can always be written
	return string(raw)
}

// recordedHooks returns the files of a record.
func recordedHooks(text string) (h hookFiles, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return nil, fmt.Errorf("fixpoint: the hooks of the run cannot be read: %w", err)
	}
	return h, nil
}

// agent returns an agent file whose agents all have the hooks.
func (h hookFiles) agent(a agentFile) agentFile {
	if len(h) == 0 {
		return a
	}
	return a.with(exechook.Name)
}

// load reads the files for the engine of a setup.
func (h hookFiles) load(s *setup) error {
	if len(h) == 0 {
		return nil
	}
	settings, err := exechook.Load(h...)
	if err != nil {
		return usageError{fmt.Errorf("fixpoint: --hooks: %w", err)}
	}
	s.hooks = exechook.New(exechook.Options{Settings: settings, Dir: s.workspace.dir, Compacts: s.agent.named()[compact.Name], Notify: s.tellHook})
	return nil
}
