package kept

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoTicket is returned for a text that stands for no ticket.
	ErrNoTicket = errors.New("there is no such ticket")
	// ErrSeveral is returned for a text that stands for several open tickets.
	ErrSeveral = errors.New("several tickets are meant")
)

// Find returns the thread and the id of the ticket that a text stands for: a
// ticket's id, or, where only one open ticket fits, the id of its call or of its
// thread. A ticket that was answered is found by its id; the run knows what became
// of it.
func (s *Store) Find(ctx context.Context, text string) (Thread, string, error) {
	all, err := s.Threads(ctx)
	if err != nil {
		return Thread{}, "", err
	}
	var in []Thread
	var ids []string
	for _, t := range all {
		for _, q := range t.Open {
			if q.Ticket.ID == text {
				return t, text, nil
			}
			if q.Ticket.Call == text || t.ID == text {
				in, ids = append(in, t), append(ids, q.Ticket.ID)
			}
		}
	}
	switch {
	case len(ids) == 1:
		return in[0], ids[0], nil
	case len(ids) > 1:
		return Thread{}, "", fmt.Errorf("%w by %q; name one of %s", ErrSeveral, text, strings.Join(ids, ", "))
	}
	for _, t := range all {
		if former(t, text) {
			return t, text, nil
		}
	}
	return Thread{}, "", fmt.Errorf("%w: %q; \"fixpoint pending\" lists those that are open", ErrNoTicket, text)
}

// former reports whether a ticket's id is of a run of the thread.
func former(t Thread, ticket string) bool {
	run, _, found := strings.Cut(ticket, "/")
	if found && run == t.Place.Run {
		return true
	}
	if !found || !t.Kept() {
		return false
	}
	for n := range t.Record.Runs {
		if run == RunID(t.ID, n+1) {
			return true
		}
	}
	return false
}
