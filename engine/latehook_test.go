package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	lateSlow  = state.NewCell[int]("late.slow", state.Options[int]{})
	lateQuick = state.NewCell[int]("late.quick", state.Options[int]{})
)

// Fault F22. A hook that ignores its context and returns long after its phase was
// cancelled changes nothing in the phases that run meanwhile, however their memory is
// used again, and neither does building on a command after it was returned.
func TestLateHooksDoNotReachLaterPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := engine.Config{Plugins: []engine.Plugin{
			gaKeys(lateSlow, lateQuick),
			gaOn("slow", phase.StepStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				if call := calls.Add(1); call <= 5 {
					time.Sleep(time.Minute + time.Duration(call)*time.Second) // deaf to its context
					cmd.Update(lateSlow.With(-1))
					return cmd, fmt.Errorf("late %d", call)
				}
				cmd.Update(lateSlow.With(1))
				return cmd, nil
			}),
			gaOn("quick", phase.StepStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				cmd.Update(lateQuick.With(lateQuick.Get(pc.Snapshot()) + 1))
				kept := cmd
				go kept.Update(lateQuick.With(-100), lateSlow.With(-100))
				return cmd, nil
			}),
		}}
		th := gaThread(t, c)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := th.RunPhase(ctx, gaAgent, phase.StepStart)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Zero(t, lateQuick.Get(th.Snapshot()), "nothing of a phase that failed is committed")
		}
		for n := 1; n <= 200; n++ { // the late ones return in the midst of these
			rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepStart)
			require.NoError(t, err)
			require.Len(t, rep.Hooks, 2)
			for _, h := range rep.Hooks {
				require.NoError(t, h.Err)
				require.Equal(t, engine.HookCommitted, h.Status)
				require.Equal(t, 1, h.Calls)
			}
			require.Equal(t, 1, lateSlow.Get(th.Snapshot()))
			require.Equal(t, n, lateQuick.Get(th.Snapshot()))
			time.Sleep(400 * time.Millisecond)
		}
	})
}
