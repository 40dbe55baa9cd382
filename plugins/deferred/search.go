package deferred

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// SearchTool is the name of the tool that loads others.
const SearchTool = "search_tools"

// searchArgs are the arguments of SearchTool.
type searchArgs struct {
	Query string `json:"query"`
}

const searchSchema = `{"type":"object","properties":{"query":{"type":"string",` +
	`"description":"words that say what the tool should do, or the name of a tool"}},"required":["query"],"additionalProperties":false}`

// lineLength is how much of a tool's description a search shows, in characters.
const lineLength = 160

// search is the tool. It may run twice: what it loads is loaded.
type search struct {
	engine.Tool
	engine.Validator
}

// Recovery says that a search that was under way when its process ended runs again.
func (search) Recovery() engine.Recovery { return engine.Rerun }

func newSearch(c *catalog, about string) engine.Tool {
	what := fmt.Sprintf("Find and load more tools: there are %d that you do not see.", len(c.tools))
	if about = strings.TrimSpace(about); about != "" {
		what += " They are about: " + about + "."
	}
	t := engine.NewTool(inference.ToolSpec{Name: SearchTool, Kind: "read", Schema: searchSchema,
		Description: what + " You can call what was found in your next step."}, c.search)
	return search{t, t.(engine.Validator)}
}

// found is what a search gives a program to read.
type found struct {
	Loaded  []string `json:"loaded"`  // best first; some may have been loaded before
	Matches int      `json:"matches"` // of all tools that the agent may use
}

func (c *catalog) search(_ context.Context, pc *phase.Context, in searchArgs) (engine.Output, error) {
	if strings.TrimSpace(in.Query) == "" {
		return engine.Output{}, errors.New("the query is empty; say in a few words what the tool should do")
	}
	s := Section.Get(pc)
	v := look(pc, s)
	hits := slices.DeleteFunc(c.rank(in.Query), func(t *tool) bool { return slices.Contains(v.barred, t.name) })
	best := hits[:min(len(hits), s.Results)]
	if len(best) == 0 {
		return engine.Text(fmt.Sprintf("None of %d tools has anything to do with that. Try other words.", len(c.tools))), nil
	}
	var out engine.Output
	var text strings.Builder
	told := found{Matches: len(hits)}
	fresh := []string{}
	for _, t := range best {
		told.Loaded = append(told.Loaded, t.name)
		fmt.Fprintf(&text, "%s: %s", t.name, t.line)
		if v.offers(t.name) {
			text.WriteString(" (was loaded before)")
		} else {
			fresh = append(fresh, t.name)
		}
		text.WriteByte('\n')
	}
	if more := len(hits) - len(best); more > 0 {
		fmt.Fprintf(&text, "%d more fit less well; use more exact words to load others.\n", more)
	}
	if len(fresh) > 0 {
		text.WriteString("You can call these tools from your next step on.")
	}
	details, err := inference.ToJSON(told)
	if err != nil {
		return out, err
	}
	out.Content, out.Details = strings.TrimSpace(text.String()), details
	switch {
	case len(fresh) == 0:
	case s.Keep == KeepThread:
		out.Command.Update(LoadedInThread.Add(fresh...))
	default:
		out.Command.Update(LoadedInRun.Add(fresh...))
	}
	return out, nil
}
