package report

import (
	"encoding/json"
	"io"
	"runtime"
)

// WriteJSON writes all numbers, for other programs.
func WriteJSON(w io.Writer, o Options, results []Result) error {
	o = o.withDefaults()
	type rivalLine struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Note string `json:"note,omitempty"`
		Rivalry
	}
	type line struct {
		ID       string      `json:"id"`
		Case     string      `json:"case"`
		Name     string      `json:"name"`
		Baseline string      `json:"baseline"`
		Target   string      `json:"target"`
		Limit    float64     `json:"limit,omitempty"`
		Rivals   []rivalLine `json:"rivals,omitempty"` // in place of the result's
		Result
	}
	all := struct {
		Go         string `json:"go"`
		System     string `json:"system"`
		Gomaxprocs int    `json:"gomaxprocs"`
		Rounds     int    `json:"rounds"`
		SliceNanos int64  `json:"slice_ns"`
		Rows       []line `json:"rows"`
	}{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.GOMAXPROCS(0), o.Rounds, o.Slice.Nanoseconds(), []line{}}
	for _, r := range results {
		l := line{ID: r.Row.ID, Case: r.Row.Case, Name: r.Row.Name, Baseline: r.Row.Baseline,
			Target: target(r.Row), Limit: r.Row.Limit, Result: r}
		for _, v := range r.Rivals {
			l.Rivals = append(l.Rivals, rivalLine{v.Rival.ID, v.Rival.Name, v.Rival.Note, v})
		}
		all.Rows = append(all.Rows, l)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(all)
}
