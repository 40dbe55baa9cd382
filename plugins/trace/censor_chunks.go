package trace

import (
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
)

// speeches take what is hidden out of the texts of chunks, of which each may have a part
// of it only: they are looked at behind what the model said before. It is safe
// for concurrent use.
type speeches struct {
	*censor
	mu   sync.Mutex
	said map[string]string // in answers that go on, or the end of it, by run
}

// What is kept of answers.
const (
	mostSpeeches = 1 << 10
	longestSaid  = 16 << 10  // of which nothing at the end is hidden
	longestHush  = 256 << 10 // of which something is
)

// event returns an event with the text of a chunk as the rules will have it.
func (s *speeches) event(e engine.Event) engine.Event {
	if !s.chunks {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case engine.InferenceChunk:
		e.Text = s.chunk(e.Run, e.Text)
		return e
	case engine.InferenceStarted, engine.InferenceFinished, engine.RunFinished, engine.RunSuspended:
		delete(s.said, e.Head().Run)
	}
	return e
}

func (s *speeches) chunk(run, text string) string {
	said, known := s.said[run]
	if text == "" || !known && len(s.said) >= mostSpeeches || len(said) > longestHush {
		return mark(text)
	}
	if s.said == nil {
		s.said = map[string]string{}
	}
	all := said + text
	clean := s.part(all)
	if clean == all {
		if len(all) > longestSaid {
			all = all[len(all)-longestSaid/2:]
		}
		s.said[run] = all
		return text
	}
	before := 0
	for before < min(len(all), len(clean)) && all[before] == clean[before] {
		before++
	}
	after := 0
	for after < min(len(all), len(clean))-before && all[len(all)-after-1] == clean[len(clean)-after-1] {
		after++
	}
	switch {
	case len(all) <= longestSaid:
	case after > longestSaid/2:
		all = all[len(all)-longestSaid/2:]
	default: // what is hidden goes on, or is near
		all = all[max(0, before-longestName):]
	}
	s.said[run] = all
	if after >= len(text) {
		return text
	}
	return text[:max(0, before-len(said))] + Hidden + text[len(text)-after:]
}

// mark stands for a text of which nothing is told.
func mark(text string) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	return Hidden
}
