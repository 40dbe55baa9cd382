package report

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ddd26017/fixpoint/bench"
)

// Heading tells what the numbers were measured with, without which they say little.
func Heading(o Options) string {
	o = o.withDefaults()
	return fmt.Sprintf("%s %s/%s, GOMAXPROCS %d; %d pairs of slices of %s for each row",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), o.Rounds, o.Slice)
}

// WriteTable writes one line for each result and, below it, one for each of its rivals,
// and says at the end how many targets were met.
func WriteTable(w io.Writer, heading string, results []Result) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", heading); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "id\twork\tagainst\tratio\tquartiles\ttarget\tverdict\tallocs\tbytes")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Row.ID, r.Row.Name, r.Row.Baseline, amount(r.Row, r.Ratio.Median), span(r.Row, r.Ratio), target(r.Row), verdict(r),
			decimal(r.Work.Allocs), decimal(r.Work.Bytes))
		for _, v := range r.Rivals {
			if v.Err != "" {
				fmt.Fprintf(t, "\t  %s\t\tfailed\t\t\t\t\t\n", v.Rival.Name)
				continue
			}
			fmt.Fprintf(t, "\t  %s\t\t%s\t%s\t\t\t%s\t%s\n",
				v.Rival.Name, amount(r.Row, v.Ratio.Median), span(r.Row, v.Ratio), decimal(v.Side.Allocs), decimal(v.Side.Bytes))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, notes(results)+summary(results))
	return err
}

// WriteSides writes what single sides took, for those who look at one alone.
func WriteSides(w io.Writer, rows []bench.Row, sides []Side) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "id\twork\tns/op\tallocs\tbytes\tkept bytes")
	for i, s := range sides {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			rows[i].ID, rows[i].Name, decimal(s.Nanos), decimal(s.Allocs), decimal(s.Bytes), decimal(s.Kept))
	}
	return t.Flush()
}

// notes says what the rivals do instead, and how those failed that did, each once.
func notes(results []Result) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, r := range results {
		for _, v := range r.Rivals {
			note := v.Rival.Note
			if v.Err != "" {
				note = "failed: " + v.Err
			}
			line := fmt.Sprintf("%s, %s: %s\n", r.Row.ID, v.Rival.Name, note)
			if note != "" && !seen[line] {
				seen[line] = true
				b.WriteString(line)
			}
		}
	}
	if b.Len() > 0 {
		return "\n" + b.String()
	}
	return ""
}

func summary(results []Result) string {
	met, missed := 0, 0
	for _, r := range results {
		switch r.Verdict {
		case Met:
			met++
		case Missed:
			missed++
		case Stated:
		}
	}
	return fmt.Sprintf("\n%d of %d targets met\n", met, met+missed)
}

// verdict names what of a target with two parts was missed, if its ratio was not.
func verdict(r Result) string {
	switch over := ofTarget(r.Row, r.Ratio.Median) > 1; {
	case r.Verdict != Missed || over:
		return string(r.Verdict)
	case r.Row.NoThread && r.Work.Goroutines > 0:
		return string(Missed) + " (goroutines)"
	default:
		return string(Missed) + " (allocates)"
	}
}

// target is the row's target in short.
func target(row bench.Row) string {
	if row.Limit == 0 {
		return "none"
	}
	parts := []string{"<= " + limit(row)}
	if row.Measure == bench.Throughput {
		parts[0] = ">= " + limit(row)
	}
	if row.NoAllocs {
		parts = append(parts, "0 allocs")
	}
	if row.NoThread {
		parts = append(parts, "0 goroutines")
	}
	return strings.Join(parts, ", ")
}

// limit is the number of the target with its unit.
func limit(row bench.Row) string {
	number := strconv.FormatFloat(row.Limit, 'f', -1, 64)
	if row.Measure == bench.Kept {
		return "+" + number + " B"
	}
	return number + "x"
}

// amount is a ratio, or a number of bytes above the baseline.
func amount(row bench.Row, v float64) string {
	if row.Measure == bench.Kept {
		return fmt.Sprintf("%+.0f B", v)
	}
	return fmt.Sprintf("%.2fx", v)
}

func span(row bench.Row, s Spread) string {
	if row.Measure == bench.Kept {
		return fmt.Sprintf("%.0f-%.0f", s.Low, s.High)
	}
	return fmt.Sprintf("%.2f-%.2f", s.Low, s.High)
}

// decimal leaves out the decimals that say nothing.
func decimal(v float64) string {
	if v < 10 && math.Abs(v-math.Round(v)) >= fewAllocs {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
