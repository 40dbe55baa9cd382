package trace_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/ddd26017/fixpoint/enginetest"
)

// entry is an event of a Chrome trace file.
type entry struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	Ph   string         `json:"ph"`
	Ts   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	Pid  uint32         `json:"pid"` // which the format wants to be a whole number
	Tid  uint32         `json:"tid"`
	S    string         `json:"s"`
	ID   uint64         `json:"id"`
	BP   string         `json:"bp"`
	Args map[string]any `json:"args"`
}

// thread is where an entry is.
type thread struct{ pid, tid uint32 }

func (e entry) at() thread { return thread{e.Pid, e.Tid} }

// fault says what is wrong with an entry by itself: which members each kind has to have,
// and which make no sense.
func (e entry) fault(named map[thread]bool) string {
	switch {
	case e.Name == "":
		return "it has no name"
	case e.Pid == 0 || e.Pid > 1<<31-1 || e.Tid > 1<<31-1:
		return "it has a bad id"
	case e.Ph != "M" && (e.Ts == nil || *e.Ts < 0):
		return "it has no time"
	case e.Ph != "M" && !named[e.at()]:
		return "it is on a thread without a name"
	case (e.Dur != nil) != (e.Ph == "X"):
		return "only spans have a length"
	case (e.S != "") != (e.Ph == "i"):
		return "only instants have a scope"
	case (e.ID != 0) != (e.Ph == "s" || e.Ph == "f"):
		return "only arrows have an id"
	}
	switch e.Ph {
	case "M":
		want := map[string]string{"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}[e.Name]
		if _, ok := e.Args[want]; !ok || len(e.Args) != 1 || e.Ts != nil {
			return "it names nothing"
		}
	case "i":
		if e.S != "t" {
			return "it has an unknown scope"
		}
	case "X":
		if *e.Dur < 0 {
			return "it ends before it begins"
		}
	case "s", "f":
		if (e.Ph == "f") != (e.BP == "e") || e.Cat == "" {
			return "it binds to nothing"
		}
	default:
		return "it is of unknown kind"
	}
	return ""
}

// checkChrome holds a file to what viewers ask of it: JSON of the object form, known
// kinds of events with the members that each needs, every process and thread named
// before it is used, spans of a thread that lie in one another or beside, and arrows
// that have two ends, later the second, each where a span is. It returns the spans.
func checkChrome(t enginetest.TB, file []byte) (spans []entry) {
	t.Helper()
	var all struct {
		DisplayTimeUnit string            `json:"displayTimeUnit"`
		OtherData       map[string]string `json:"otherData"`
		TraceEvents     []entry           `json:"traceEvents"`
		Dropped         *struct {
			Events int `json:"events"`
			Pieces int `json:"pieces"`
		} `json:"dropped"`
	}
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&all); err != nil || dec.More() {
		t.Fatalf("not JSON: %v\n%s", err, file)
	}
	named := map[thread]bool{}
	begun := map[uint64]entry{}
	for _, e := range all.TraceEvents {
		if e.Ph == "M" && e.Name == "thread_name" {
			named[e.at()] = true
		}
		if fault := e.fault(named); fault != "" {
			t.Errorf("%s: %+v", fault, e)
			continue
		}
		switch e.Ph {
		case "X":
			spans = append(spans, e)
		case "s":
			if _, ok := begun[e.ID]; ok {
				t.Errorf("two arrows have an id: %+v", e)
			}
			begun[e.ID] = e
		case "f":
			from, ok := begun[e.ID]
			if !ok || from.Name != e.Name || from.Cat != e.Cat || *from.Ts > *e.Ts {
				t.Errorf("an arrow has no beginning: %+v", e)
			}
			delete(begun, e.ID)
		}
	}
	for _, e := range begun {
		t.Errorf("an arrow has no end: %+v", e)
	}
	for _, e := range all.TraceEvents {
		if (e.Ph == "s" || e.Ph == "f") && !slices.ContainsFunc(spans, func(s entry) bool {
			return s.at() == e.at() && *s.Ts <= *e.Ts && *e.Ts <= *s.Ts+*s.Dur
		}) {
			t.Errorf("an arrow is at no span: %+v", e)
		}
	}
	byThread := map[thread][]entry{}
	for _, s := range spans {
		byThread[thread{s.Pid, s.Tid}] = append(byThread[thread{s.Pid, s.Tid}], s)
	}
	const slack = 0.0005 // of a microsecond, that float64 loses
	for _, list := range byThread {
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(*a.Ts, *b.Ts), cmp.Compare(*b.Dur, *a.Dur)) })
		var open []float64 // ends
		for _, s := range list {
			end := *s.Ts + *s.Dur
			for len(open) > 0 && open[len(open)-1] <= *s.Ts+slack {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && end > open[len(open)-1]+slack {
				t.Errorf("%s at %v of thread %d ends behind what it lies in", s.Name, *s.Ts, s.Tid)
			}
			open = append(open, end)
		}
	}
	return spans
}
