package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// book is what the parent knows of one thread, from lines and from the store.
type book struct {
	thread   string
	acks     []line            // of commits not checked against the store yet
	acked    uint64            // the newest revision acknowledged
	ledger   []string          // as last read from the store
	results  map[string]bool   // calls whose result is in the store
	bodies   map[string]int    // how often each call's body began
	approved map[string]bool   // tickets
	approval map[string]int    // calls, by how many of their tickets
	kept     map[string]string // durable effects delivered: content to id
	repeats  int               // deliveries of durable effects that had been delivered before
	plain    map[string]int
	whole    bool // all runs are over
}

func newBook(thread string) *book {
	return &book{
		thread: thread, results: map[string]bool{}, bodies: map[string]int{}, approved: map[string]bool{},
		approval: map[string]int{}, kept: map[string]string{}, plain: map[string]int{},
	}
}

// hear takes down a line, and reports what it shows to be wrong by itself.
func (b *book) hear(l line, rep *Report) {
	switch l.Kind {
	case lineCommit:
		rep.Acks++
		if l.Rev <= b.acked {
			rep.fault(b, "revision %d was acknowledged after %d", l.Rev, b.acked)
		}
		b.acks, b.acked = append(b.acks, l), l.Rev
	case lineBody:
		rep.Bodies++
		b.bodies[l.What]++
		if b.results[l.What] {
			rep.Repeated++
			rep.fault(b, "call %s ran again although its result was committed", l.What)
		}
	case lineDecided:
		if !b.approved[l.What] {
			b.approved[l.What] = true
			b.approval[l.ID]++
		}
	case lineExpired:
		rep.Expired++
	case lineKept:
		rep.Delivered++
		id, again := b.kept[l.What]
		if again {
			b.repeats++
			rep.Duplicates++
		}
		if again && id != l.ID {
			rep.fault(b, "effect %s came as %s and as %s", l.What, id, l.ID)
		}
		b.kept[l.What] = l.ID
	case lineFailed:
		rep.Refused++
	case linePlain:
		if b.plain[l.What]++; b.plain[l.What] > 1 {
			rep.fault(b, "effect %s is not durable and came twice", l.What)
		}
	}
}

// audit compares the thread as the store has it with what is known.
func (b *book) audit(ctx context.Context, k *keys, t *engine.Thread, random *rand.Rand, rep *Report) error {
	snap := t.Snapshot()
	if err := b.auditCommits(ctx, k, t, random, rep); err != nil {
		return err
	}
	b.auditLedger(k.ledger.Get(snap), rep)
	b.auditCalls(k, snap, rep)
	runs, status := k.standing(snap)
	b.whole = runs == runsPerThread && status == phase.Done
	return nil
}

// auditCommits checks that each commit acknowledged since the last audit is in the
// thread's history, and of the last and a few more that they made the same state.
func (b *book) auditCommits(ctx context.Context, k *keys, t *engine.Thread, random *rand.Rand, rep *Report) error {
	if len(b.acks) == 0 {
		return nil
	}
	kept := map[uint64]engine.Revision{}
	for r, err := range t.History(ctx) {
		if err != nil {
			return err
		}
		if r.Revision < b.acks[0].Rev {
			break
		}
		kept[r.Revision] = r
	}
	samples := map[uint64]bool{b.acks[len(b.acks)-1].Rev: true}
	for range 3 {
		samples[b.acks[random.IntN(len(b.acks))].Rev] = true
	}
	for _, a := range b.acks {
		r, ok := kept[a.Rev]
		same := ok && positionOf(r.Run, r.Step, r.Status) == a.Position
		if same && samples[a.Rev] {
			past, err := t.Past(ctx, a.Rev)
			if err != nil {
				return err
			}
			same = k.mark(past) == a.Mark
		}
		if !same {
			rep.Lost++
			rep.fault(b, "revision %d was acknowledged as %+v, the store has %+v", a.Rev, a, r)
		}
	}
	b.acks = nil
	return nil
}

// auditLedger checks that the ledger only grows, and that what was emitted and what
// was delivered fit.
func (b *book) auditLedger(ledger state.List[string], rep *Report) {
	for i, entry := range b.ledger {
		if i >= ledger.Len() || ledger.At(i) != entry {
			rep.Lost++
			rep.fault(b, "line %d of the ledger was %q and is gone", i, entry)
			break
		}
	}
	b.ledger = ledger.Slice()
	seen := map[string]bool{}
	for _, entry := range b.ledger {
		if seen[entry] {
			rep.fault(b, "%q is in the ledger twice", entry)
		}
		seen[entry] = true
	}
	for what := range b.kept {
		if !seen[what] {
			rep.fault(b, "effect %s was delivered without its commit", what)
		}
	}
	for what := range b.plain {
		if !seen[what] {
			rep.fault(b, "effect %s, not durable, was delivered without its commit", what)
		}
	}
}

// auditCalls checks what tools did and what became of their calls.
func (b *book) auditCalls(k *keys, snap *state.Snapshot, rep *Report) {
	asked, answered := map[string]string{}, map[string]inference.Outcome{}
	for _, m := range engine.Transcript.Get(snap).All() {
		for _, c := range m.ToolCalls {
			asked[c.ID] = c.Name
		}
		if id := m.Result.CallID; id != "" {
			if _, twice := answered[id]; twice {
				rep.fault(b, "call %s has two results", id)
			}
			answered[id] = m.Result.Outcome
			b.results[id] = true
		}
	}
	for id, c := range engine.ToolCalls.All(snap) {
		if c.Ended {
			b.results[id] = true
		}
	}
	for id, n := range b.bodies {
		most := 1
		if recoveryOf(asked[id]) == engine.AskPerson {
			most += b.approval[id] // each of them: run it again
		}
		if recoveryOf(asked[id]) != engine.Rerun && n > most {
			rep.fault(b, "call %s of tool %s ran %d times, at most %d are right", id, asked[id], n, most)
		}
	}
	for id, outcome := range answered {
		_, worked := k.slots.Get(snap, id)
		if worked != (outcome == inference.OutcomeOK) {
			rep.fault(b, "call %s ended with %q, and its work is committed: %t", id, outcome, worked)
		}
		if outcome == inference.OutcomeOK && b.bodies[id] == 0 || outcome == inference.OutcomeDenied && asked[id] == toolGated && b.bodies[id] > 0 {
			rep.fault(b, "call %s ended with %q, and its body ran %d times", id, outcome, b.bodies[id])
		}
	}
	if sum, slots := k.sum.Get(snap), k.slots.Len(snap); sum != int64(slots) {
		rep.fault(b, "%d calls did their work, and they counted to %d", slots, sum)
	}
	if phase.RunLifecycle.Get(snap).Status != phase.Done {
		return
	}
	for id := range asked {
		if _, ok := answered[id]; !ok {
			rep.fault(b, "call %s has no result, and its run is over", id)
		}
	}
	done := map[string]bool{}
	for _, entry := range b.ledger {
		if origin, ok := strings.CutPrefix(entry, "done:"); ok {
			done[origin] = true
		}
	}
	for _, entry := range b.ledger {
		if origin, ok := strings.CutPrefix(entry, "todo:"); ok && !done[origin] {
			rep.fault(b, "action of %q was not run, and its run is over", origin)
		}
	}
}

// missing returns the durable effects of the store's commits that were not delivered.
func (b *book) missing() (list []string) {
	for _, entry := range b.ledger {
		if _, ok := b.kept[entry]; !ok && strings.HasPrefix(entry, "sent:") {
			list = append(list, entry)
		}
	}
	return list
}

// close counts a thread of which nothing more will be heard.
func (b *book) close(rep *Report) {
	rep.Threads++
	rep.Results += len(b.results)
	for _, what := range b.missing() {
		rep.Missing++
		rep.fault(b, "effect %s was not delivered", what)
	}
	if !b.whole {
		rep.fault(b, "its runs are not over")
	}
}

func (r *Report) fault(b *book, format string, args ...any) {
	r.count++
	if len(r.Faults) < mostFaults {
		r.Faults = append(r.Faults, fmt.Sprintf("%s: "+format, append([]any{b.thread}, args...)...))
	}
}
