package clock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Name is the plugin's name.
const Name = "clock"

// Options adjust the plugin.
type Options struct {
	// Now is the clock. It must tell the same time as the engine's Config.Now and be safe
	// for concurrent use. Nil means time.Now.
	Now func() time.Time
}

// Time is how long a run has taken.
type Time struct {
	// Worked is the time up to Seen, without standstills.
	Worked time.Duration `json:"worked"`
	// Seen is the last reading of the clock; zero before the first.
	Seen time.Time `json:"seen"`

	Leg   time.Time     `json:"leg"`            // when the run began, or last went on
	Legs  time.Duration `json:"legs,omitzero"`  // what it took before Leg
	Stood time.Duration `json:"stood,omitzero"` // how long it stood still before Leg
	Told  time.Duration `json:"told,omitzero"`  // the last mark that the model was told
	Date  time.Time     `json:"date,omitzero"`  // the Leg that the model knows the date of
}

// Elapsed is how long the run has taken.
var Elapsed = state.NewCell("clock.elapsed", state.Options[Time]{})

// New returns the plugin. It is safe for concurrent use.
func New(o Options) engine.Plugin {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Elapsed)
		r.Section(Section)
		skip, writes := engine.OnError(engine.Skip), engine.Writes(Elapsed)
		r.Hook(phase.BeforeInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			return tell(pc, now()), nil
		}), writes, skip)
		// So that what a model call took before a wait counts.
		r.Hook(phase.AfterInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(Elapsed.With(read(pc, now())))
			return cmd, nil
		}), writes, skip)
		return nil
	})
}

// read returns the run's time with a new reading of the clock.
func read(pc *phase.Context, now time.Time) Time {
	t := Elapsed.Get(pc.Snapshot())
	now = plain(now)
	if leg := plain(pc.Run().Started); !t.Leg.Equal(leg) {
		t.Legs, t.Stood = t.Worked, 0
		if !t.Seen.IsZero() {
			t.Stood = max(leg.Sub(t.Seen), 0)
		}
		t.Leg = leg
	}
	t.Seen = now
	t.Worked = max(t.Legs+now.Sub(t.Leg), t.Worked) // a clock that was set back takes nothing away
	return t
}

// plain returns t as it comes back from a journal.
func plain(t time.Time) time.Time { return t.UTC().Round(0) }

// tell tells the model what it does not know yet.
func tell(pc *phase.Context, now time.Time) (cmd phase.Command) {
	s, t := Section.Get(pc), read(pc, now)
	say := func(mode engine.ContextMode, format string, args ...any) {
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(fmt.Sprintf(format, args...)), Mode: mode}))
	}
	const date = "Monday, 2 January 2006, 15:04 MST"
	switch {
	case t.Date.IsZero():
		say(engine.Persistent, "It is %s.", s.stamp(now, date))
	case !t.Date.Equal(t.Leg) && t.Stood >= time.Minute:
		say(engine.Persistent, "The run stood still for %s. It is now %s.", words(t.Stood), s.stamp(now, date))
	}
	t.Date = t.Leg
	if mark := s.mark(t.Worked); mark > t.Told {
		t.Told = mark
		say(s.Note, "This run has taken %s so far. It is %s.", words(t.Worked), s.stamp(now, "15:04 MST"))
	}
	cmd.Update(Elapsed.With(t))
	return cmd
}

// words returns a duration for people, cut to what is of interest.
func words(d time.Duration) string {
	var parts []string
	add := func(n time.Duration, unit string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit))
		}
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 24*time.Hour:
		add(d/time.Hour, "h")
		add(d%time.Hour/time.Minute, "min")
	default:
		add(d/(24*time.Hour), "d")
		add(d%(24*time.Hour)/time.Hour, "h")
	}
	return strings.Join(parts, " ")
}
