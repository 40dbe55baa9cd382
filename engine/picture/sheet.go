package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Measures of a drawing, in pixels.
const (
	sheetWidth = 1120
	margin     = 24
	padding    = 10
	rowsAt     = 108
	rowPadding = 10
	loopX      = margin + 20
	phaseX     = margin + 36
	phaseWidth = 164
	itemX      = 268
	itemWidth  = 356
	itemHeight = 38
	itemGap    = 8
	tierGap    = 10 // more between tiers
	keyX       = 812
	keyWidth   = 272
	keyHeight  = 26
	keyGap     = 8
	cardWidth  = 346
	cardGap    = 17
	cardHead   = 46
	cardLine   = 17
	cardNote   = 104 // room for what a key is
)

// sheet is a drawing with everything in its place.
type sheet struct {
	rows    []*row
	cards   []card
	cardsAt int
	height  int
	summary string
}

type point struct{ x, y int }

type box struct{ x, y, w, h, round int }

// row is a phase.
type row struct {
	phase     phase.Phase
	y, height int
	items     []*item
	keys      []*keyBox // of the hooks among the items
	edges     []edge
}

// item is a hook or a gate.
type item struct {
	box
	class, name, facts, title string
	tier                      int
	reads, writes             []string
	active                    bool
}

// keyBox is a key; it is drawn on each phase where a hook declares it.
type keyBox struct {
	box
	class, name, title string
	from, links        int // sum of the places of the hooks, and how many
}

// edge links a hook and a key.
type edge struct {
	hook         *item
	key          *keyBox
	read, fought bool
}

// card is a plugin.
type card struct {
	box
	name, facts string
	inactive    bool
	keys        []cardKey
}

type cardKey struct {
	name, facts string
	fought      bool
}

func newSheet(m engine.Manifest) *sheet {
	s := &sheet{}
	for p := range phase.All() {
		s.rows = append(s.rows, &row{phase: p})
	}
	hooks, gates := s.addItems(m)
	type place struct {
		phase phase.Phase
		tier  int
		key   string
	}
	contested := map[place]bool{}
	for _, c := range m.Conflicts {
		contested[place{c.Phase, c.Tier, c.Key}] = true
	}
	merges := mergeStrategies(m)
	y := rowsAt
	for _, r := range s.rows {
		r.y = y
		r.place()
		r.link(merges, func(tier int, key string) bool { return contested[place{r.phase, tier, key}] })
		y += r.height
	}
	s.cardsAt = y + 40
	s.addCards(m)
	s.summary = strings.Join([]string{
		count(len(m.Plugins), "plugin"), count(hooks, "hook"), count(gates, "gate"),
		count(len(fought(m)), "key") + " that hooks could fight over", count(len(m.Undeclared), "active hook") + " without declared writes",
	}, ", ") + "."
	return s
}

// addItems adds hooks and gates to the rows of their phases.
func (s *sheet) addItems(m engine.Manifest) (hooks, gates int) {
	for _, p := range m.Plugins {
		off := when(!p.Active, " inactive")
		for _, h := range p.Hooks {
			hooks++
			unknown := len(h.Writes) == 0 && !h.Silent
			facts := join(fmt.Sprintf("tier %d", h.Tier), list("timeout ", h.Timeout), when(h.OnError == engine.Skip, "on error skip"),
				when(unknown, "declares no writes"), when(h.Silent, "writes nothing"))
			s.add(h.Phase, &item{class: "hook" + when(unknown, " unknown") + off, name: h.ID, facts: facts, tier: h.Tier,
				title: join("hook "+h.ID, facts), reads: h.Reads, writes: h.Writes, active: p.Active, box: box{round: 4}})
		}
		for _, g := range p.Gates {
			gates++
			facts := join("gate", list("on action ", g.Action), when(g.Policy, "policy"), list("timeout ", g.Timeout), when(g.FailOpen, "fails open"))
			s.add(g.Phase, &item{class: "gate" + off, name: g.ID, facts: facts, tier: gatesLast, title: join(g.ID, facts), box: box{round: itemHeight / 2}})
		}
	}
	return hooks, gates
}

// gatesLast puts gates behind the hooks of their phase.
const gatesLast = int(^uint(0) >> 1)

func (s *sheet) add(p phase.Phase, it *item) {
	for _, r := range s.rows {
		if r.phase == p {
			r.items = append(r.items, it)
		}
	}
}

// place puts hooks and gates below each other, by tier.
func (r *row) place() {
	slices.SortStableFunc(r.items, func(a, b *item) int { return cmp.Compare(a.tier, b.tier) })
	y := r.y + rowPadding
	for i, it := range r.items {
		if i > 0 && it.tier != r.items[i-1].tier {
			y += tierGap
		}
		it.x, it.y, it.w, it.h = itemX, y, itemWidth, itemHeight
		y += itemHeight + itemGap
	}
	r.height = max(y-itemGap-r.y, 32+rowPadding) + rowPadding
}

// link places the keys that the hooks declare as near to them as there is room.
func (r *row) link(merges map[string]state.MergeStrategy, contested func(tier int, key string) bool) {
	found := map[string]*keyBox{}
	link := func(it *item, key string, read bool) {
		k := found[key]
		if k == nil {
			k = &keyBox{name: key, title: "key " + key, class: "key", box: box{round: 3}}
			if merges[key] == state.Commutative {
				k.class, k.round = "key merges", keyHeight/2
			}
			if merge, known := merges[key]; known {
				k.title = merge.String() + " key " + key
			}
			found[key] = k
			r.keys = append(r.keys, k)
		}
		e := edge{it, k, read, it.active && contested(it.tier, key)}
		if e.fought && !strings.HasSuffix(k.class, " fought") {
			k.class += " fought"
		}
		k.from, k.links = k.from+it.y+it.h/2, k.links+1
		r.edges = append(r.edges, e)
	}
	for _, it := range r.items {
		for _, key := range it.writes {
			link(it, key, false)
		}
		for _, key := range it.reads {
			link(it, key, true)
		}
	}
	slices.SortStableFunc(r.keys, func(a, b *keyBox) int { return cmp.Compare(a.from*b.links, b.from*a.links) })
	y := r.y + rowPadding
	for i, k := range r.keys {
		wanted := k.from/k.links - keyHeight/2
		last := r.y + r.height - rowPadding - (len(r.keys)-i)*(keyHeight+keyGap) + keyGap // or those below have no room
		k.x, k.w, k.h = keyX, keyWidth, keyHeight
		k.y = max(y, min(wanted, last))
		y = k.y + keyHeight + keyGap
	}
	if len(r.keys) > 0 {
		r.height = max(r.height, y-keyGap+rowPadding-r.y)
	}
	slices.SortStableFunc(r.edges, func(a, b edge) int { return cmp.Compare(order(a.fought), order(b.fought)) }) // what stands out on top
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

func (r *row) middle() int { return r.y + r.height/2 }

func (r *row) pill() box { return box{phaseX, r.y + rowPadding, phaseWidth, 32, 16} }

// addCards puts a card for each plugin into the shortest of the columns.
func (s *sheet) addCards(m engine.Manifest) {
	bottoms := [3]int{s.cardsAt, s.cardsAt, s.cardsAt}
	hot := fought(m)
	for _, p := range m.Plugins {
		c := card{name: p.Name, inactive: !p.Active}
		facts := []string{when(!p.Active, "inactive")}
		for _, part := range []struct {
			n    int
			word string
		}{
			{len(p.Hooks), "hook"}, {len(p.Gates), "gate"}, {len(p.Tools), "tool"}, {len(p.Actions), "action"}, {len(p.Effects), "effect"},
			{p.Transforms, "transform"}, {len(p.Extras), "extra"},
		} {
			facts = append(facts, when(part.n > 0, count(part.n, part.word)))
		}
		c.facts = cmp.Or(join(facts...), "keys only")
		for _, k := range p.Keys {
			c.keys = append(c.keys, cardKey{k.Name, k.Scope.String() + ", " + k.Merge.String(), hot[k.Name]})
		}
		for _, name := range p.ProfileKeys {
			c.keys = append(c.keys, cardKey{name: name, facts: "profile"})
		}
		column := 0
		for i, y := range bottoms {
			if y < bottoms[column] {
				column = i
			}
		}
		c.box = box{margin + column*(cardWidth+cardGap), bottoms[column], cardWidth, cardHead + len(c.keys)*cardLine + min(len(c.keys), 1)*4, 6}
		bottoms[column] += c.h + cardGap
		s.cards = append(s.cards, c)
	}
	s.height = slices.Max(bottoms[:]) + margin - cardGap
}

// join puts a dot between the facts that are not empty.
func join(facts ...string) string {
	return strings.Join(slices.DeleteFunc(facts, func(f string) bool { return f == "" }), " · ")
}
