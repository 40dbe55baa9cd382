package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// stream sends one page what it is to show, as server-sent events: a view, then patches
// of it. Each patch has all that came since the message before, so that a page that is
// slow is sent fewer of them and holds nobody up.
type stream struct {
	*handler
	w  http.ResponseWriter
	rc *http.ResponseController

	rec    *recording.Recording // that the page shows; nil: none yet
	turn   int
	cursor uint64
	blank  bool // the page knows no time to count from
	over   bool // it knows that no more will come
	err    error
}

func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	s := &stream{handler: h, w: w, rc: http.NewResponseController(w)}
	s.resume(r.Header.Get("Last-Event-ID"))
	s.write([]byte("retry: 1000\n\n"))
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for quiet := time.Duration(0); ; quiet += h.every {
		if s.news() {
			quiet = 0
		}
		if quiet >= h.beat {
			quiet = 0
			s.write([]byte(": still here\n\n")) // so that a page that is gone is noticed
		}
		if s.err != nil || s.over {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// resume goes on behind the last message that a page got, if it was of this server and
// of the recording that is shown now. Any other page begins anew.
func (s *stream) resume(last string) {
	var key string
	var turn int
	var cursor uint64
	if n, _ := fmt.Sscanf(last, "%s %d %d", &key, &turn, &cursor); n != 3 || key != s.key {
		return
	}
	if rec, now := s.source.current(); now == turn {
		s.rec, s.turn, s.cursor = rec, turn, cursor
	}
}

// news sends what the page does not know yet, and reports whether there was anything.
func (s *stream) news() bool {
	rec, turn := s.source.current()
	fresh := s.rec == nil || turn != s.turn
	var patch recording.Patch
	cursor := uint64(0)
	if !fresh {
		if patch, cursor = rec.Since(s.cursor); cursor == s.cursor {
			return false
		}
	}
	if fresh || s.blank {
		cursor = rec.Cursor()
		view := rec.Outline() // what came between the two is sent again, and takes its own place
		s.rec, s.turn, s.cursor, s.blank, s.over = rec, turn, cursor, view.Zero.IsZero(), !view.Live
		s.whole(view)
		return true
	}
	for _, c := range patch.Commits {
		for i := range c.Changes {
			c.Changes[i].Why = nil // as in the view
		}
	}
	s.cursor = cursor
	s.over = patch.Live != nil && !*patch.Live
	s.send("patch", patch)
	return true
}

// whole sends a view: as one message, or if it is long in several, so that the page has
// its beginning to show while the rest is on its way. Only the last one has an id, as a
// page that got no further has to begin anew.
func (s *stream) whole(v recording.View) {
	n := parts(len(v.Spans))
	if n == 1 {
		s.send("view", v)
		return
	}
	all := v
	v.Spans, v.Commits, v.Calls, v.Effects = part(all.Spans, 0, n), part(all.Commits, 0, n), part(all.Calls, 0, n), part(all.Effects, 0, n)
	more, blank := true, s.blank
	s.blank = true
	s.send("view", longView{v, &more})
	for i := 1; i < n && s.err == nil; i++ {
		if i == n-1 {
			more, s.blank = false, blank
		}
		s.send("patch", longPatch{recording.Patch{
			Spans: part(all.Spans, i, n), Commits: part(all.Commits, i, n), Calls: part(all.Calls, i, n), Effects: part(all.Effects, i, n),
		}, &more})
	}
}

// longView and longPatch are of a view in several messages. More says whether others
// follow.
type (
	longView struct {
		recording.View
		More *bool `json:"more"`
	}
	longPatch struct {
		recording.Patch
		More *bool `json:"more"`
	}
)

// perPart is about how many spans there are in a message.
const perPart = 3000

func parts(spans int) int { return 1 + spans/perPart }

// part is one of n parts of a list, of which each has its share.
func part[T any](list []T, i, n int) []T { return list[len(list)*i/n : len(list)*(i+1)/n] }

// send writes one event.
func (s *stream) send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		s.err = err
		return
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "event: %s\nid:", name)
	if !s.blank {
		fmt.Fprintf(&out, " %s %d %d", s.key, s.turn, s.cursor)
	}
	out.WriteString("\ndata: ")
	out.Write(text) // one line: JSON has line breaks in no text
	out.WriteString("\n\n")
	s.write(out.Bytes())
}

// write gives up on a page that takes nothing for too long.
func (s *stream) write(text []byte) {
	if s.err == nil {
		s.err = s.rc.SetWriteDeadline(time.Now().Add(s.patience))
	}
	if s.err == nil {
		_, s.err = s.w.Write(text)
	}
	if s.err == nil {
		s.err = s.rc.Flush()
	}
}
