package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
)

// The reference is a second, serial telling of the design's rules for one phase:
// tiers, greedy partition, ordered keys, serial retries, rounds, effects. It shares
// with the engine under test nothing but the made-up programs below.

// gaBytes makes choices of a text, all zero once it is used up.
type gaBytes struct{ left []byte }

func (g *gaBytes) next(n int) int {
	if len(g.left) == 0 {
		return 0
	}
	v := int(g.left[0])
	g.left = g.left[1:]
	return v % n
}

func (g *gaBytes) odds(percent int) bool { return g.next(100) >= 100-percent }

const (
	refCells   = 3
	refEntries = 4
	refBodies  = 6
)

// refKey is a key of the programs: a cell, or one of the constants.
type refKey int

const (
	refCounter refKey = refCells + iota
	refLog
	refTable
	refSet
	refKeys
)

func (k refKey) ordered() bool { return k == refLog }

// refOp is one update. Its value depends on what its author read.
type refOp struct {
	key   refKey
	entry int // of the table or the set
	verb  string
	value int
}

// touch tells what the op touches: a whole key (entry -1) or an entry, and how.
func (o refOp) touch() (entry int, alone bool) {
	switch {
	case o.verb == "reset":
		return -1, true
	case o.key == refTable:
		return o.entry, true
	case o.key == refSet:
		return o.entry, o.verb == "remove"
	case o.key == refLog:
		return -1, o.verb == "replace"
	case o.key == refCounter:
		return -1, false
	default:
		return -1, true
	}
}

// refReader is what an author can see.
type refReader interface {
	cell(i int) int
	counter() int
	logLen() int
	entry(k int) int
	member(k int) bool
}

// refStep is one planned update of an author: only made when what it looks at says
// so, so that a second call may touch other keys than the first.
type refStep struct {
	op     refOp
	lookAt refKey
	when   int // 0: always; else when what is looked at is odd (1) or even (2)
}

// refBody is an author of commands: a hook or an action handler.
type refBody struct {
	name      string
	steps     []refStep
	reads     []refKey // declared in the command
	schedules []int    // bodies
	emits     int
	stops     bool
	fails     int // 0: never; 1: in each call; 2: when cell 0 is odd
}

type refHook struct {
	refBody
	tier     int
	skip     bool
	declares []refKey // declared at registration
}

// refProgram is one phase: its hooks, and bodies for the actions they schedule.
type refProgram struct {
	hooks  []refHook
	bodies [refBodies]refBody
	kinds  [refBodies]int // 0, 1: serial kinds; 2: ReplaySafe
}

func refDecode(text []byte) refProgram {
	g := &gaBytes{text}
	var p refProgram
	for i := range 1 + g.next(8) {
		h := refHook{refBody: g.body(fmt.Sprintf("h%d", i), 0, 35), tier: 0, skip: g.odds(60)}
		if g.odds(25) {
			h.tier = g.next(3) - 1
		}
		if g.odds(15) {
			h.declares = append(h.declares, refKey(g.next(int(refKeys))))
		}
		h.stops = g.odds(6)
		p.hooks = append(p.hooks, h)
	}
	for i := range p.bodies {
		p.bodies[i] = g.body(fmt.Sprintf("b%d", i), i+1, 30)
		p.kinds[i] = g.next(3)
	}
	return p
}

// body makes an author that schedules bodies from number first on, so that every
// program comes to an end.
func (g *gaBytes) body(name string, first, scheduling int) refBody {
	b := refBody{name: name}
	for range g.next(4) {
		o := refOp{key: refKey(g.next(int(refKeys))), entry: g.next(refEntries), value: g.next(7)}
		special := g.odds(15)
		switch o.key {
		case refCounter:
			o.verb = "add"
			if special {
				o.verb = "reset"
			}
		case refLog:
			o.verb = "append"
			if special {
				o.verb = []string{"replace", "reset"}[g.next(2)]
			}
		case refTable:
			o.verb = "put"
			if special {
				o.verb = []string{"delete", "reset"}[g.next(2)]
			}
		case refSet:
			o.verb = "add"
			if special {
				o.verb = []string{"remove", "reset"}[g.next(2)]
			}
		default:
			o.verb = "put"
			if special {
				o.verb = "reset"
			}
		}
		b.steps = append(b.steps, refStep{op: o, lookAt: refKey(g.next(int(refKeys))), when: g.next(5) / 2})
	}
	if g.odds(10) {
		b.reads = append(b.reads, refKey(g.next(int(refKeys))))
	}
	for g.odds(scheduling) && first < refBodies && len(b.schedules) < 3 {
		b.schedules = append(b.schedules, first+g.next(refBodies-first))
	}
	if g.odds(30) {
		b.emits = 1 + g.next(2)
	}
	if g.odds(8) {
		b.fails = 1 + g.next(2)
	}
	return b
}

// refCommand is what an author returned.
type refCommand struct {
	ops       []refOp
	reads     []refKey
	schedules []int
	emits     []string
	stops     bool
	failed    bool
}

func (b *refBody) run(see refReader) refCommand {
	look := func(k refKey, entry int) int {
		switch k {
		case refCounter:
			return see.counter()
		case refLog:
			return see.logLen()
		case refTable:
			return see.entry(entry)
		case refSet:
			if see.member(entry) {
				return 1
			}
			return 0
		default:
			return see.cell(int(k))
		}
	}
	c := refCommand{reads: b.reads, schedules: b.schedules, stops: b.stops}
	c.failed = b.fails == 1 || b.fails == 2 && see.cell(0)%2 == 1
	for _, s := range b.steps {
		saw := look(s.lookAt, s.op.entry)
		if s.when == 1 && saw%2 == 0 || s.when == 2 && saw%2 != 0 {
			continue
		}
		o := s.op
		o.value = (o.value + 3*saw + 5*look(o.key, o.entry) + 1) % 1009
		c.ops = append(c.ops, o)
	}
	for i := range b.emits {
		c.emits = append(c.emits, fmt.Sprintf("%s.%d saw %d", b.name, i, see.cell(0)))
	}
	return c
}

// updates counts what the command would write, the queue and the count of effects
// included.
func (c *refCommand) writes() bool { return len(c.ops)+len(c.schedules)+len(c.emits) > 0 }

// refState is the state of the reference.
type refState struct {
	cells [refCells]int
	count int
	log   []string
	table map[int]int
	set   map[int]bool
}

func (s *refState) cell(i int) int    { return s.cells[i] }
func (s *refState) counter() int      { return s.count }
func (s *refState) logLen() int       { return len(s.log) }
func (s *refState) entry(k int) int   { return s.table[k] }
func (s *refState) member(k int) bool { return s.set[k] }

func (s *refState) clone() *refState {
	next := *s
	next.log, next.table, next.set = slices.Clone(s.log), maps.Clone(s.table), maps.Clone(s.set)
	return &next
}

func (s *refState) apply(author string, o refOp) {
	switch o.key {
	case refCounter:
		if s.count += o.value; o.verb == "reset" {
			s.count = 0
		}
	case refLog:
		if o.verb != "append" {
			s.log = nil
		}
		if o.verb != "reset" {
			s.log = append(s.log, fmt.Sprintf("%s:%d", author, o.value))
		}
	case refTable:
		switch o.verb {
		case "put":
			s.table[o.entry] = o.value
		case "delete":
			delete(s.table, o.entry)
		default:
			clear(s.table)
		}
	case refSet:
		switch o.verb {
		case "add":
			s.set[o.entry] = true
		case "remove":
			delete(s.set, o.entry)
		default:
			clear(s.set)
		}
	default:
		if s.cells[o.key] = o.value; o.verb == "reset" {
			s.cells[o.key] = 0
		}
	}
}

// refPending is a queued action.
type refPending struct {
	id   int
	body int
	by   string
}

// refTrace is all that can be compared: what a phase leaves and reports.
type refTrace struct {
	State    string
	Revision int
	Failed   bool
	Stopped  bool
	Rounds   int
	Retries  int
	Commits  int
	Hooks    []string // name, status, calls
	Actions  []string // id, who scheduled it, round, status
	Effects  []string // text, revision, index
	Queue    []string // what is left
}

func (s *refState) String() string {
	var set []int
	for k := range s.set {
		set = append(set, k)
	}
	slices.Sort(set)
	return fmt.Sprintf("cells %v, count %d, log %v, table %v, set %v", s.cells, s.count, s.log, s.table, set)
}

// reference runs a program by the book.
type reference struct {
	p     *refProgram
	s     *refState
	out   refTrace
	queue []refPending
	ids   int
}

func refExecute(p *refProgram) refTrace {
	r := &reference{p: p, s: &refState{table: map[int]int{}, set: map[int]bool{}}}
	r.phase()
	r.out.State = r.s.String()
	slices.SortFunc(r.queue, func(a, b refPending) int { return cmp.Compare(a.id, b.id) })
	for _, q := range r.queue {
		r.out.Queue = append(r.out.Queue, fmt.Sprintf("%d %s", q.id, q.by))
	}
	return r.out
}

func (r *reference) phase() {
	var tiers []int
	for _, h := range r.p.hooks {
		if !slices.Contains(tiers, h.tier) {
			tiers = append(tiers, h.tier)
		}
	}
	slices.Sort(tiers)
	for _, tier := range tiers {
		var jobs []*refJob
		for i := range r.p.hooks {
			if h := &r.p.hooks[i]; h.tier == tier {
				jobs = append(jobs, &refJob{body: &h.refBody, owner: h.name, skip: h.skip, declares: h.declares})
			}
		}
		effects, stop, failed := r.gather(jobs)
		for _, j := range jobs {
			r.out.Hooks = append(r.out.Hooks, fmt.Sprintf("%s %s %d", j.owner, j.status, j.calls))
		}
		r.out.Effects = append(r.out.Effects, effects...)
		if failed {
			r.out.Failed = true
			return
		}
		if stop {
			r.out.Stopped = true
			break
		}
	}
	r.converge()
}

func (r *reference) converge() {
	for len(r.queue) > 0 {
		r.out.Rounds++
		round := r.queue
		slices.SortFunc(round, func(a, b refPending) int { return cmp.Compare(a.id, b.id) })
		for len(round) > 0 {
			n := 1
			for n < len(round) && r.p.kinds[round[0].body] == 2 && r.p.kinds[round[n].body] == 2 {
				n++
			}
			r.actions(round[:n])
			round = round[n:]
		}
	}
}

func (r *reference) actions(round []refPending) {
	var jobs []*refJob
	for _, q := range round {
		jobs = append(jobs, &refJob{body: &r.p.bodies[q.body], owner: "handlers", skip: true, action: q.id})
	}
	effects, _, _ := r.gather(jobs)
	for i, j := range jobs {
		status := engine.ActionDone
		if j.failed {
			status = engine.ActionDead
			r.remove(j.action)
			r.out.Revision++
		}
		r.out.Actions = append(r.out.Actions, fmt.Sprintf("%d %s round %d %s", j.action, round[i].by, r.out.Rounds, status))
	}
	r.out.Effects = append(r.out.Effects, effects...)
}

func (r *reference) remove(id int) {
	r.queue = slices.DeleteFunc(slices.Clone(r.queue), func(q refPending) bool { return q.id == id })
}

// refJob is one author in a gather.
type refJob struct {
	body     *refBody
	owner    string
	skip     bool
	declares []refKey
	action   int // id, for an action
	cmd      refCommand
	ids      []int
	failed   bool
	calls    int
	status   engine.HookStatus
}

// call runs the author and gives its actions their ids.
func (r *reference) call(j *refJob, s *refState) {
	j.calls++
	j.cmd = j.body.run(s)
	if j.failed = j.cmd.failed; j.failed {
		j.status = engine.HookFailed
		if j.skip {
			j.status = engine.HookSkipped
		}
		return
	}
	j.ids = nil
	for range j.cmd.schedules {
		r.ids++
		j.ids = append(j.ids, r.ids)
	}
}

func (r *reference) gather(jobs []*refJob) (effects []string, stop, failed bool) {
	base := r.s.clone()
	for _, j := range jobs {
		r.call(j, base)
		failed = failed || j.failed && !j.skip
	}
	if failed {
		for _, j := range jobs {
			if !j.failed {
				j.status = engine.HookDropped
			}
		}
		return nil, false, true
	}
	var batch, deferred []*refJob
	for _, j := range jobs {
		switch {
		case j.failed:
		case r.fits(j, batch, deferred):
			j.status = engine.HookCommitted
			batch = append(batch, j)
		default:
			deferred = append(deferred, j)
		}
	}
	effects = r.commit(batch)
	for _, j := range batch {
		stop = stop || j.cmd.stops
	}
	for _, j := range deferred {
		r.out.Retries++
		r.call(j, r.s)
		if j.failed {
			failed = failed || !j.skip
			continue
		}
		j.status = engine.HookRetried
		effects = append(effects, r.commit([]*refJob{j})...)
		stop = stop || j.cmd.stops
	}
	return effects, stop, failed
}

// fits reports whether a command may join the batch.
func (r *reference) fits(j *refJob, batch, deferred []*refJob) bool {
	for _, o := range j.cmd.ops {
		entry, alone := o.touch()
		for _, other := range batch {
			for _, x := range other.cmd.ops {
				there, aloneThere := x.touch()
				if x.key == o.key && (entry < 0 || there < 0 || entry == there) && (alone || aloneThere) {
					return false
				}
			}
		}
		for _, other := range deferred {
			for _, x := range other.cmd.ops {
				if x.key == o.key && o.key.ordered() {
					return false
				}
			}
		}
	}
	for _, k := range slices.Concat(j.cmd.reads, j.declares) {
		for _, other := range batch {
			for _, x := range other.cmd.ops {
				if x.key == k {
					return false
				}
			}
		}
	}
	return true
}

func (r *reference) commit(batch []*refJob) (effects []string) {
	wrote := false
	for _, j := range batch {
		wrote = wrote || j.cmd.writes() || j.action != 0
	}
	if !wrote {
		return nil
	}
	r.out.Revision++
	r.out.Commits++
	n := 0
	for _, j := range batch {
		for _, o := range j.cmd.ops {
			r.s.apply(j.body.name, o)
		}
		for i, body := range j.cmd.schedules {
			r.queue = append(r.queue, refPending{j.ids[i], body, j.owner})
		}
		if j.action != 0 {
			r.remove(j.action)
		}
		for _, text := range j.cmd.emits {
			effects = append(effects, fmt.Sprintf("%s @%d/%d", text, r.out.Revision, n))
			n++
		}
	}
	return effects
}

// Capability A3. Capability A4. Capability A5. Capability A6. Capability G2.
// Thousands of random phases end as the serial reference says, with the same
// state, revisions, reports, actions and effects.
func TestReferenceAgreesWithEngine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	met := refMet{}
	for range 3000 {
		text := make([]byte, 400)
		for i := range text {
			text[i] = byte(rnd.IntN(256))
		}
		met.add(refCompare(t, text))
	}
	// The programs are worth something only if they do all that can be done.
	if met.retries == 0 || met.failed == 0 || met.stopped == 0 || met.rounds < 3 || met.dead == 0 || met.effects == 0 || met.mixed == 0 {
		t.Fatalf("the random phases are too tame: %+v", met)
	}
	t.Logf("met %+v", met)
}

// refMet counts what the random programs led to.
type refMet struct{ retries, failed, stopped, rounds, dead, effects, mixed int }

func (m *refMet) add(o refTrace) {
	m.retries += o.Retries
	m.rounds = max(m.rounds, o.Rounds)
	m.effects += len(o.Effects)
	if o.Failed {
		m.failed++
		if o.Retries > 0 && o.Commits > 0 {
			m.mixed++
		}
	}
	if o.Stopped {
		m.stopped++
	}
	for _, a := range o.Actions {
		if a[len(a)-len(engine.ActionDead):] == string(engine.ActionDead) {
			m.dead++
		}
	}
}
