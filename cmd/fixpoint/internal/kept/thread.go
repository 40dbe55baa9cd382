package kept

import (
	"context"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Thread is how a thread stands.
type Thread struct {
	ID        string
	Record    Record
	Lifecycle phase.Lifecycle // of the newest run that started
	Agent     string          // of the newest run
	Forked    bool            // it began as another thread was
	Inbox     bool            // it was given to workers
	Place     worker.Position // of its inbox, where workers are
	Open      []Question
}

// Kept reports whether this command can go on with the thread.
func (t Thread) Kept() bool { return t.Record.Run != "" }

// Served reports whether the newest run is one of workers, or about to be: they go on with
// it.
func (t Thread) Served() bool {
	if t.Lifecycle.Run == "" {
		return t.Inbox && !t.Kept()
	}
	return t.Place.Run == t.Lifecycle.Run
}

// Begun reports whether the recorded run has started, so that it can be resumed.
func (t Thread) Begun() bool {
	return t.Lifecycle.Run == t.Record.Run && t.Lifecycle.Status != phase.Created
}

// Interrupted reports whether the process of the run ended before the run did: it is
// under way, and nobody else has the store open. The run of a fork stands like that
// from the beginning; where it waited, nothing is asked before it goes on.
func (t Thread) Interrupted() bool {
	if t.Served() {
		return false
	}
	return t.Kept() && !t.Begun() || t.Lifecycle.Status == phase.Running || t.Lifecycle.Status == phase.Waiting && len(t.Open) == 0
}

// Question returns the open question of that ticket, if it is open.
func (t Thread) Question(ticket string) (Question, bool) {
	for _, q := range t.Open {
		if q.Ticket.ID == ticket {
			return q, true
		}
	}
	return Question{}, false
}

// Question is an open ticket and the call that it is about.
type Question struct {
	Thread string
	Ticket gate.Ticket
	Call   inference.ToolCall
}

// Thread returns how a thread stands. One that is not in the store has no record
// and a zero lifecycle.
func (s *Store) Thread(ctx context.Context, id string) (Thread, error) {
	inbox, err := s.Journal.Load(ctx, worker.InboxPrefix+id, 0)
	if err != nil {
		return Thread{}, err
	}
	return s.thread(ctx, id, inbox.Revision > 0)
}

func (s *Store) thread(ctx context.Context, id string, inbox bool) (Thread, error) {
	th, err := s.reader.OpenThread(ctx, id)
	if err != nil {
		return Thread{}, err
	}
	snap := th.Snapshot()
	t := Thread{
		ID: id, Record: Key.Get(snap), Lifecycle: phase.RunLifecycle.Get(snap), Agent: th.Agent(),
		Inbox: inbox, Place: worker.Place.Get(snap),
	}
	_, t.Forked = th.Origin()
	if t.Lifecycle.Status == phase.Done {
		return t, nil
	}
	for _, ticket := range th.Tickets() {
		c, _ := engine.ToolCalls.Get(snap, ticket.Call)
		t.Open = append(t.Open, Question{Thread: id, Ticket: ticket, Call: c.Call})
	}
	return t, nil
}

// Threads returns how all threads stand, sorted by id.
func (s *Store) Threads(ctx context.Context) ([]Thread, error) {
	ids, inboxes, err := s.ids(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Thread, len(ids))
	for i, id := range ids {
		if all[i], err = s.thread(ctx, id, inboxes[id]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
