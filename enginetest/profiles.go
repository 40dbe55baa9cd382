package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/ddd26017/fixpoint/state"
)

// NewProfiles returns a store for profile keys that keeps everything in memory. It is
// safe for concurrent use.
func NewProfiles() state.ProfileStore { return &profiles{values: make(map[[2]string]profile)} }

type profiles struct {
	mu     sync.Mutex
	values map[[2]string]profile
}

type profile struct {
	raw     []byte
	version uint64
}

func (m *profiles) LoadProfile(ctx context.Context, owner, name string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.values[[2]string{owner, name}]
	return bytes.Clone(p.raw), p.version, context.Cause(ctx)
}

func (m *profiles) SaveProfile(ctx context.Context, owner, name string, raw []byte, base uint64) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := [2]string{owner, name}
	if now := m.values[id].version; now != base {
		return 0, fmt.Errorf("%w: profile %q of %q is at version %d, not %d", state.ErrStale, name, owner, now, base)
	}
	// Not nil even when empty, since nil means that nothing was saved.
	m.values[id] = profile{append([]byte{}, raw...), base + 1}
	return base + 1, nil
}
