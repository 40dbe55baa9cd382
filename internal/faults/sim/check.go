package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// watch checks each commit of a thread that a process has open: its run and its calls
// take allowed steps only.
func watch(l *ledger, process string, t *engine.Thread) {
	t.Subscribe(func(c state.Commit) {
		was, is := phase.RunLifecycle.Get(c.Previous), phase.RunLifecycle.Get(c.Snapshot)
		if was.Status != is.Status && !slices.Contains(runMoves[was.Status], is.Status) && is.Run == was.Run {
			l.violated("%s: the run of %s goes from %s to %s", process, t.ID(), was.Status, is.Status)
		}
		if is.Run == was.Run && (is.Step < was.Step || is.Answered < was.Answered) {
			l.violated("%s: the run of %s goes back from step %d to %d", process, t.ID(), was.Step, is.Step)
		}
		for id, now := range engine.ToolCalls.All(c.Snapshot) {
			old, ok := engine.ToolCalls.Get(c.Previous, id)
			switch {
			case !ok || is.Run != was.Run:
			case old.Status != now.Status && !slices.Contains(callMoves[old.Status], now.Status):
				l.violated("%s: call %s of %s goes from %s to %s", process, id, t.ID(), old.Status, now.Status)
			case old.Settled && (!now.Settled || old.Result != now.Result), old.Ended && !now.Ended, old.After && !now.After:
				l.violated("%s: call %s of %s goes back behind its result", process, id, t.ID())
			case len(now.Answers) < len(old.Answers):
				l.violated("%s: call %s of %s loses an answer", process, id, t.ID())
			}
		}
		if c.Snapshot.Revision() <= c.Previous.Revision() {
			l.violated("%s: revision %d of %s follows %d", process, c.Snapshot.Revision(), t.ID(), c.Previous.Revision())
		}
	})
}

var runMoves = map[phase.RunStatus][]phase.RunStatus{
	phase.Created: {phase.Running},
	phase.Running: {phase.Waiting, phase.Done},
	phase.Waiting: {phase.Running, phase.Done},
}

var callMoves = map[engine.CallStatus][]engine.CallStatus{
	engine.CallNew:       {engine.CallRunning, engine.CallSuspended, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled},
	engine.CallRunning:   {engine.CallSuspended, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled},
	engine.CallSuspended: {engine.CallResuming, engine.CallFailed, engine.CallCancelled},
	engine.CallResuming:  {engine.CallRunning, engine.CallSuspended, engine.CallSucceeded, engine.CallFailed, engine.CallCancelled},
}

// applied reports whether a decision is in the journal.
func (l *ledger) applied(thread, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decisions[id+thread] > 0
}

// newest reports whether nothing landed in a thread after a revision.
func (l *ledger) newest(thread string, revision uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.thread(thread).commits)) <= revision
}

// sameAsKept checks that a process's state of a thread is what another engine makes
// of the journal, up to the last commit that the process knows to be kept.
func (w *world) sameAsKept(p *process, t *engine.Thread) {
	if w.plan.dice.chance(500, "compare", p.name, int(p.compared.Add(1))) {
		return // every second one is enough, and costs half
	}
	revision := p.conn.known(t.ID())
	if revision == 0 {
		if t.Snapshot().Revision() != 0 {
			w.ledger.violated("%s: %s is at revision %d, and nothing is kept", p.name, t.ID(), t.Snapshot().Revision())
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.past.revision = revision
	kept, err := w.checkers.OpenThread(context.Background(), t.ID())
	if err != nil {
		w.ledger.violated("%s: %s cannot be rebuilt at %d: %v", p.name, t.ID(), revision, err)
		return
	}
	w.ledger.add(func(s *Stats) { s.Rebuilt++ })
	has, err1 := t.Export()
	is, err2 := kept.Export()
	if err1 != nil || err2 != nil || !same(has, is) {
		w.ledger.violated("%s: %s at journal revision %d is not what is kept: %v %v%s", p.name, t.ID(), revision, err1, err2, difference(has, is))
	}
	if has.Revision != is.Revision {
		w.ledger.violated("%s: %s is at revision %d, rebuilt at %d", p.name, t.ID(), has.Revision, is.Revision)
	}
}

func difference(a, b state.Dump) string {
	values := map[string]string{}
	for _, e := range a.Entries {
		values[e.Name] = string(e.Raw)
	}
	var out strings.Builder
	for _, e := range b.Entries {
		if values[e.Name] != string(e.Raw) {
			out.WriteString("\n\t" + e.Name + " is " + values[e.Name] + "\n\t\tkept as " + string(e.Raw))
		}
		delete(values, e.Name)
	}
	for name, v := range values {
		out.WriteString("\n\t" + name + " is " + v + ", and is not kept")
	}
	return out.String()
}

// check looks at the end of the world as a whole.
func (w *world) check() {
	l := w.ledger
	for _, id := range l.undelivered() {
		l.violated("effect %s (%s) was never delivered", id, l.owed[id])
	}
	ctx := context.Background()
	ids, err := w.memory.Threads(ctx, "", 1000)
	if err != nil {
		l.violated("the threads cannot be listed: %v", err)
	}
	for _, id := range ids {
		h := l.threads[id]
		image, err := w.memory.Load(ctx, id, 0)
		if err != nil || h == nil || image.Revision != uint64(len(h.commits)) {
			l.violated("the journal of %s is at %d: %v", id, image.Revision, err)
			continue
		}
		for _, r := range image.Tail {
			c := h.commits[r.Revision-1]
			if !c.lease && (c.commit.ID != r.ID || string(c.commit.Record) != string(r.Record)) {
				l.violated("record %d of %s is another one", r.Revision, id)
			}
		}
		w.past.revision = image.Revision
		t, err := w.checkers.OpenThread(ctx, id)
		if err != nil {
			l.violated("%s cannot be rebuilt: %v", id, err)
			continue
		}
		w.transcript(t)
		if w.dice.chance(50, "history", id) {
			w.history(t)
		}
	}
	for _, s := range l.sent {
		if s.acked != 0 && s.acked != s.landed {
			l.violated("a commit was acknowledged as %d and landed as %d", s.acked, s.landed)
		}
	}
}

// history checks that a thread's history is there, in order, and ends with what is now.
func (w *world) history(t *engine.Thread) {
	last := t.Snapshot().Revision() + 1
	for r, err := range t.History(context.Background()) {
		if err != nil || r.Revision >= last || last > t.Snapshot().Revision() && r.Revision != last-1 {
			w.ledger.violated("in the history of %s, revision %d comes before %d: %v", t.ID(), r.Revision, last, err)
			return
		}
		last = r.Revision
	}
}

// transcript checks that each call of a finished thread has exactly one result.
func (w *world) transcript(t *engine.Thread) {
	snap := t.Snapshot()
	results, asked := map[string]int{}, map[string]bool{}
	var order []string
	for _, m := range engine.Transcript.Get(snap).All() {
		switch m.Role {
		case inference.RoleAssistant:
			for _, c := range m.ToolCalls {
				if asked[c.ID] {
					w.ledger.violated("call %s of %s is asked for twice", c.ID, t.ID())
				}
				asked[c.ID] = true
				order = append(order, c.ID)
			}
		case inference.RoleTool:
			results[m.Result.CallID]++
			if !asked[m.Result.CallID] {
				w.ledger.violated("%s has a result of call %s, which nobody asked for", t.ID(), m.Result.CallID)
			}
		}
	}
	for _, id := range order {
		if results[id] != 1 {
			w.ledger.violated("call %s of %s has %d results in the transcript", id, t.ID(), results[id])
		}
	}
	if s := phase.RunLifecycle.Get(snap).Status; s == phase.Running || s == phase.Waiting {
		w.ledger.violated("%s is left %s", t.ID(), s)
	}
}
