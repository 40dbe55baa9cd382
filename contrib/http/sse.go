package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// event makes the id of the event at a position.
func (st *stream) event(position uint64) string {
	return st.id + "-" + strconv.FormatUint(position, 10)
}

// lastOfAll is the id of an event after which there is nothing, whatever stream it is of.
const lastOfAll = "end"

// position reads an event's id; false for that of an event of another stream.
func (st *stream) position(id string) (uint64, bool) {
	text, ok := strings.CutPrefix(id, st.id+"-")
	n, err := strconv.ParseUint(text, 10, 64)
	return n, ok && err == nil && n < 1<<62
}

// showEvents streams a run's events.
func (s *Server) showEvents(c caller, w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, "after")
	if err != nil {
		return err
	}
	last := r.Header.Get("Last-Event-ID") // of a client that comes back by itself, whatever it asked for at first
	if last == "" {
		last = values.Get("after")
	}
	k, err := s.find(c, r)
	if err != nil {
		return err
	}
	v := s.view(k)
	over := v.Status == StatusDone
	st := s.streams.of(k.id)
	switch {
	case last == lastOfAll && over:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case st == nil && over && last == "":
		return s.rebuilt(c, w, r, v)
	case st == nil && over:
		return gap(v, lastOfAll)
	case st == nil:
		st = s.streams.open(c, k.id)
	}
	position, state := uint64(0), false
	if last != "" {
		known := false
		if position, known = st.position(last); !known {
			return gap(v, st.event(st.after(0).oldest))
		}
	} else if !st.fresh {
		position, state = st.after(0).oldest, true
	}
	p := st.after(position)
	switch {
	case p.gap:
		return gap(v, st.event(p.oldest))
	case len(p.lines) == 0 && p.over && !state:
		w.WriteHeader(http.StatusNoContent) // tells an EventSource not to come back
		return nil
	}
	done, err := s.mayStream(c)
	if err != nil {
		return err
	}
	defer done()
	out := s.begin(w, c)
	defer out.end()
	if r.Method == http.MethodHead {
		return nil
	}
	if state {
		out.state(st.event(position), v)
	}
	s.follow(r.Context(), out, st, position, func(at uint64, l line) bool {
		out.printf("id: %s\nevent: %s\ndata: %s\n\n", st.event(at), l.kind, l.data)
		return true
	}, func(oldest uint64) {
		out.json("gap", "", gapFault(v, st.event(oldest)))
	})
	return nil
}

// rebuilt is the stream of a run that ended and whose events are not kept any more: its
// result, and that this is all.
func (s *Server) rebuilt(c caller, w http.ResponseWriter, r *http.Request, v View) error {
	done, err := s.mayStream(c)
	if err != nil {
		return err
	}
	defer done()
	out := s.begin(w, c)
	defer out.end()
	if r.Method != http.MethodHead {
		out.state(lastOfAll, v)
	}
	return nil
}

// gap is the answer when events after a position are asked for that are not there.
func gap(v View, after string) error { return gapFault(v, after) }

func gapFault(v View, after string) *fault {
	f := refuse(http.StatusGone, "gap",
		"events after that one are not kept any more; go on from where the run stands, and ask for the events after the one named here")
	f.Run, f.After = &v, after
	return f
}

// mayStream counts one more stream of the caller, until done.
func (s *Server) mayStream(c caller) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, ended()
	}
	if s.open[c.space] >= s.options.Limits.Streams {
		f := refuse(http.StatusTooManyRequests, "too_many_streams", "too many of your streams are open; close one")
		f.retryAfter = 1
		return nil, f
	}
	s.open[c.space]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[c.space]--; s.open[c.space] == 0 {
			delete(s.open, c.space)
		}
	}, nil
}

// follow gives a stream's events from a position on to tell, until that has enough, the
// run ended or, if the server shuts down, waits, or the client is gone. It tells of a gap,
// and that is the end too.
func (s *Server) follow(ctx context.Context, out *output, st *stream, position uint64, tell func(uint64, line) (more bool), gap func(oldest uint64)) {
	leaving := s.leaving
	quiet := time.NewTimer(s.options.Limits.KeepAlive)
	defer quiet.Stop()
	for out.err == nil {
		p := st.after(position)
		if p.gap {
			gap(p.oldest)
			out.flush()
			return
		}
		for i, l := range p.lines {
			if !tell(p.first+uint64(i), l) {
				return
			}
		}
		position += uint64(len(p.lines))
		if len(p.lines) > 0 {
			out.flush()
			continue
		}
		if p.over {
			return
		}
		if leaving == nil && !p.going {
			out.printf("retry: 5000\n: the server shuts down; the run waits\n\n")
			out.flush()
			return
		}
		quiet.Reset(s.options.Limits.KeepAlive)
		select {
		case <-p.more:
		case <-leaving:
			leaving = nil
		case <-s.cut:
			out.printf("retry: 5000\n: the server shuts down\n\n")
			out.flush()
			return
		case <-ctx.Done():
			return
		case <-quiet.C:
			out.printf(": still there\n\n")
			out.flush()
		}
	}
}

// output writes server-sent events.
type output struct {
	w      http.ResponseWriter
	ctl    *http.ResponseController
	c      caller
	within time.Duration
	buf    []byte
	err    error // the client is gone
}

// begin answers with an event stream.
func (s *Server) begin(w http.ResponseWriter, c caller) *output {
	out := &output{w: w, ctl: http.NewResponseController(w), c: c, within: s.options.Limits.WriteWithin}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect
	w.WriteHeader(http.StatusOK)
	out.printf("retry: 1000\n\n")
	out.flush()
	return out
}

func (o *output) printf(format string, args ...any) { o.buf = fmt.Appendf(o.buf, format, args...) }

// json adds an event with a value.
func (o *output) json(kind, id string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return // values of this package can be written
	}
	if id != "" {
		o.printf("id: %s\n", id)
	}
	if kind != "" {
		o.printf("event: %s\n", kind)
	}
	o.printf("data: %s\n\n", o.c.outside(string(text)))
}

// state adds an event that tells where a run stands, in the place of events that were
// told by another process or are not kept.
func (o *output) state(id string, v View) { o.json("state", id, v); o.flush() }

// flush writes what was added. A client that does not take it in time is gone.
func (o *output) flush() {
	if o.err == nil && len(o.buf) > 0 {
		// Not every ResponseWriter has deadlines; then the server's own hold.
		_ = o.ctl.SetWriteDeadline(time.Now().Add(o.within))
		if _, o.err = o.w.Write(o.buf); o.err == nil {
			o.err = o.ctl.Flush()
		}
	}
	o.buf = o.buf[:0]
}

func (o *output) end() {
	o.flush()
	if o.err == nil {
		_ = o.ctl.SetWriteDeadline(time.Time{})
	}
}
