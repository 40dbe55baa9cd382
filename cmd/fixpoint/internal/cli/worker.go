package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// workerFlags are the flags of the worker command.
type workerFlags struct {
	showFlags
	dir, out, store, metrics string
	concurrency, attempts    int
	weights                  []string
	grace, lease             time.Duration
	idle                     bool
}

func newWorker(stdio IO) *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use:   "worker [SPEC...]",
		Short: "Serve threads of a store: run what submit gives them",
		Long: "Serve the threads of a store with the agents of spec files: run what \"fixpoint submit\"\n" +
			"gives them, one run of a thread at a time, until a signal ends it. Any number of workers\n" +
			"may share a store on a server; one in a folder is for one process at a time.\n\n" +
			"A question makes a run wait, without a worker; \"fixpoint approve\", deny and answer, or\n" +
			"submit --decide, let any worker go on with it. When a worker dies, others go on with its\n" +
			"runs from their last commit, once its leases have run out. All workers of a store should\n" +
			"have the same agents, and see the same directory.\n\n" +
			"The first SIGINT or SIGTERM lets it take no more work and wait for the runs under way,\n" +
			"for as long as --grace; what is not through then is left to other workers after its last\n" +
			"commit. A second one ends it at once.\n\n" +
			"What it does goes to standard error, one line each; --verbose has every event.\n" +
			"--metrics serves counts for Prometheus at /metrics.\n\n" + modelHelp + hookHelp +
			"Exit code: 0 when it was ended and all its runs are over or left to others, 1 when it\n" +
			"failed or a tool did not return within the grace, 2 for wrong arguments or a faulty spec.",
		Example: "  fixpoint worker --store postgres://app@db/app agent.yaml\n" +
			"  fixpoint worker --store nats://10.0.0.1:4222 --concurrency 64 --metrics :9090 agent.yaml\n" +
			"  fixpoint worker --store bolt:runs --until-idle",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, _ string) error { return f.run(ctx, args, stdio) })(c, nil)
	}
	fl := c.Flags()
	storeFlag(c, &f.store)
	fl.StringVar(&f.dir, "dir", ".", "the `directory` to work in")
	fl.StringVar(&f.out, "out", "", "the `file` for the report (default DIR/"+outputDir+"/report.md)")
	fl.IntVar(&f.concurrency, "concurrency", 16, "how many runs are under way at once")
	fl.StringArrayVar(&f.weights, "tenant-weight", nil, "`TENANT=N`: give a tenant N turns where others have one; may be repeated")
	fl.StringVar(&f.metrics, "metrics", "", "serve counts for Prometheus at this `address`; without a host, on this machine only")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "how long to wait for runs when it is to end")
	fl.DurationVar(&f.lease, "lease", 30*time.Second, "after how long others go on with its runs if it dies")
	fl.IntVar(&f.attempts, "attempts", 8, "how many attempts to begin with something may fail before it is a dead letter")
	fl.BoolVar(&f.idle, "until-idle", false, "end once nothing is left to do, or nothing but what is put off for longer than --lease")
	f.addHooks(c)
	f.addModel(c)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "log failures only")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log every event of the runs")
	c.MarkFlagsMutuallyExclusive("quiet", "verbose")
	return c
}

// check reports what is wrong with the flags.
func (f workerFlags) check() (weights map[string]int, err error) {
	for name, n := range map[string]int{"concurrency": f.concurrency, "attempts": f.attempts} {
		if n < 1 {
			return nil, usageError{fmt.Errorf("fixpoint: --%s is %d; use 1 or more", name, n)}
		}
	}
	if f.grace <= 0 || f.lease < time.Second {
		return nil, usageError{errors.New("fixpoint: --grace has to be more than 0, and --lease 1s or more")}
	}
	weights = map[string]int{}
	for _, text := range f.weights {
		at := strings.LastIndexByte(text, '=')
		n, err := strconv.Atoi(text[at+1:])
		if at < 0 || err != nil || n < 1 {
			return nil, usageError{fmt.Errorf("fixpoint: --tenant-weight %q: write TENANT=N with an N of 1 or more", text)}
		}
		weights[text[:at]] = n
	}
	return weights, nil
}

func (f workerFlags) run(ctx context.Context, names []string, stdio IO) error {
	weights, err := f.check()
	if err != nil {
		return err
	}
	choice, err := f.chosen("", stdio)
	if err != nil {
		return err
	}
	a, err := loadAgents(names, choice)
	if err != nil {
		return err
	}
	hooks, err := f.hookFiles()
	if err != nil {
		return err
	}
	a = hooks.agent(a)
	w, err := newWorkspace(f.dir, f.out, f.hidden(f.store, hooks...)...)
	if err != nil {
		return err
	}
	return withStore(ctx, f.store, kept.Create, func(store *kept.Store) error {
		made := setup{workspace: w, agent: a, keep: true, runs: true, state: stdio.stateFolder(w), now: stdio.Now}
		if err := hooks.load(&made); err != nil {
			return err
		}
		return f.serve(ctx, made, store, weights, stdio)
	})
}

// logger writes what the worker does.
func (f workerFlags) logger(stdio IO) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case f.quiet:
		level = slog.LevelWarn
	case f.verbose:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: level}))
}

// serve runs a worker on an open store.
func (f workerFlags) serve(ctx context.Context, made setup, st *kept.Store, weights map[string]int, stdio IO) (err error) {
	log := f.logger(stdio)
	counts := newMetrics()
	closeEngine := func() error { return nil }
	defer func() { err = errors.Join(err, closeEngine()) }() // what the worker closed is not closed again
	specs := map[string]engine.AgentSpec{}
	for _, spec := range made.agent.Specs {
		specs[spec.ID] = spec
	}
	var notSpec error
	w, err := worker.New(worker.Config{
		Journal: st.Journal, Vault: st.Vault, Owner: st.Owner, Now: stdio.Now, Logger: log,
		Concurrency: f.concurrency, MaxAttempts: f.attempts, Grace: f.grace, Claim: f.lease,
		TenantWeight: func(tenant string) int { return max(weights[tenant], 1) },
		Engine: func(c engine.Config) (*engine.Engine, error) {
			c.Schemas = jsonschema.New(jsonschema.Options{})
			c.Limits.Lease = f.lease
			if f.verbose {
				c.Logger = log
			}
			c.Resolver = gate.ResolverFunc(leaveOpen)
			if made.hooks != nil {
				c.Resolver = made.hooks.Resolver(c.Resolver)
			}
			if stdio.Plugins != nil {
				c.Plugins = append(c.Plugins, stdio.Plugins()...)
			}
			eng, closing, err := made.engine(ctx, c)
			if err == nil {
				closeEngine = closing
			}
			notSpec = err
			return eng, err
		},
		Specs: func(_ context.Context, agent string) (engine.AgentSpec, error) {
			if spec, ok := specs[agent]; ok {
				return spec, nil
			}
			return engine.AgentSpec{}, fmt.Errorf("this worker has no agent %q; it has %s", agent, strings.Join(agentNames(made.agent), ", "))
		},
		Observe: func(r worker.Report) {
			counts.over(r)
			log.Info("over", reportFields(r)...)
		},
	})
	if notSpec != nil {
		return notSpec // it says itself what is wrong
	}
	if err != nil {
		return fmt.Errorf("fixpoint: %w", err)
	}
	if err := made.workspace.prepare(); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop, err := counts.serve(ctx, f.metrics, w, log)
	if err != nil {
		return err
	}
	defer stop()
	log.Info("serving", "worker", w.Owner(), "store", st.Name, "agents", strings.Join(agentNames(made.agent), ","), "concurrency", f.concurrency)
	context.AfterFunc(ctx, func() {
		log.Info("ending", "runs", w.Stats().Running, "grace", f.grace)
	})
	if f.idle {
		go func() {
			defer end()
			idle(ctx, w, st.Journal, f.lease, log)
		}()
	}
	err = w.Run(ctx)
	log.Info("ended", "applied", w.Stats().Applied)
	if err != nil {
		return fmt.Errorf("fixpoint: %w", err)
	}
	return nil
}

// leaveOpen lets every question wait for an answer, for as long as it may.
func leaveOpen(context.Context, gate.Ticket) (phase.Answer, error) {
	return phase.Answer{}, gate.ErrLeftOpen
}

// effectLane is where the engine puts effects that have to be delivered.
const effectLane = "effects"

// idle returns when nothing is left to do, or nothing but what was put off for longer than
// it takes others to lose what they had.
func idle(ctx context.Context, w *worker.Worker, queue store.Queue, lease time.Duration, log *slog.Logger) {
	busy := time.Now()
	for {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		lanes, err := w.Lanes(ctx)
		var effects store.Depth
		if err == nil {
			effects, err = queue.Depth(ctx, effectLane)
		}
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("the lanes cannot be looked at", "error", err)
			}
			continue
		}
		work, later := effects.Due+effects.Claimed+int(w.Stats().Running), 0
		for _, l := range lanes {
			work += l.Due + l.Claimed
			later += l.Waiting
		}
		switch {
		case work > 0:
			busy = time.Now()
		case later == 0 || time.Since(busy) > lease:
			return
		}
	}
}

// reportFields are what a log line says of an activation that is over.
func reportFields(r worker.Report) []any {
	o := r.Outcome
	fields := []any{"thread", r.Thread, "activation", o.Seq, "kind", o.Kind, "fate", o.Fate}
	for _, f := range []struct{ name, value string }{
		{"run", o.Run}, {"status", string(o.Status)}, {"reason", string(o.Reason)}, {"tenant", r.Lane.Tenant}, {"error", o.Error},
	} {
		if f.value != "" {
			fields = append(fields, f.name, f.value)
		}
	}
	return append(fields, "waited", r.Waited.Round(time.Millisecond))
}

func agentNames(a agentFile) (names []string) {
	for _, spec := range a.Specs {
		names = append(names, spec.ID)
	}
	return names
}

// loadAgents reads several spec files as if they were one.
func loadAgents(names []string, c chosen) (agentFile, error) {
	if len(names) == 0 {
		names = []string{""}
	}
	var all agentFile
	for i, name := range names {
		a, err := loadAgent(name, c)
		if err != nil {
			return agentFile{}, err
		}
		if i == 0 {
			all = a
			continue
		}
		for _, spec := range a.Specs {
			if slices.Contains(agentNames(all), spec.ID) {
				return agentFile{}, usageError{fmt.Errorf("fixpoint: %s: there is an agent %q in another spec file already", a.Name, spec.ID)}
			}
		}
		for id, m := range a.models {
			if _, taken := all.models[id]; taken && strings.HasPrefix(id, "script:") && c.model == "" {
				return agentFile{}, usageError{fmt.Errorf("fixpoint: %s: another spec file names the script %s too, beside itself; give one of them another name", a.Name, id)}
			}
			all.models[id] = m
		}
		all.Specs = append(all.Specs, a.Specs...)
	}
	return all, nil
}
