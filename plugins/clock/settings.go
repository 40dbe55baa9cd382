package clock

import (
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Duration is a time.Duration that is text in JSON, such as "1m30s".
type Duration time.Duration

// MarshalText writes the duration as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("clock: %q is no duration; write one such as 90s or 1h30m", text)
	}
	*d = Duration(v)
	return nil
}

// Settings is the content of the section.
type Settings struct {
	// At lists marks, in rising order: how long the run has taken when the model is told.
	At []Duration `json:"at"`
	// ThenEvery is the time between two marks after the last in At; 0 means that there
	// are none.
	ThenEvery Duration `json:"then_every"`
	// Zone is the time zone of what is told, by its IANA name; UTC by default, and Local
	// is that of the machine.
	Zone string `json:"zone"`
	// Note says how long the model is shown how long the run has taken: "" for good, or
	// "one_shot".
	Note engine.ContextMode `json:"note"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings {
		const minute = Duration(time.Minute)
		return Settings{At: []Duration{minute, 5 * minute, 10 * minute, 15 * minute, 20 * minute}, ThenEvery: 10 * minute, Zone: "UTC"}
	},
	Check: Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	for i, d := range s.At {
		if d <= 0 || i > 0 && d <= s.At[i-1] {
			return fmt.Errorf("clock: at[%d] is %s; want durations above 0, each longer than the one before", i, time.Duration(d))
		}
	}
	if s.ThenEvery < 0 {
		return fmt.Errorf("clock: then_every is %s; want 0 for no more marks, or more", time.Duration(s.ThenEvery))
	}
	if _, err := time.LoadLocation(s.Zone); err != nil {
		return fmt.Errorf("clock: zone is %q, which this machine does not know; use a name such as Europe/Paris, or UTC: %w", s.Zone, err)
	}
	if s.Note != engine.Persistent && s.Note != engine.OneShot {
		return fmt.Errorf("clock: note is %q; use %q, or leave it out", s.Note, engine.OneShot)
	}
	return nil
}

// mark returns the last mark that a run of that length has passed, 0 before the first.
func (s Settings) mark(d time.Duration) (last time.Duration) {
	for _, m := range s.At {
		if time.Duration(m) > d {
			return last
		}
		last = time.Duration(m)
	}
	if every := time.Duration(s.ThenEvery); every > 0 {
		last += (d - last) / every * every
	}
	return last
}

// stamp returns a moment as people write it in the zone, which may be read from a file.
func (s Settings) stamp(t time.Time, layout string) string {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		zone = time.UTC // Validate knew it, and a wrong hour is better than none
	}
	return t.In(zone).Format(layout)
}
