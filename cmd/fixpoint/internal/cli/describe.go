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

// describeFlags are the flags of the describe command.
type describeFlags struct {
	json, mermaid, dot, svg, conflicts bool
	observed                           []string
}

func newDescribe(stdio IO) *cobra.Command {
	var f describeFlags
	c := &cobra.Command{
		Use:   "describe [SPEC]",
		Short: "List what the plugins register, which are active for the agent, and which hooks could conflict",
		Long: "List what the plugins register and which of them are active for the first agent of a spec\n" +
			"file, as text or as a drawing. Nothing runs.\n\n" +
			"--conflicts tells which hooks could fight over which keys, and what happens then: by what\n" +
			"they declare, and with --observed also by what the events of earlier runs show.",
		Example: "  fixpoint describe agent.yaml\n" +
			"  fixpoint describe --svg > agent.svg          # to open in a browser\n" +
			"  fixpoint describe --mermaid > agent.mmd\n" +
			"  fixpoint describe --dot | dot -Tpdf > agent.pdf\n" +
			"  fixpoint describe --conflicts agent.yaml\n" +
			"  fixpoint run --trace run.jsonl agent.yaml && fixpoint describe --conflicts --observed run.jsonl agent.yaml",
		Args: oneSpec,
		RunE: verb(func(_ context.Context, name string) error { return f.describe(name, stdio.Out) }),
	}
	fl := c.Flags()
	fl.BoolVar(&f.json, "json", false, "as JSON")
	fl.BoolVar(&f.mermaid, "mermaid", false, "as a flowchart in the Mermaid language")
	fl.BoolVar(&f.dot, "dot", false, "as a graph in the language of Graphviz")
	fl.BoolVar(&f.svg, "svg", false, "as a drawing")
	fl.BoolVar(&f.conflicts, "conflicts", false, "which hooks could conflict on which keys")
	fl.StringArrayVar(&f.observed, "observed", nil, "a `trace` of a run, as run --trace writes it, to count what happened; may be repeated")
	c.MarkFlagsMutuallyExclusive("json", "mermaid", "dot", "svg", "conflicts")
	return c
}

func (f describeFlags) describe(name string, w io.Writer) error {
	if len(f.observed) > 0 && !f.conflicts {
		return usageError{errors.New("fixpoint: --observed needs --conflicts")}
	}
	seen, err := observed(f.observed)
	if err != nil {
		return err
	}
	a, eng, closeEngine, err := inspect(name)
	if err != nil {
		return err
	}
	text, err := f.text(eng.Describe().For(a.Specs[0]), seen)
	if err == nil {
		_, err = fmt.Fprint(w, text)
	}
	return errors.Join(err, closeEngine())
}

func (f describeFlags) text(m engine.Manifest, seen *picture.Observed) (string, error) {
	switch {
	case f.json:
		raw, err := json.MarshalIndent(m, "", "  ")
		return string(raw) + "\n", err
	case f.mermaid:
		return picture.Mermaid(m), nil
	case f.dot:
		return picture.DOT(m), nil
	case f.svg:
		return picture.SVG(m), nil
	case f.conflicts:
		return picture.Conflicts(m, seen), nil
	}
	return picture.Text(m), nil
}
