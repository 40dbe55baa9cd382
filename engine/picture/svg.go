package picture

import (
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// SVG returns the manifest as a drawing that needs nothing else: the phases from top to
// bottom, on each the hooks by tier and the gates in registration order, at the side the
// keys that the hooks declare, and below all plugins with their keys. Keys that hooks
// could fight over, the links to them, hooks that declare nothing and parts of inactive
// plugins stand out. Names that are too long for their box are cut; all of a name is in
// the title that browsers show beside the pointer. The colours follow the reader's choice
// of light or dark.
func SVG(m engine.Manifest) string {
	s := newSheet(m)
	c := canvas{}
	c.line(`<svg xmlns="http://www.w3.org/2000/svg" class="fixpoint-picture" role="img" aria-labelledby="picture-title picture-desc" width="%d" height="%d" viewBox="0 0 %d %d">`,
		sheetWidth, s.height, sheetWidth, s.height)
	title := "What the plugins register" + list(" for agent ", m.Agent)
	c.element("title", ` id="picture-title"`, title)
	c.element("desc", ` id="picture-desc"`, s.summary)
	c.line("<style>%s</style>", style)
	c.line(`<defs>`)
	for _, kind := range []string{"plain", "fought"} {
		c.line(`<marker id="picture-tip-%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="tip %s" d="M0 0L8 4L0 8z"/></marker>`, kind, kind)
	}
	c.line(`</defs>`)
	c.line(`<rect class="page" width="%d" height="%d"/>`, sheetWidth, s.height)
	c.text(margin, 34, "heading", title, sheetWidth-2*margin)
	c.text(margin, 54, "note", s.summary, sheetWidth-2*margin)
	c.legend(margin, 74)
	for i, r := range s.rows {
		c.row(r, i%2 == 1)
	}
	c.lifecycle(s.rows)
	c.text(margin, s.cardsAt-14, "heading", "Plugins", 400)
	for _, card := range s.cards {
		c.card(card)
	}
	c.line("</svg>")
	return c.out.String()
}

// canvas writes the elements of a drawing.
type canvas struct{ out strings.Builder }

func (c *canvas) row(r *row, odd bool) {
	c.line(`<rect class="band%s" x="%d" y="%d" width="%d" height="%d"/>`, when(odd, " odd"), margin, r.y, sheetWidth-2*margin, r.height)
	if len(r.items) == 0 {
		c.text(itemX, r.middle()+4, "note", "no hooks, no gates", itemWidth)
	}
	for _, e := range r.edges { // below the boxes
		c.edge(e)
	}
	for _, it := range r.items {
		c.box(it.box, it.class, it.name, it.facts, it.title)
	}
	for _, k := range r.keys {
		c.box(k.box, k.class, k.name, "", k.title)
	}
}

// lifecycle draws the phases and how they follow each other.
func (c *canvas) lifecycle(rows []*row) {
	for i, r := range rows {
		c.box(r.pill(), "phase", r.phase.String(), "", r.phase.String())
		if i > 0 {
			above := rows[i-1].pill()
			c.line(`<path class="edge plain" d="M%d %dV%d" marker-end="url(#picture-tip-plain)"/>`,
				above.x+above.w/2, above.y+above.h, r.pill().y-1)
		}
	}
	from, to := rows[phase.StepEnd-phase.RunStart].pill(), rows[phase.StepStart-phase.RunStart].pill()
	c.line(`<path class="edge plain" d="M%d %dH%dV%dH%d" marker-end="url(#picture-tip-plain)"/>`,
		from.x, from.y+from.h/2, loopX, to.y+to.h/2, to.x-1)
	c.line(`<text class="note" transform="translate(%d %d) rotate(-90)">next step</text>`, loopX-5, (from.y+to.y)/2)
}

// edge draws a link from a hook to a key, or back if the key is read.
func (c *canvas) edge(e edge) {
	class := "plain"
	if e.fought {
		class = "fought"
	}
	from, to := point{e.hook.x + e.hook.w, e.hook.y + e.hook.h/2 - 5}, point{e.key.x - 1, e.key.y + e.key.h/2 - 3}
	if e.read {
		from, to = point{e.key.x, e.key.y + e.key.h/2 + 3}, point{e.hook.x + e.hook.w + 1, e.hook.y + e.hook.h/2 + 5}
	}
	half := (to.x - from.x) / 2
	c.line(`<path class="edge %s%s" d="M%d %dC%d %d %d %d %d %d" marker-end="url(#picture-tip-%s)"/>`, class, when(e.read, " read"),
		from.x, from.y, from.x+half, from.y, to.x-half, to.y, to.x, to.y, class)
}

func (c *canvas) card(card card) {
	b := card.box
	c.line("<g>")
	c.element("title", "", card.name)
	c.line(`<rect class="box card%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, when(card.inactive, " inactive"), b.x, b.y, b.w, b.h)
	c.text(b.x+padding, b.y+21, "name strong", card.name, b.w-2*padding)
	c.text(b.x+padding, b.y+37, "note", card.facts, b.w-2*padding)
	c.line("</g>")
	for i, k := range card.keys {
		y := b.y + cardHead + i*cardLine + 13
		c.line("<g>")
		c.element("title", "", k.name)
		c.text(b.x+padding, y, "name"+when(k.fought, " fought"), k.name, b.w-2*padding-cardNote)
		c.line(`<text class="note end" x="%d" y="%d">%s</text>`, b.x+b.w-padding, y, k.facts)
		c.line("</g>")
	}
}

// box draws a box with a name and facts below it.
func (c *canvas) box(b box, class, name, facts, title string) {
	c.line("<g>")
	c.element("title", "", title)
	c.line(`<rect class="box %s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, b.x, b.y, b.w, b.h, b.round)
	y := b.y + b.h/2 + 4
	if facts != "" {
		y -= 8
		c.text(b.x+padding, y+15, "note", facts, b.w-2*padding)
	}
	c.text(b.x+padding, y, "name", name, b.w-2*padding)
	c.line("</g>")
}

// legend explains the shapes.
func (c *canvas) legend(x, y int) {
	for _, sample := range []struct {
		class, text string
		round       int
	}{
		{"hook", "hook", 4}, {"hook unknown", "hook that declares no writes", 4}, {"gate", "gate", 9}, {"key", "exclusive key", 2},
		{"key merges", "key that merges", 9}, {"key fought", "hooks could fight over it", 2}, {"hook inactive", "inactive", 4},
	} {
		c.line(`<rect class="%s" x="%d" y="%d" width="26" height="18" rx="%d"/>`, sample.class, x, y, sample.round)
		c.text(x+32, y+13, "note", sample.text, 200)
		x += 32 + 6*len(sample.text) + 14
	}
	for _, sample := range []string{"writes", "reads"} {
		c.line(`<path class="edge plain%s" d="M%d %dh26" marker-end="url(#picture-tip-plain)"/>`, when(sample == "reads", " read"), x, y+9)
		c.text(x+32, y+13, "note", sample, 100)
		x += 32 + 6*len(sample) + 14
	}
}

// text writes as much as fits into the width.
func (c *canvas) text(x, y int, class, text string, width int) {
	each := noteRune
	if strings.HasPrefix(class, "name") {
		each = nameRune
	}
	c.element("text", fmt.Sprintf(` class="%s" x="%d" y="%d"`, class, x, y), cut(oneLine(text), int(float64(width)/each)))
}

func (c *canvas) element(name, attributes, text string) {
	c.line("<%s%s>%s</%s>", name, attributes, svgEscapes.Replace(oneLine(text)), name)
}

func (c *canvas) line(format string, args ...any) { fmt.Fprintf(&c.out, format+"\n", args...) }

// svgEscapes write a name so that it is text in XML and in HTML.
var svgEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// How wide a rune is: names are in a font of one width for all.
const (
	nameRune = 7.3
	noteRune = 6.2
)

// cut shortens a line to the room for so many narrow runes.
func cut(line string, room int) string {
	used, fits := 0, 0 // bytes that fit with a dot behind them
	for i, r := range line {
		if used++; r >= 0x1100 { // of Hangul, ideographs and others that are wide
			used++
		}
		if used > room {
			return line[:fits] + "…"
		}
		if used < room {
			fits = i + len(string(r))
		}
	}
	return line
}

// style has the colours once for light and once for dark; a reader that knows no media
// queries shows the light ones.
const style = `
.fixpoint-picture text{font-family:system-ui,"Segoe UI","DejaVu Sans",sans-serif;fill:#1b2733}
.fixpoint-picture .name{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px}
.fixpoint-picture .strong{font-weight:bold}
.fixpoint-picture .heading{font-size:17px;font-weight:600}
.fixpoint-picture .note{font-size:10.5px;fill:#51606f}
.fixpoint-picture .end{text-anchor:end}
.fixpoint-picture .name.fought{fill:#a61b1b;font-weight:bold}
.fixpoint-picture .page{fill:#fff}
.fixpoint-picture .band{fill:#f5f7fa}
.fixpoint-picture .band.odd{fill:#ebeff4}
.fixpoint-picture .phase{fill:#274b74;stroke:#274b74}
.fixpoint-picture .phase+.name{fill:#fff;font-weight:bold}
.fixpoint-picture .hook{fill:#fff;stroke:#4d7fb3;stroke-width:1.2}
.fixpoint-picture .gate{fill:#efe8fa;stroke:#7a54b8;stroke-width:1.2}
.fixpoint-picture .unknown{fill:#fff3d1;stroke:#a86a00;stroke-width:2}
.fixpoint-picture .key{fill:#e3f2e6;stroke:#3c8350;stroke-width:1.2}
.fixpoint-picture .key.fought{fill:#fde3e1;stroke:#c62828;stroke-width:2.5}
.fixpoint-picture .card{fill:#fff;stroke:#b5c0cc}
.fixpoint-picture .inactive{stroke-dasharray:5 4;fill-opacity:.45}
.fixpoint-picture .edge{fill:none;stroke-width:1.3}
.fixpoint-picture .edge.plain{stroke:#6f8296}
.fixpoint-picture .edge.fought{stroke:#c62828;stroke-width:2.5}
.fixpoint-picture .edge.read{stroke-dasharray:5 3}
.fixpoint-picture .tip.plain{fill:#6f8296}
.fixpoint-picture .tip.fought{fill:#c62828}
@media (prefers-color-scheme:dark){
.fixpoint-picture text{fill:#e4eaf0}
.fixpoint-picture .note{fill:#a6b3c0}
.fixpoint-picture .name.fought{fill:#ff9d96}
.fixpoint-picture .page{fill:#12181f}
.fixpoint-picture .band{fill:#19212a}
.fixpoint-picture .band.odd{fill:#1f2933}
.fixpoint-picture .phase{fill:#33608f;stroke:#33608f}
.fixpoint-picture .hook{fill:#141d27;stroke:#6ea3da}
.fixpoint-picture .gate{fill:#2b2140;stroke:#b091e6}
.fixpoint-picture .unknown{fill:#3c2f0c;stroke:#e0a83a}
.fixpoint-picture .key{fill:#15301d;stroke:#6cbd84}
.fixpoint-picture .key.fought{fill:#451a1a;stroke:#ff6f66}
.fixpoint-picture .card{fill:#141d27;stroke:#445464}
.fixpoint-picture .edge.plain{stroke:#8699ad}
.fixpoint-picture .edge.fought{stroke:#ff6f66}
.fixpoint-picture .tip.plain{fill:#8699ad}
.fixpoint-picture .tip.fought{fill:#ff6f66}
}
`
