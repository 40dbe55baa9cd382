package inspect

import (
	"sync"

	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// Source is what a server shows: a recording, which another one can take the place of.
// It is safe for concurrent use.
type Source struct {
	mu   sync.Mutex
	now  *recording.Recording
	turn int // counts the recordings
}

// NewSource returns the source of a recording. Pages follow it while it is live.
func NewSource(rec *recording.Recording) *Source { return &Source{now: rec} }

// Recording returns the recording that is shown.
func (s *Source) Recording() *recording.Recording {
	rec, _ := s.current()
	return rec
}

// Replace makes pages begin again with another recording.
func (s *Source) Replace(rec *recording.Recording) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = rec
	s.turn++
}

func (s *Source) current() (rec *recording.Recording, turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.turn
}
