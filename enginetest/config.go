package enginetest

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Epoch is what the clock of Config starts with.
func Epoch() time.Time { return time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC) }

// Config returns an engine configuration for tests: a Clock that starts at Epoch,
// ids from a counter, the freeze check, and the returned Recorder as an observer.
// Change or add what the test needs. When the test fails, the recorded events are
// logged.
func Config(t TB, plugins ...engine.Plugin) (engine.Config, *Recorder) {
	t.Helper()
	rec := &Recorder{}
	t.Cleanup(func() {
		if t.Failed() {
			for _, line := range rec.Lines() {
				t.Logf("%s", line)
			}
		}
	})
	return engine.Config{
		Plugins:     plugins,
		Now:         NewClock(Epoch()).Now,
		NewID:       NewIDs("id"),
		CheckFreeze: true,
		Observers:   []engine.Observer{rec},
	}, rec
}

// Engine returns an engine of that configuration, which must be free of faults. It
// is closed when the test ends; an error of a plugin's Close fails the test.
func Engine(t TB, c engine.Config) *engine.Engine {
	t.Helper()
	eng, err := engine.New(c)
	if err != nil {
		t.Fatalf("enginetest: the engine was refused: %v", err)
	}
	ctx := context.WithoutCancel(t.Context()) // which ends before the clean-up
	t.Cleanup(func() {
		if err := eng.Close(ctx); err != nil {
			t.Errorf("enginetest: %v", err)
		}
	})
	return eng
}
