package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/engine"
)

func newCheck(stdio IO) *cobra.Command {
	return &cobra.Command{
		Use:   "check [SPEC]",
		Short: "Check a spec file and say what is wrong with it, with line and column",
		Example: "  fixpoint check agent.yaml\n" +
			"  fixpoint check            # the built-in agent",
		Args: oneSpec,
		RunE: verb(func(_ context.Context, name string) error {
			a, _, closeEngine, err := inspect(name)
			if err != nil {
				return err
			}
			for _, spec := range a.Specs {
				_, _ = fmt.Fprintf(stdio.Out, "%s: agent %s is fine\n", a.Name, spec.ID)
			}
			return closeEngine()
		}),
	}
}

// inspect builds an engine for a spec file to be looked at, not run.
func inspect(name string) (agentFile, *engine.Engine, func() error, error) {
	a, err := loadAgent(name, chosen{look: true})
	if err != nil {
		return a, nil, nil, err
	}
	w, err := newWorkspace(".", "")
	if err != nil {
		return a, nil, nil, err
	}
	eng, closeEngine, err := setup{workspace: w, agent: a}.engine(context.Background(), engine.Config{})
	return a, eng, closeEngine, err
}
