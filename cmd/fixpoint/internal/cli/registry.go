package cli

import (
	"context"
	"io"
	"path/filepath"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/profiles"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/report"
	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/contrib/plugins/allowlist"
	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins"
	"github.com/ddd26017/fixpoint/plugins/activecontext"
	"github.com/ddd26017/fixpoint/plugins/agentsmd"
	"github.com/ddd26017/fixpoint/plugins/audit"
	"github.com/ddd26017/fixpoint/plugins/autocommit"
	"github.com/ddd26017/fixpoint/plugins/budget"
	"github.com/ddd26017/fixpoint/plugins/census"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/clock"
	"github.com/ddd26017/fixpoint/plugins/compact"
	"github.com/ddd26017/fixpoint/plugins/confirm"
	"github.com/ddd26017/fixpoint/plugins/cost"
	"github.com/ddd26017/fixpoint/plugins/cwd"
	"github.com/ddd26017/fixpoint/plugins/elicit"
	"github.com/ddd26017/fixpoint/plugins/files"
	"github.com/ddd26017/fixpoint/plugins/headline"
	"github.com/ddd26017/fixpoint/plugins/loopguard"
	"github.com/ddd26017/fixpoint/plugins/permission"
	"github.com/ddd26017/fixpoint/plugins/reminders"
	"github.com/ddd26017/fixpoint/plugins/screening"
	"github.com/ddd26017/fixpoint/plugins/shell"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
	"github.com/ddd26017/fixpoint/plugins/tokens"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// contribPath is where the modules of the plugins from contrib are.
const contribPath = "github.com/ddd26017/fixpoint/contrib/plugins/"

// supplies are what the plugins are made of. The zero supplies do to list them.
type supplies struct {
	setup
	tree    *files.Plugin
	wanted  map[string]bool // besides the usual ones
	servers engine.Plugin   // of the protocol MCP
	drawing io.Writer       // where trace draws to, nil for nowhere
}

// usual are the plugins that every engine of the command has, in the order of
// registration.
func (s supplies) usual() []plugins.Entry {
	w := s.workspace
	return []plugins.Entry{
		{Name: "files", Description: "tools that list, search, read and write files", New: plugins.Plain(func() engine.Plugin { return s.tree })},
		{Name: report.Name, Description: "a tool that hands in a report, to the file that --out names", New: plugins.Plain(func() engine.Plugin { return report.New(w.report, w.display) })},
		{Name: permission.Name, Description: "decides by rules which tool calls run, are asked about or are denied", New: plugins.Plain(func() engine.Plugin { return permission.New() })},
		{Name: loopguard.Name, Description: "turns away calls that ran before with the same arguments", New: plugins.Plain(func() engine.Plugin { return loopguard.New() })},
		{Name: audit.Name, Description: "writes every tool call to a file", New: plugins.Plain(s.audit)},
		{Name: budget.Name, Description: "keeps a run within a number of tokens", New: plugins.Plain(func() engine.Plugin { return budget.New() })},
		{Name: agentsmd.Name, Description: "tells the model what AGENTS.md says", New: plugins.Plain(s.agentsmd)},
		{Name: headline.Name, Description: "keeps a headline of what the run is about", New: plugins.Plain(func() engine.Plugin { return headline.New() })},
		{Name: headline.FocusName, Description: "puts the folder that the run works in into the headline", New: plugins.Plain(func() engine.Plugin { return headline.Focus() })},
		{Name: headline.OutlineName, Description: "puts the step into the headline", New: plugins.Plain(func() engine.Plugin { return headline.Outline() })},
		{Name: census.Name, Description: "counts the files of the directory when a run starts", New: plugins.Plain(func() engine.Plugin { return census.New(s.tree.FS()) })},
		{Name: elicit.Name, Description: "a tool that asks the user a question", New: plugins.Plain(func() engine.Plugin { return elicit.New() })},
	}
}

// others are the plugins that an engine has when an agent names them, in the order of
// registration: who puts texts in front of the model first, gates next, with the one that
// asks at the end, and what looks after the files last.
func (s supplies) others() []plugins.Entry {
	return []plugins.Entry{
		{Name: compact.Name, Description: "puts a summary in the place of old messages in requests", New: plugins.Plain(func() engine.Plugin { return compact.New(compact.Options{}) })},
		{Name: clock.Name, Description: "tells the model the time, and how long the run has taken", New: plugins.Plain(func() engine.Plugin { return clock.New(clock.Options{Now: s.now}) })},
		{Name: tokens.Name, Description: "tells the model how many tokens it has left", New: plugins.Plain(tokens.New)},
		{Name: cost.Name, Description: "keeps account of what model calls cost, and ends runs at a limit", New: plugins.Plain(func() engine.Plugin { return cost.New(cost.Options{Tell: s.tellCost}) })},
		{Name: reminders.Name, Description: "reminds the model of something when it is due", New: plugins.Plain(reminders.New)},
		{Name: cwd.Name, Description: "a working directory, which shell and agentsmd follow", New: s.cwd},
		{Name: shell.Name, Description: "a tool that runs command lines in the directory", New: s.shell},
		{Name: activecontext.Name, Description: "shows the model the files that it works on", New: plugins.Plain(func() engine.Plugin { return activecontext.New(s.tree.FS()) })},
		{Name: screening.Name, Description: "looks for prompt injection in tool results", New: plugins.Plain(func() engine.Plugin { return screening.New(screening.Options{Report: s.tellFinding}) })},
		{Name: mcp.Name, Source: plugins.Module(mcpPath), Description: "tools of servers that speak the Model Context Protocol, of the section mcp", New: plugins.Plain(func() engine.Plugin { return s.servers })},
		{Name: exechook.Name, Source: plugins.Module(contribPath + exechook.Name), Description: "runs the hook programs of the files that --hooks names", New: plugins.Plain(s.exechook)},
		{Name: allowlist.Name, Source: plugins.Module(contribPath + allowlist.Name), Description: "approves command lines of which every part is on a list", New: plugins.Plain(allowlist.New)},
		{Name: confirm.Name, Description: "asks about calls that nobody approved; the answer may edit them or hold for later ones", New: plugins.Plain(s.confirm)},
		{Name: snapshots.Name, Description: "takes snapshots of the directory before something is changed", New: plugins.Plain(s.snapshots)},
		{Name: checks.Name, Description: "runs commands such as tests when the agent is done", New: plugins.Plain(func() engine.Plugin { return checks.New(checks.Options{Dir: s.workspace.dir}) })},
		{Name: autocommit.Name, Description: "commits what the agent changed to git when its run ends", New: plugins.Plain(s.autocommit)},
		{Name: trace.Name, Description: "draws the run's timing to " + outputDir + "/" + drawingName + ", for Perfetto or chrome://tracing", New: plugins.Plain(s.trace)},
	}
}

// registry returns all plugins that a spec can name.
func (s supplies) registry() (*plugins.Registry, error) {
	all := append(s.usual(), s.others()...)
	for i := range all {
		if all[i].Source == "" {
			all[i].Source = plugins.BuiltIn
		}
	}
	return plugins.NewRegistry(all...)
}

func (s supplies) audit() engine.Plugin {
	log := audit.Options{Dir: s.workspace.dir}
	if s.keep {
		// What another thread left behind belongs where that one works.
		log.DirOf = func(s *state.Snapshot) string { return kept.Key.Get(s).Dir }
		log.Sync = true
	}
	return audit.New(log)
}

func (s supplies) agentsmd() engine.Plugin {
	guide := agentsmd.New(s.tree.FS())
	if s.wanted[cwd.Name] {
		guide = guide.Follow(cwd.Dir)
	}
	return guide
}

func (s supplies) cwd(context.Context, inference.JSON) (engine.Plugin, error) {
	return cwd.New(s.workspace.dir, cwd.Options{})
}

func (s supplies) shell(context.Context, inference.JSON) (engine.Plugin, error) {
	var o shell.Options
	if s.wanted[cwd.Name] {
		o.Cwd = cwd.Dir
	}
	return shell.New(s.workspace.dir, o)
}

func (s supplies) exechook() engine.Plugin {
	if s.hooks == nil {
		return exechook.New(exechook.Options{})
	}
	return s.hooks
}

func (s supplies) confirm() engine.Plugin {
	o := confirm.Options{Previews: map[string]confirm.Previewer{
		files.WriteTool: confirm.FileDiff(s.tree.FS(), "path", "content"),
		files.EditTool:  editDiff{s.tree.FS()},
	}}
	if s.state != "" {
		o.Profiles = profiles.New(filepath.Join(s.state, "profiles"))
	}
	return confirm.New(o)
}

func (s supplies) snapshots() engine.Plugin {
	o := snapshots.Options{Dir: s.workspace.dir, Now: s.now, Exclude: append(snapshots.DefaultExclude(), outputDir)}
	for _, name := range s.workspace.kept() {
		o.Exclude = append(o.Exclude, literal(name))
	}
	if s.state != "" {
		o.Store = filepath.Join(s.state, "copies")
	}
	return snapshots.New(o)
}

func (s supplies) autocommit() engine.Plugin {
	return autocommit.New(autocommit.Options{Dir: s.workspace.dir, Now: s.now, OnDone: s.tellCommit})
}

func (s supplies) trace() engine.Plugin {
	if s.drawing == nil {
		return trace.New(trace.Options{})
	}
	return trace.New(trace.Options{Chrome: s.drawing})
}
