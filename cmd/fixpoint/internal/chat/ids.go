package chat

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
)

// ids gives the ids of the thread that the session works on. They are unique in the
// store, since each run begins with a commit at the revision that its ids are made of.
type ids struct {
	mu   sync.Mutex
	next func() string
}

// NewID is for the configuration of the engine.
func (s *Session) NewID() string {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	if s.ids.next == nil { // no thread is open, and what is asked for is a name for the process
		return "chat-" + rand.Text()
	}
	return s.ids.next()
}

func (i *ids) renew(ctx context.Context, store *kept.Store, thread string) error {
	next, err := store.NewIDs(ctx, thread)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.next = next
	return nil
}
