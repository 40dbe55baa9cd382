package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// gbRefusing is a journal that refuses one append, and takes those after it.
type gbRefusing struct {
	engine.Journal
	refuse, appends atomic.Int64
}

func (j *gbRefusing) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	if j.appends.Add(1) == j.refuse.Load() {
		return 0, errors.New("the disk is full")
	}
	return j.Journal.Append(ctx, c)
}

// What a tool says and what it wrote are in one commit: whichever append is refused, no
// result that says that it went well is without what the tool wrote.
func TestResultsAndWritesOfToolsStayTogether(t *testing.T) {
	sold := state.NewCounter("gb.sold", state.Options[int64]{Scope: state.ScopeThread})
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		refused := false
		for n := int64(1); n == 1 || refused; n++ {
			journal := &gbRefusing{Journal: memstore.New(memstore.Options{})}
			journal.refuse.Store(n)
			w := gbNew(t, engine.Config{
				Journal: journal,
				Model:   gbScript(gbAsk(gbCall("a", "sell", ""), gbCall("b", "sell", ""), gbCall("c", "sell", ""))),
				Plugins: []engine.Plugin{engine.NewPlugin("shop", func(r *engine.Registrar) error {
					r.Key(sold)
					r.Tool(gbToolOf("sell", func(context.Context, *phase.Context) (out engine.Output, err error) {
						out.Content = "sold"
						out.Command.Update(sold.With(1))
						return out, nil
					}))
					return nil
				})},
			})
			w.spec.ToolExecution = exec
			res := w.say("go")
			refused = res.Err != nil
			good := 0
			for _, r := range w.results() {
				if r.Outcome == inference.OutcomeOK {
					good++
				}
			}
			require.EqualValues(t, good, sold.Get(w.thread.Snapshot()), "%s, append %d: %v", exec, n, gbOutcomes(w.results()))
			require.Contains(t, []int{0, 3}, len(w.results()))
		}
	}
}
