package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
)

// Recorder is an engine.Observer that keeps the events it gets. One that was not
// used yet is ready for use. It is safe for concurrent use and for many runs,
// whose events it keeps as they arrive.
//
// The engine hands events over in the background: those of a run are complete
// when the run has returned.
type Recorder struct {
	mu     sync.Mutex
	events []engine.Event
}

// Observe keeps e.
func (r *Recorder) Observe(e engine.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the events so far. The slice is the caller's.
func (r *Recorder) Events() []engine.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Filter returns the events of the given types, such as "hook_finished".
func (r *Recorder) Filter(types ...string) []engine.Event {
	return slices.DeleteFunc(r.Events(), func(e engine.Event) bool { return !slices.Contains(types, e.Type()) })
}

// Run returns the events of one run, without those of runs it delegated to.
func (r *Recorder) Run(id string) []engine.Event {
	return slices.DeleteFunc(r.Events(), func(e engine.Event) bool { return e.Head().Run != id })
}

// Reset forgets the events.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Lines returns the events as Lines does.
func (r *Recorder) Lines() []string { return Lines(r.Events()) }

// Compare compares the normalised events with the golden file, line by line. With
// update set, as from a -update flag of the test's own, it writes the file instead,
// with the folders it needs.
func (r *Recorder) Compare(t TB, golden string, update bool) {
	t.Helper()
	got := r.Lines()
	if update {
		text := strings.Join(append(got, ""), "\n")
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatalf("enginetest: %v", err)
		}
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatalf("enginetest: %v", err)
		}
		return
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("enginetest: there is no golden file, run the test with its update flag: %v", err)
	}
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	if diff := difference(want, got); diff != "" {
		t.Errorf("enginetest: the events differ from %s: %s", golden, diff)
	}
}

// Select returns those of the events that are of type E.
func Select[E engine.Event](events []engine.Event) []E {
	var out []E
	for _, e := range events {
		if e, ok := e.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

// difference describes the first line in which want and got differ, or returns "".
func difference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		w, g := "(no more lines)", "(no more lines)"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			before := ""
			if i > 0 {
				before = "\nafter " + want[i-1]
			}
			return fmt.Sprintf("line %d%s\nwant  %s\ngot   %s", i+1, before, w, g)
		}
	}
	return ""
}
