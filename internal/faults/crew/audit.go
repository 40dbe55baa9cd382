//go:build unix

package crew

import (
	"context"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// totals are what the threads of a store have in the end.
type totals struct {
	runs, calls, interrupted, missing int
	commits                           uint64
}

// audit compares a thread as the store has it with the outside. It must have had so many
// runs. The reading of the outside is over.
func (s *staff) audit(ctx context.Context, thread string, runs int, sum *totals) error {
	t, err := s.eng.OpenThread(ctx, thread)
	if err != nil {
		return fmt.Errorf("crew: %s: %w", thread, err)
	}
	snap := t.Snapshot()
	sum.commits += snap.Revision()
	if status := phase.RunLifecycle.Get(snap).Status; runs > 0 && status != phase.Done {
		s.watch.fault("%s: its last run is %s", thread, status)
	}
	asked, answers, said := map[string]string{}, map[string][]inference.Outcome{}, map[int]int{}
	for _, m := range engine.Transcript.Get(snap).All() {
		if m.Role == inference.RoleUser {
			task, err := parseTask(m.Text)
			if err != nil {
				return err
			}
			said[task.Run]++
		}
		for _, c := range m.ToolCalls {
			asked[c.ID] = c.Name
		}
		if id := m.Result.CallID; id != "" {
			answers[id] = append(answers[id], m.Result.Outcome)
		}
	}
	for run := range runs {
		if said[run] != 1 {
			s.watch.fault("%s: run %d began %d times", thread, run, said[run])
		}
	}
	if len(said) != runs {
		s.watch.fault("%s: there are %d runs, want %d", thread, len(said), runs)
	}
	sum.runs += len(said)
	worked := map[string]bool{}
	for _, e := range s.hand.ledger.Get(snap).All() {
		if worked[e.Call] {
			s.watch.fault("%s: the work of call %s was committed twice", thread, e.Call)
		}
		worked[e.Call] = true
		if f := s.watch.calls[thread+"/"+e.Call]; f == nil || f.effect == "" {
			sum.missing++
			s.watch.fault("%s: the effect of call %s was not delivered", thread, e.Call)
		}
	}
	for id, name := range asked {
		sum.calls++
		s.auditCall(thread, id, name, answers[id], worked[id], sum)
	}
	for name, f := range s.watch.calls {
		if call, ours := strings.CutPrefix(name, thread+"/"); ours && f.effect != "" && !worked[call] {
			s.watch.fault("%s: the effect of call %s was delivered without its commit", thread, call)
		}
	}
	return nil
}

func (s *staff) auditCall(thread, id, name string, answers []inference.Outcome, worked bool, sum *totals) {
	facts := s.watch.calls[thread+"/"+id]
	bodies := 0
	if facts != nil {
		bodies = facts.bodies
	}
	if len(answers) != 1 {
		s.watch.fault("%s: call %s has %d results", thread, id, len(answers))
		return
	}
	ok := answers[0] == inference.OutcomeOK
	if !ok {
		sum.interrupted++
	}
	if ok != worked || ok && bodies == 0 || name != toolAgain && bodies > 1 {
		s.watch.fault("%s: call %s of tool %s ended with %q, its body ran %d times, and that its work is committed is %t", thread, id, name, answers[0], bodies, worked)
	}
	if name == toolAgain && !ok {
		s.watch.fault("%s: call %s could have run again, and ended with %q", thread, id, answers[0])
	}
}
