package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/bench/report"
)

// madeUp are results of every kind.
func madeUp() []report.Result {
	time := bench.Row{ID: "T1", Case: "hooks=64", Name: "gather <64>", Baseline: "errgroup", Limit: 0.7, NoAllocs: true}
	much := bench.Row{ID: "T2", Case: "runs=9", Name: "many runs", Baseline: "one by one", Measure: bench.Throughput, Limit: 1.7}
	kept := bench.Row{ID: "T3", Case: "keys=16", Name: "waiting", Baseline: "slice", Measure: bench.Kept, Limit: 2048, NoThread: true}
	free := bench.Row{ID: "T4", Case: "state=active", Name: "active", Baseline: "nothing", Measure: bench.Kept}
	ratio := func(median float64) report.Spread {
		return report.Spread{Median: median, Low: median * 0.9, High: median * 1.1, Values: []float64{median}}
	}
	return []report.Result{
		{
			Row: time, Work: report.Side{Nanos: 350, Allocs: 0.25, Bytes: 1234}, Base: &report.Side{Nanos: 1000, Allocs: 65},
			Ratio: ratio(0.35), Verdict: report.Missed,
			Rivals: []report.Rivalry{
				{Rival: bench.Rival{ID: "eino", Name: "Eino & co", Note: "loses writes"}, Side: report.Side{Allocs: 2150}, Ratio: ratio(24.3)},
				{Rival: bench.Rival{ID: "none", Name: "Unable"}, Err: "duplicated key"},
			},
		},
		{Row: much, Base: &report.Side{}, Ratio: ratio(1.87), Verdict: report.Met},
		{Row: kept, Work: report.Side{Kept: 7000}, Base: &report.Side{Kept: 400}, Ratio: ratio(6600), Verdict: report.Missed},
		{Row: free, Work: report.Side{Kept: 30000}, Ratio: ratio(30000), Verdict: report.Stated},
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report.WriteTable(&out, "go1.99, 2 cores", madeUp()))
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	require.Equal(t, strings.Split(strings.TrimLeft(`
go1.99, 2 cores

id  work         against     ratio     quartiles    target                    verdict             allocs  bytes
T1  gather <64>  errgroup    0.35x     0.32-0.39    <= 0.7x, 0 allocs         missed (allocates)  0.25    1234
      Eino & co              24.30x    21.87-26.73                                                2150    0
      Unable                 failed
T2  many runs    one by one  1.87x     1.68-2.06    >= 1.7x                   met                 0       0
T3  waiting      slice       +6600 B   5940-7260    <= +2048 B, 0 goroutines  missed              0       0
T4  active       nothing     +30000 B  27000-33000  none                      stated              0       0

T1, Eino & co: loses writes
T1, Unable: failed: duplicated key

1 of 3 targets met`, "\n"), "\n"), lines)
}

// The chart is one well-formed SVG that needs nothing from outside. Bars are as long as
// the share of the target, on a logarithmic scale, so those that miss end behind its line.
func TestChart(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report.WriteChart(&out, "go1.99 <2 cores>", madeUp()))
	svg := out.String()
	require.Contains(t, svg, "prefers-color-scheme: dark")
	require.NotContains(t, strings.ReplaceAll(svg, "http://www.w3.org/2000/svg", ""), "http")

	type element struct {
		Class string  `xml:"class,attr"`
		X     float64 `xml:"x,attr"`
		X1    float64 `xml:"x1,attr"`
		Width float64 `xml:"width,attr"`
		Text  string  `xml:",chardata"`
	}
	var texts []string
	var bars []element
	target := math.NaN()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local == "svg" {
			continue
		}
		if start.Name.Local == "rect" && start.Attr[0].Value == "back" {
			continue // as wide as everything: 100%
		}
		var e element
		require.NoError(t, d.DecodeElement(&e, &start))
		switch {
		case start.Name.Local == "text":
			texts = append(texts, e.Text)
		case start.Name.Local == "rect":
			bars = append(bars, e)
		case start.Name.Local == "line" && e.Class == "target":
			target = e.X1
		}
	}
	require.Subset(t, texts, []string{"go1.99 <2 cores>", "T1  gather <64>", "0.35x of 0.7x: missed (allocates)",
		"Eino & co", "24.30x", "T2  many runs", "1.87x of 1.7x: met", "+6600 B of +2048 B: missed"})
	require.NotContains(t, strings.Join(texts, "\n"), "T4", "a number without a target has no share of it")
	require.NotContains(t, strings.Join(texts, "\n"), "Unable")

	require.Len(t, bars, 4)
	end := func(i int) float64 { return bars[i].X + bars[i].Width }
	octave := target - end(0) // T1 used half of its target
	require.Positive(t, octave)
	for i, share := range []float64{0.35 / 0.7, 24.3 / 0.7, 1.7 / 1.87, 6600.0 / 2048} {
		require.InDelta(t, math.Log2(share)*octave, end(i)-target, 0.5, "bar %d", i)
	}
	for i, class := range []string{"missed", "rival", "met", "missed"} {
		require.Equal(t, class, bars[i].Class)
	}
}

func TestJSON(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report.WriteJSON(&out, report.Options{Rounds: 3}, madeUp()))
	var got struct {
		Go     string
		Rounds int
		Rows   []struct {
			ID, Case, Target, Verdict string
			Ratio                     report.Spread
			Work                      report.Side
			Base                      *report.Side
			Rivals                    []struct {
				ID, Name, Note, Error string
				Ratio                 report.Spread
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	require.Equal(t, 3, got.Rounds)
	require.NotEmpty(t, got.Go)
	require.Len(t, got.Rows, 4)
	first := got.Rows[0]
	require.Equal(t, "T1", first.ID)
	require.Equal(t, "hooks=64", first.Case)
	require.Equal(t, "missed", first.Verdict)
	require.InDelta(t, 0.35, first.Ratio.Median, 1e-9)
	require.InDelta(t, 350, first.Work.Nanos, 1e-9)
	require.InDelta(t, 1000, first.Base.Nanos, 1e-9)
	require.Len(t, first.Rivals, 2)
	require.Equal(t, "loses writes", first.Rivals[0].Note)
	require.InDelta(t, 24.3, first.Rivals[0].Ratio.Median, 1e-9)
	require.Equal(t, "duplicated key", first.Rivals[1].Error)
	require.Nil(t, got.Rows[3].Base)
}
