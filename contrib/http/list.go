package serve

import (
	"net/http"
	"strconv"
	"strings"
)

// threadView is what is told of a thread.
type threadView struct {
	Thread string `json:"thread"`
	Runs   uint64 `json:"runs"`
	Newest View   `json:"newest"`
}

// threadPage is a part of the caller's threads.
type threadPage struct {
	Threads []string `json:"threads"`
	Next    string   `json:"next,omitempty"` // what to ask for after; "" at the end
}

// runPage is a part of a thread's runs, oldest first.
type runPage struct {
	Runs []View `json:"runs"`
	Next string `json:"next,omitempty"`
}

// listThreads lists the ids of the caller's threads, sorted.
func (s *Server) listThreads(c caller, w http.ResponseWriter, r *http.Request) error {
	after, limit, err := page(r)
	if err != nil {
		return err
	}
	ids, err := s.journal.Threads(r.Context(), c.inside(after), limit+1)
	if err != nil {
		return err
	}
	out := threadPage{Threads: []string{}}
	for _, id := range ids {
		id, mine := strings.CutPrefix(id, c.space)
		if !mine {
			break // they are sorted, so the caller's are together
		}
		if len(out.Threads) == limit {
			out.Next = out.Threads[limit-1]
			break
		}
		out.Threads = append(out.Threads, id)
	}
	c.write(w, http.StatusOK, out)
	return nil
}

// ofThread finds the thread that the path names.
func (s *Server) ofThread(c caller, r *http.Request) (known, error) {
	name := r.PathValue("thread")
	if !goodID(name) {
		return known{}, hidden()
	}
	th, err := s.look(r.Context(), c.inside(name))
	if err != nil {
		return known{}, err
	}
	return known{thread: c.inside(name), th: th, snap: th.Snapshot()}, nil
}

// numbered is the run of a number.
func (k known) numbered(n uint64) (known, bool) {
	record, ok := Runs.Get(k.snap, n)
	k.id, k.number, k.record = record.Run, n, record
	return k, ok
}

// showThread tells of a thread and its newest run.
func (s *Server) showThread(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	k, err := s.ofThread(c, r)
	if err != nil {
		return err
	}
	out := threadView{Thread: k.thread, Runs: newest(k.snap)}
	if last, ok := k.numbered(out.Runs); ok {
		out.Newest = s.view(last)
	}
	c.write(w, http.StatusOK, out)
	return nil
}

// listRuns lists the runs of a thread.
func (s *Server) listRuns(c caller, w http.ResponseWriter, r *http.Request) error {
	after, limit, err := page(r)
	if err != nil {
		return err
	}
	k, err := s.ofThread(c, r)
	if err != nil {
		return err
	}
	first := uint64(1)
	if after != "" {
		if first, err = strconv.ParseUint(after, 10, 32); err != nil {
			return refuse(http.StatusBadRequest, "query", "after is what the page before calls next")
		}
		first++
	}
	out := runPage{Runs: []View{}}
	for n := first; n <= newest(k.snap); n++ {
		if len(out.Runs) == limit {
			out.Next = strconv.FormatUint(n-1, 10)
			break
		}
		if run, ok := k.numbered(n); ok {
			out.Runs = append(out.Runs, s.view(run))
		}
	}
	c.write(w, http.StatusOK, out)
	return nil
}

// deleteThread drops a thread of which no run is under way, with all that is kept of it.
func (s *Server) deleteThread(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if err := bodyless(r); err != nil {
		return err
	}
	name := r.PathValue("thread")
	if !goodID(name) {
		return hidden()
	}
	t, done, err := s.at(r.Context(), c.inside(name))
	if err != nil {
		return err
	}
	defer done()
	if g, err := s.busy(r.Context(), t); err != nil {
		return err
	} else if g != nil {
		return refuse(http.StatusConflict, "busy", "a run of the thread is under way; cancel it first")
	}
	th, err := s.look(r.Context(), t.id)
	if err != nil {
		return err
	}
	var runs []string
	for _, record := range Runs.All(th.Snapshot()) {
		runs = append(runs, record.Run)
	}
	if err := s.journal.Delete(r.Context(), t.id); err != nil {
		return err
	}
	s.streams.forget(runs)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
