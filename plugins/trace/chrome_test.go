package trace_test

import (
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
	Pid  uint32         `json:"pid"`
	Tid  uint32         `json:"tid"`
	S    string         `json:"s"`
	Args map[string]any `json:"args"`
}

// checkChrome holds a file to what viewers ask of it: JSON of the object form, known
// kinds of events with the members that each needs, every process and thread named
// before it is used, and spans of a thread that lie in one another or beside. It
// returns the spans.
func checkChrome(t enginetest.TB, file []byte) (spans []entry) {
	t.Helper()
	var all struct {
		DisplayTimeUnit string            `json:"displayTimeUnit"`
		OtherData       map[string]string `json:"otherData"`
		TraceEvents     []entry           `json:"traceEvents"`
	}
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, file)
	}
	type thread struct{ pid, tid uint32 }
	named := map[thread]bool{}
	for _, e := range all.TraceEvents {
		at := thread{e.Pid, e.Tid}
		switch {
		case e.Name == "" || e.Pid == 0 || e.Pid > 1<<31-1 || e.Tid > 1<<31-1:
			t.Errorf("an entry without a name or with a bad id: %+v", e)
		case e.Ph == "M":
			if e.Name == "thread_name" {
				named[at] = true
			}
		case e.Ts == nil || *e.Ts < 0 || !named[at]:
			t.Errorf("an entry without a time or on a thread without a name: %+v", e)
		case e.Ph == "i":
			if e.S != "t" {
				t.Errorf("an instant without a scope: %+v", e)
			}
		case e.Ph == "X":
			if e.Dur == nil || *e.Dur < 0 {
				t.Errorf("a span without a length: %+v", e)
			}
			spans = append(spans, e)
		default:
			t.Errorf("an entry of unknown kind: %+v", e)
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
