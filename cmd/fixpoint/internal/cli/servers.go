package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
)

// mcpPath is the module of the plugin mcp.
const mcpPath = "github.com/ddd26017/fixpoint/contrib/mcp"

// connect starts and reaches the servers that the agents name, for a run. An engine that
// is only looked at gets their section and no tools: nothing of a spec is started to
// check it.
func (s setup) connect(ctx context.Context) (engine.Plugin, error) {
	if !s.runs {
		return engine.NewPlugin(mcp.Name, func(r *engine.Registrar) error {
			r.Section(mcp.Section)
			return nil
		}), nil
	}
	servers, err := mcp.FromSpecs(s.agent.lookup, s.agent.Specs...)
	if err != nil {
		return nil, usageError{err}
	}
	for i := range servers {
		if servers[i].Command != "" && !filepath.IsAbs(servers[i].Dir) {
			servers[i].Dir = filepath.Join(s.workspace.dir, servers[i].Dir)
		}
	}
	o := mcp.Options{Servers: servers, Schemas: jsonschema.New(jsonschema.Options{})}
	if s.view != nil {
		progress := &reports{view: s.view, shown: map[string]string{}}
		o.Progress = progress.tell
		o.Notify = func(n mcp.Notice) { s.view.Tell("server", n.Server+": "+n.Text) }
	}
	connected, err := mcp.Connect(ctx, o)
	if err != nil && ctx.Err() != nil {
		return nil, exitError(ExitCancelled)
	}
	if err != nil {
		return nil, fmt.Errorf("fixpoint: %w", err)
	}
	return connected, nil
}

// lookup returns a variable of the environment, for servers.
func (a agentFile) lookup(name string) (string, bool) {
	value := a.env(name)
	return value, value != ""
}

// reports shows what servers say of calls under way, without showing all of it: a call
// that says how far it is gets a line for each tenth, another one for each new message.
type reports struct {
	view  *terminal.View
	mu    sync.Mutex
	shown map[string]string // by call
}

func (r *reports) tell(p mcp.Progress) {
	now, text := p.Message, p.Message
	if p.Total > 0 {
		now = fmt.Sprint(int(10 * p.Done / p.Total))
		text = strings.TrimSpace(fmt.Sprintf("%.0f%% %s", 100*p.Done/p.Total, p.Message))
	}
	key := p.Run + " " + p.Call
	r.mu.Lock()
	defer r.mu.Unlock()
	if now == "" || r.shown[key] == now {
		return
	}
	r.shown[key] = now
	r.view.Tell("progress", p.Server+" "+p.Tool+": "+text)
}

// serverTexts says in a line each which servers an agent names.
func serverTexts(spec engine.AgentSpec) (all []string) {
	settings, err := mcp.Section.From(spec)
	if err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(settings.Servers)) {
		s := settings.Servers[name]
		text := s.URL
		if s.Command != "" {
			text = strings.Join(append([]string{s.Command}, s.Args...), " ")
		}
		all = append(all, name+": "+text)
	}
	return all
}
