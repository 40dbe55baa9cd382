package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The chart's measures, in units of its view box.
const (
	chartWidth  = 1000.0
	plotLeft    = 360.0 // where the bars begin; the names are before
	plotRight   = 780.0 // and where the scale ends; the numbers are behind
	lineHeight  = 26.0
	rivalHeight = 20.0
	chartTop    = 96.0
)

const chartStyle = `
svg { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
.back { fill: #ffffff; } .text { fill: #1f2328; } .dim { fill: #59636e; font-size: 12px; }
.title { fill: #1f2328; font-size: 18px; font-weight: 600; }
.grid { stroke: #d1d9e0; } .target { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 5 3; }
.met { fill: #2da44e; } .missed { fill: #cf222e; } .rival { fill: #8c959f; } .spread { stroke: #1f2328; stroke-width: 1.2; }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117; } .text, .title { fill: #e6edf3; } .dim { fill: #9198a1; }
.grid { stroke: #30363d; } .target { stroke: #e6edf3; }
.met { fill: #3fb950; } .missed { fill: #f85149; } .rival { fill: #6e7681; } .spread { stroke: #e6edf3; }
}
`

// bar is one line of the chart.
type bar struct {
	name, class      string
	value, low, high float64 // as parts of the target
	text             string
	height           float64
}

// WriteChart draws how much of its target each row used, on a logarithmic scale: a bar
// that ends before the line met the target. Rows without a target are left out. The
// drawing is one SVG without anything from outside, for light and dark pages.
func WriteChart(w io.Writer, heading string, results []Result) error {
	var bars []bar
	for _, r := range results {
		if r.Verdict != Met && r.Verdict != Missed {
			continue
		}
		bars = append(bars, rowBar(r))
		for _, v := range r.Rivals {
			if v.Err == "" {
				bars = append(bars, rivalBar(r, v))
			}
		}
	}
	_, err := io.WriteString(w, draw(heading, bars))
	return err
}

func rowBar(r Result) bar {
	b := spanOf(r, r.Ratio)
	b.name, b.class, b.height = r.Row.ID+"  "+r.Row.Name, string(r.Verdict), lineHeight
	b.text = fmt.Sprintf("%s of %s: %s", amount(r.Row, r.Ratio.Median), limit(r.Row), verdict(r))
	return b
}

func rivalBar(r Result, v Rivalry) bar {
	b := spanOf(r, v.Ratio)
	b.name, b.class, b.height = v.Rival.Name, "rival", rivalHeight
	b.text = amount(r.Row, v.Ratio.Median)
	return b
}

func spanOf(r Result, s Spread) bar {
	b := bar{value: ofTarget(r.Row, s.Median), low: ofTarget(r.Row, s.Low), high: ofTarget(r.Row, s.High)}
	if b.low > b.high { // more is better there
		b.low, b.high = b.high, b.low
	}
	return b
}

// scale places parts of the target, from 2^first to 2^last of it.
type scale struct{ first, last int }

func scaleOf(bars []bar) scale {
	s := scale{-3, 1}
	for _, b := range bars {
		if b.value > 0 && !math.IsInf(b.value, 0) {
			s.first = min(s.first, int(math.Floor(math.Log2(b.value)))-1)
			s.last = max(s.last, int(math.Ceil(math.Log2(b.value))))
		}
	}
	s.first = max(s.first, -8)
	return s
}

// x is the place of a part of the target, kept on the scale.
func (s scale) x(part float64) float64 {
	at := float64(s.first)
	if part > 0 {
		at = min(max(math.Log2(part), float64(s.first)), float64(s.last))
	}
	return plotLeft + (at-float64(s.first))/float64(s.last-s.first)*(plotRight-plotLeft)
}

func draw(heading string, bars []bar) string {
	height := chartTop + 16
	for _, b := range bars {
		height += b.height
	}
	s := scaleOf(bars)
	var out strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="title">`,
		chartWidth, height, chartWidth, height)
	put(`<title id="title">How much of its performance target each piece of work uses</title>`)
	put(`<style>%s</style>`, chartStyle)
	put(`<rect class="back" width="100%%" height="100%%"/>`)
	put(`<text class="title" x="16" y="30">Share of the target used (less is better)</text>`)
	put(`<text class="dim" x="16" y="50">%s</text>`, html.EscapeString(heading))

	step := 1
	if s.last-s.first > 9 {
		step = 2
	}
	for i := s.first; i <= s.last; i++ {
		if i%step != 0 {
			continue
		}
		x := s.x(math.Exp2(float64(i)))
		class := "grid"
		if i == 0 {
			class = "target"
		}
		put(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x, chartTop-8, x, height-12)
		put(`<text class="dim" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, chartTop-14, tick(i))
	}
	y := chartTop
	for _, b := range bars {
		thick, middle := b.height*0.58, y+b.height/2
		name := "text"
		if b.class == "rival" {
			name = "dim"
		}
		put(`<text class="%s" x="%.0f" y="%.1f" text-anchor="end" xml:space="preserve">%s</text>`,
			name, plotLeft-10, middle+4, html.EscapeString(b.name))
		put(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`,
			b.class, plotLeft, middle-thick/2, max(s.x(b.value)-plotLeft, 1), thick)
		put(`<line class="spread" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, s.x(b.low), middle, s.x(b.high), middle)
		put(`<text class="%s" x="%.0f" y="%.1f">%s</text>`, name, plotRight+14, middle+4, html.EscapeString(b.text))
		y += b.height
	}
	put(`</svg>`)
	return out.String()
}

func tick(power int) string {
	switch {
	case power == 0:
		return "target"
	case power < 0:
		return fmt.Sprintf("1/%d", 1<<-power)
	default:
		return fmt.Sprintf("%dx", 1<<power)
	}
}
