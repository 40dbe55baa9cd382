package recording

import (
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Recording is what is known of the runs whose events it got. It is an
// engine.Observer, for any number of engines. It is safe for concurrent use.
type Recording struct {
	source string

	mu   sync.Mutex
	zero time.Time // of the first event
}

// New returns an empty recording. The source, such as the name of a file, is for people.
func New(source string) *Recording {
	return &Recording{source: source}
}

// Observe takes in an event, as it is emitted or as it was read.
func (r *Recording) Observe(e engine.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// Note adds a note for those who look at the recording, such as what could not be read.
func (r *Recording) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// Finish says that there is no more to come, or with false that there is again: what is
// open stays open, and the view is no live one.
func (r *Recording) Finish(over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// View returns all that is known.
func (r *Recording) View() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return View{}
}

// Since returns what changed since a cursor that an earlier call returned, or with 0
// everything, and the cursor for the next call. It costs as much as there is to tell.
func (r *Recording) Since(cursor uint64) (Patch, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Patch{}, cursor
}
