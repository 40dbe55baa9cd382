package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
)

func newDescribe(stdio IO) *cobra.Command {
	var asJSON, asMermaid bool
	c := &cobra.Command{
		Use:   "describe [SPEC]",
		Short: "List what the plugins register, which are active for the agent, and which hooks could conflict",
		Example: "  fixpoint describe agent.yaml\n" +
			"  fixpoint describe --mermaid > agent.mmd",
		Args: oneSpec,
		RunE: verb(func(_ context.Context, name string) error {
			a, eng, closeEngine, err := inspect(name)
			if err != nil {
				return err
			}
			m := eng.Describe().For(a.Specs[0])
			return errors.Join(describe(stdio.Out, m, asJSON, asMermaid), closeEngine())
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().BoolVar(&asMermaid, "mermaid", false, "as a flowchart in the Mermaid language")
	c.MarkFlagsMutuallyExclusive("json", "mermaid")
	return c
}

func describe(w io.Writer, m engine.Manifest, asJSON, asMermaid bool) error {
	text := picture.Text(m)
	switch {
	case asMermaid:
		text = picture.Mermaid(m)
	case asJSON:
		raw, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return err
		}
		text = string(raw) + "\n"
	}
	_, err := fmt.Fprint(w, text)
	return err
}
