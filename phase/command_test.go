package phase_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	cmdCell   = state.NewCell[int]("cell", state.Options[int]{})
	cmdAction = phase.NewAction[int]("act", phase.StepEnd)
	cmdEffect = effects.NewSpec[int]("tell")
)

// Capability A6. The zero command does nothing; each part makes it do something.
func TestCommandZero(t *testing.T) {
	require.True(t, phase.Command{}.IsZero())
	for name, build := range map[string]func(*phase.Command){
		"update":   func(c *phase.Command) { c.Update(cmdCell.With(1)) },
		"schedule": func(c *phase.Command) { c.Schedule(cmdAction.New(1)) },
		"emit":     func(c *phase.Command) { c.Emit(cmdEffect.New(1)) },
		"reads":    func(c *phase.Command) { c.Reads(cmdCell) },
		"stop":     func(c *phase.Command) { c.StopPhase() },
		"end":      func(c *phase.Command) { c.EndRun("x", "") },
		"continue": func(c *phase.Command) { c.Continue("") },
		"edit":     func(c *phase.Command) { c.EditContent("c", "") },
	} {
		var c phase.Command
		build(&c)
		require.False(t, c.IsZero(), name)
	}
}

// Capability A6. A command keeps its parts in order and hands out copies.
func TestCommandParts(t *testing.T) {
	var c phase.Command
	c.Update(cmdCell.With(1)).Schedule(cmdAction.New(1), cmdAction.New(2)).Emit(cmdEffect.New(1)).Reads(cmdCell).Update(cmdCell.With(2)).StopPhase()
	require.Len(t, c.Updates(), 2)
	require.Len(t, c.Actions(), 2)
	require.Len(t, c.Effects(), 1)
	require.Equal(t, []state.AnyKey{cmdCell}, c.ReadKeys())
	require.True(t, c.StopsPhase())
	clear(c.Updates())
	clear(c.Actions())
	clear(c.Effects())
	clear(c.ReadKeys())
	require.Equal(t, "cell", c.Updates()[0].Key().Name())
	require.Equal(t, "act", c.Actions()[0].Name())
	require.Equal(t, "tell", c.Effects()[0].Name())
	require.NotNil(t, c.ReadKeys()[0])
}

// Capability A6. Appending to the lowered form cannot reach the command's memory,
// nor can building on a copy change what was lowered.
func TestCommandLower(t *testing.T) {
	var c phase.Command
	for range 3 {
		c.Update(cmdCell.With(1))
	}
	low := c.Lower()
	one, two := append(low.Updates, cmdCell.Reset()), append(low.Updates, cmdCell.With(9))
	require.Equal(t, "reset", one[3].Op())
	require.Equal(t, "apply", two[3].Op())
	c.Update(cmdCell.Reset())
	require.Len(t, low.Updates, 3)
	require.Equal(t, "apply", two[3].Op())
	empty := (&phase.Command{}).Lower()
	require.Empty(t, empty.Updates)
	require.Empty(t, empty.Actions)
	require.Empty(t, empty.Effects)
	require.Empty(t, empty.Reads)
}

// Capability A6. A copy of a command is one of its own: whatever is added to one, in
// whatever order, the others keep what they had when they were copied.
func TestCommandCopiesGrowApart(t *testing.T) {
	type model struct {
		updates, actions, effects, reads int
		stop                             bool
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		commands, want := make([]phase.Command, 1), make([]model, 1)
		for range 30 {
			i := rnd.IntN(len(commands))
			c, m := &commands[i], &want[i]
			switch rnd.IntN(7) {
			case 0, 1:
				c.Update(cmdCell.With(m.updates))
				m.updates++
			case 2:
				c.Update(cmdCell.With(m.updates), cmdCell.With(m.updates+1))
				m.updates += 2
			case 3:
				c.Schedule(cmdAction.New(1), cmdAction.New(2))
				m.actions += 2
			case 4:
				c.Emit(cmdEffect.New(1)).Reads(cmdCell)
				m.effects, m.reads = m.effects+1, m.reads+1
			case 5:
				c.StopPhase()
				m.stop = true
			case 6:
				commands, want = append(commands, *c), append(want, *m)
			}
		}
		for i, c := range commands {
			m := want[i]
			require.Equal(t, m, model{len(c.Updates()), len(c.Actions()), len(c.Effects()), len(c.ReadKeys()), c.StopsPhase()})
			require.Equal(t, m == model{}, c.IsZero())
			for n, u := range c.Updates() {
				require.Equal(t, n, u.Arg(), "in the order given")
			}
		}
	}
}
