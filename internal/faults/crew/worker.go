//go:build unix

package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
)

// Worker is the child process that works.
var Worker = child.Part{Name: "crew worker", Run: work}

// job is what a worker is told; it works until its standard input ends.
type job struct {
	Address     servers.Address `json:"address"`
	Outside     string          `json:"outside"`
	Owner       string          `json:"owner"`
	Lease       time.Duration   `json:"lease"`
	Concurrency int             `json:"concurrency"`
	Think       time.Duration   `json:"think"` // that the model takes
	Work        time.Duration   `json:"work"`  // that a tool takes
}

// report is what a worker tells: that it is ready, and its counts in the end.
type report struct {
	Ready bool         `json:"ready"`
	Stats worker.Stats `json:"stats"`
}

func work(ctx context.Context, _ []string) error {
	in, say := json.NewDecoder(os.Stdin), talk.NewVoice(os.Stdout)
	var j job
	if err := in.Decode(&j); err != nil {
		return fmt.Errorf("crew: read the job: %w", err)
	}
	out, err := openOutside(j.Outside)
	if err != nil {
		return err
	}
	journal, err := j.Address.Open(ctx)
	if err != nil {
		return err
	}
	h := newHand(j.Owner, out, j.Work)
	w, err := worker.New(worker.Config{
		Journal: journal, Owner: j.Owner, Concurrency: j.Concurrency, Quiet: true,
		Engine: func(c engine.Config) (*engine.Engine, error) { return engine.New(h.engineConfig(c, j.Think, j.Lease)) },
		Specs: func(context.Context, string) (engine.AgentSpec, error) {
			return engine.AgentSpec{ID: agent, ToolExecution: engine.ToolsParallel}, nil
		},
		// A wake-up whose worker died is looked at when the lease runs out.
		Claim: j.Lease, Poll: min(500*time.Millisecond, j.Lease/8), MaxAttempts: 1 << 20,
		Backoff: 100 * time.Millisecond, MaxBackoff: time.Second,
		Observe: func(r worker.Report) {
			out.write(line{Kind: lineOver, Worker: j.Owner, Thread: r.Thread, Seq: r.Outcome.Seq})
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(in.Buffered(), os.Stdin))
		stop()
	}()
	say.Say(report{Ready: true})
	err = w.Run(ctx)
	say.Say(report{Stats: w.Stats()})
	return errors.Join(err, journal.Close(), out.close())
}
