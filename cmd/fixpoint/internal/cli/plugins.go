package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// listedPlugin is a plugin as "plugins --json" prints it.
type listedPlugin struct {
	Name        string `json:"name"`
	Source      string `json:"source"`
	Description string `json:"description"`
}

func newPlugins(stdio IO) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "plugins",
		Short: "List the plugins that a spec can name",
		Long: "List the plugins that a spec can name in plugin_ids and active_hook_filter: the name, where\n" +
			"the code comes from, and what it does. A plugin that is named is there for all agents of\n" +
			"the file; describe says which there are, and which are active.\n\n" +
			"What plugins keep outside of the directory, such as copies of files and approvals for\n" +
			"good, is below FIXPOINT_STATE, or else in the usual folder for such things.",
		Args: exactly(),
		RunE: verb(func(context.Context, string) error {
			reg, err := supplies{}.registry()
			if err != nil {
				return err
			}
			all := []listedPlugin{}
			for e := range reg.Entries() {
				all = append(all, listedPlugin{e.Name, e.Source, e.Description})
			}
			if asJSON {
				return writeJSON(stdio.Out, all)
			}
			return pluginText(stdio.Out, all)
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func pluginText(to io.Writer, all []listedPlugin) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, p := range all {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.Source, p.Description); err != nil {
			return err
		}
	}
	return w.Flush()
}
