package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

func TestDOT(t *testing.T) {
	require.Equal(t, `digraph manifest {
  rankdir=LR
  node [fontname="sans-serif", fontsize=11]
  edge [fontname="sans-serif", fontsize=9]
  phase1 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="run_start"]
  phase2 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="step_start"]
  phase3 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="before_inference"]
  phase4 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="after_inference"]
  phase5 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="tool_gate"]
  phase6 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="before_tool_execute"]
  phase7 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="after_tool_execute"]
  phase8 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="step_end"]
  phase9 [shape=box, style="rounded,filled", fillcolor="#dbe7f5", label="run_end"]
  phase1 -> phase2 [weight=10]
  phase2 -> phase3 [weight=10]
  phase3 -> phase4 [weight=10]
  phase4 -> phase5 [weight=10]
  phase5 -> phase6 [weight=10]
  phase6 -> phase7 [weight=10]
  phase7 -> phase8 [weight=10]
  phase8 -> phase9 [weight=10]
  phase8 -> phase2 [label="next step", constraint=false]
  { rank=same; phase1; phase2; phase3; phase4; phase5; phase6; phase7; phase8; phase9 }
  k0 [shape=cylinder, penwidth=3, color="#c0392b", label="title"]
  k1 [shape=cylinder, penwidth=3, color="#c0392b", label="count"]
  p0h0 [shape=box, label="namer/step_end/0\ntier 1"]
  phase8 -> p0h0 [arrowhead=none]
  p0h0 -> k1 [dir=back, style=dashed, label="read by", penwidth=2, color="#c0392b"]
  p0h0 -> k0 [label="writes", penwidth=2, color="#c0392b"]
  p0h1 [shape=box, label="namer/step_end/1\ntier 0\ndeclares no writes"]
  phase8 -> p0h1 [arrowhead=none]
  p1h0 [shape=box, style=dashed, label="guard \"x\"/step_end/0\ntier 1"]
  phase8 -> p1h0 [arrowhead=none]
  p1h0 -> k0 [label="writes", penwidth=2, color="#c0392b"]
  p1h0 -> k1 [label="writes", penwidth=2, color="#c0392b"]
  p1g0 [shape=hexagon, style=dashed, label="guard \"x\"/tool_gate/0"]
  phase5 -> p1g0 [arrowhead=none]
  p1g1 [shape=hexagon, style=dashed, label="guard \"x\"/tool_gate/1\npolicy"]
  phase5 -> p1g1 [arrowhead=none]
}
`, picture.DOT(withInactive(manifestOf(t, describedPlugins()...), 1)))
}

// Where hooks could fight, key and links stand out, but not on other phases and for
// hooks that are not active.
func TestSVGShowsConflicts(t *testing.T) {
	fights := func(m engine.Manifest) (links, boxes int) {
		svg := picture.SVG(m)
		return strings.Count(svg, `class="edge fought`), strings.Count(svg, `class="box key fought`)
	}
	m := manifestOf(t, keys,
		writer("a", nil, engine.Writes(plan)), writer("b", nil, engine.Writes(plan)), writer("c", nil, engine.Writes(plan), engine.Tier(1)),
		engine.NewPlugin("d", func(r *engine.Registrar) error { r.Hook(phase.RunEnd, nothing, engine.Writes(plan)); return nil }))
	links, boxes := fights(m)
	require.Equal(t, []int{2, 1}, []int{links, boxes})
	m = manifestOf(t, keys, writer("a", nil, engine.Writes(plan)), writer("b", nil, engine.Writes(plan)), writer("e", nil, engine.Writes(plan)))
	links, boxes = fights(m.For(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"a", "b"}}))
	require.Equal(t, []int{2, 1}, []int{links, boxes})
	links, boxes = fights(m.For(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"a"}}))
	require.Equal(t, []int{0, 0}, []int{links, boxes})
}

// randomManifest is of an engine with many parts, whose names are given.
func randomManifest(rnd *rand.Rand, name func() string) engine.Manifest {
	some := func(list []string) (out []string) {
		for range min(rnd.IntN(4), len(list)) {
			if one := list[rnd.IntN(len(list))]; !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
		return out
	}
	m := engine.Manifest{Agent: name()}
	var keys []string
	for i := range rnd.IntN(30) {
		p := engine.PluginManifest{Name: name(), Active: rnd.IntN(4) > 0, Source: name(), Transforms: rnd.IntN(3), Effects: some([]string{name()})}
		for range rnd.IntN(6) {
			k := engine.KeyManifest{Name: name(), Scope: state.ScopeRun, Merge: []state.MergeStrategy{state.Exclusive, state.Commutative}[rnd.IntN(2)]}
			p.Keys, keys = append(p.Keys, k), append(keys, k.Name)
		}
		for range rnd.IntN(6) {
			h := engine.HookManifest{ID: fmt.Sprint(name(), "/", i), Phase: phase.Phase(1 + rnd.IntN(phase.Count)), Tier: rnd.IntN(3), Reads: some(keys), Writes: some(keys)}
			p.Hooks = append(p.Hooks, h)
		}
		for range rnd.IntN(3) {
			p.Gates = append(p.Gates, engine.GateManifest{ID: fmt.Sprint(name(), "/", i), Phase: phase.ToolGate, Action: name(), Policy: true, FailOpen: true})
		}
		m.Plugins = append(m.Plugins, p)
	}
	return m.For(engine.AgentSpec{ID: m.Agent})
}

// Every plugin, hook, gate and key is in each drawing, whatever there is of them; boxes
// do not overlap, and what is written in one has room in it.
func TestDrawingsAreComplete(t *testing.T) {
	for seed := range uint64(20) {
		rnd, n := rand.New(rand.NewPCG(seed, 4)), 0
		m := randomManifest(rnd, func() string { n++; return fmt.Sprintf("name-%d%s", n, strings.Repeat("x", rnd.IntN(90)*rnd.IntN(2))) })
		for kind, draw := range map[string]func(engine.Manifest) string{"mermaid": picture.Mermaid, "dot": picture.DOT, "svg": picture.SVG, "text": picture.Text} {
			drawing := draw(m)
			require.Equal(t, drawing, draw(m))
			for _, p := range m.Plugins {
				var names []string
				for _, k := range p.Keys {
					names = append(names, k.Name)
				}
				for _, h := range p.Hooks {
					names = append(names, h.ID)
				}
				for _, g := range p.Gates {
					names = append(names, g.ID)
				}
				if kind == "svg" || kind == "text" {
					names = append(names, p.Name)
				}
				for _, name := range names {
					require.Contains(t, drawing, name, kind)
				}
			}
		}
		checkBoxes(t, picture.SVG(m))
	}
}

// shape is a rectangle or a text of a drawing.
type shape struct {
	class      string
	x, y, w, h int
	text       string
}

// shapes reads the boxes of a drawing and the texts that stand at their left edge.
func shapes(t *testing.T, svg string) (boxes, texts []shape) {
	t.Helper()
	var into *string
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return boxes, texts
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			s := shape{}
			for _, a := range token.Attr {
				if a.Name.Local == "class" {
					s.class = a.Value
				} else if to, is := map[string]*int{"x": &s.x, "y": &s.y, "width": &s.w, "height": &s.h}[a.Name.Local]; is {
					_, err := fmt.Sscan(a.Value, to)
					require.NoError(t, err)
				}
			}
			switch {
			case token.Name.Local == "rect" && strings.HasPrefix(s.class, "box "):
				boxes = append(boxes, s)
			case token.Name.Local == "text":
				texts = append(texts, s)
				into = &texts[len(texts)-1].text
			}
		case xml.CharData:
			if into != nil {
				*into += string(token)
			}
		case xml.EndElement:
			into = nil
		}
	}
}

func checkBoxes(t *testing.T, svg string) {
	t.Helper()
	boxes, texts := shapes(t, svg)
	require.GreaterOrEqual(t, len(boxes), phase.Count)
	var width, height int
	_, err := fmt.Sscanf(regexp.MustCompile(`viewBox="[^"]*"`).FindString(svg), `viewBox="0 0 %d %d"`, &width, &height)
	require.NoError(t, err)
	for i, a := range boxes {
		require.True(t, a.x >= 0 && a.y >= 0 && a.x+a.w <= width && a.y+a.h <= height, "%v is outside", a)
		for _, b := range boxes[:i] {
			if apart := a.x+a.w <= b.x || b.x+b.w <= a.x || a.y+a.h <= b.y || b.y+b.h <= a.y; !apart {
				t.Fatalf("%v is on %v", a, b)
			}
		}
	}
	for _, text := range texts {
		for _, b := range boxes {
			inside := text.x >= b.x && text.x < b.x+b.w && text.y > b.y && text.y < b.y+b.h
			if inside && strings.HasPrefix(text.class, "name") && text.x-b.x+columns(text.text)*73/10 > b.w-10 {
				t.Fatalf("%q is too long for %v", text.text, b)
			}
		}
	}
}

// columns is how wide a text is in a font of one width, where ideographs take two.
func columns(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

// Names may hold anything: text stays in its lines, strings of Graphviz end where they
// should, and SVG is well-formed XML with nothing in it that a name made.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"plain", `a"];<i>#quot;` + "`%%\\", "</text><script>alert(1)</script>", "&amp;&#0;&#x1;", "\x00\x1b[2J\u202e\ufffe\xff", `\N\G\"`, "]]>", "%s%d%!",
		"a\r\nb\u2028c", "日本語のとても長い名前がここにあります日本語のとても長い名前がここにあります", `" onload="x`, strings.Repeat("w", 300), "",
	} {
		f.Add(name, uint64(3))
	}
	f.Fuzz(func(t *testing.T, name string, seed uint64) {
		m := randomManifest(rand.New(rand.NewPCG(seed, 5)), func() string { return "n" + name })
		plain := randomManifest(rand.New(rand.NewPCG(seed, 5)), func() string { return "plain" })

		for _, text := range []string{picture.Text(m), picture.Conflicts(m, nil), picture.Mermaid(m), picture.DOT(m), picture.SVG(m)} {
			require.True(t, utf8.ValidString(text))
			require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }))
		}
		require.Equal(t, strings.Count(picture.Text(plain), "\n"), strings.Count(picture.Text(m), "\n"))
		require.Equal(t, strings.Count(picture.Mermaid(plain), "\n"), strings.Count(picture.Mermaid(m), "\n"))

		// Less its strings, the graph is that of harmless names.
		label := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
		require.Equal(t, label.ReplaceAllString(picture.DOT(plain), "S"), label.ReplaceAllString(picture.DOT(m), "S"))

		require.Equal(t, elements(t, picture.SVG(plain)), elements(t, picture.SVG(m)))
		checkBoxes(t, picture.SVG(m))
	})
}

// elements are the elements of a drawing with their attributes.
func elements(t *testing.T, svg string) (all []string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			all = append(all, fmt.Sprint(token))
		case xml.CharData, xml.EndElement:
		default:
			t.Fatalf("%T", token)
		}
	}
}
