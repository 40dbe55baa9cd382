package bolt

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/store"
)

// Notify implements [store.Notifier]. Only one process has the store, so nothing is
// written for it.
func (j *Journal) Notify(ctx context.Context, topic string, data []byte) error {
	if len(data) > store.MaxNotice {
		return fmt.Errorf("bolt: a notice of %d bytes, and the limit is %d: %w", len(data), store.MaxNotice, store.ErrTooLarge)
	}
	if err := j.open(ctx); err != nil {
		return err
	}
	j.board.Send(topic, data)
	return nil
}

// Listen implements [store.Notifier]. A listener that 256 notices wait for misses those
// that come next.
func (j *Journal) Listen(ctx context.Context, topic string) (<-chan []byte, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("bolt: not done: %w", context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, errClosed()
	}
	return j.board.Listen(ctx, topic), nil
}
