package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newWhy(stdio IO) *cobra.Command {
	var store string
	var asJSON bool
	c := &cobra.Command{
		Use:   "why [TRACE] CALL",
		Short: "Tell the whole decision about a tool call",
		Long: "Tell the whole decision about a tool call in sentences: what each gate said, how that was\n" +
			"resolved, who changed the arguments, who was asked and what they answered, and how the\n" +
			"call came out.\n\n" +
			"CALL is the id of a call, as the model gave it, or the name of a tool. Ids may repeat,\n" +
			"and then all the calls are told; RUN/STEP/ID is one of them.\n\n" + pastHelp + "\n\n" +
			"Exit code: 0 when there is an answer, 1 when the trace cannot be read, 2 for wrong\narguments, such as a call that there is not.",
		Example: "  fixpoint why run.jsonl call-7\n" +
			"  fixpoint why run.jsonl write_report\n" +
			"  fixpoint why --store runs thread-1.run-1/5/report",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, _ string) error {
			p, args, err := pastOf(c, args, store, "CALL")
			if err != nil {
				return err
			}
			rec, err := p.read(ctx)
			if err != nil {
				return err
			}
			all, err := rec.Why(args[0])
			if err != nil {
				return unknown(err, "")
			}
			if err := remarks(stdio.Err, rec); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(stdio.Out, all)
			}
			for i, one := range all {
				if i > 0 {
					if _, err := fmt.Fprintln(stdio.Out); err != nil {
						return err
					}
				}
				if err := paragraph(stdio.Out, one.String()); err != nil {
					return err
				}
			}
			return nil
		})(c, nil)
	}
	c.ValidArgsFunction = completed(&store)
	storeFlag(c, &store)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}
