package state

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// NewMemProfiles returns a ProfileStore that keeps everything in memory.
func NewMemProfiles() ProfileStore {
	return &memProfiles{values: make(map[profileID]memProfile)}
}

type memProfiles struct {
	mu     sync.Mutex
	values map[profileID]memProfile
}

type profileID struct{ owner, name string }

type memProfile struct {
	raw     []byte
	version uint64
}

func (m *memProfiles) LoadProfile(ctx context.Context, owner, name string) ([]byte, uint64, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.values[profileID{owner, name}]
	return bytes.Clone(p.raw), p.version, nil
}

func (m *memProfiles) SaveProfile(ctx context.Context, owner, name string, raw []byte, base uint64) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := profileID{owner, name}
	if now := m.values[id].version; now != base {
		return 0, fmt.Errorf("%w: profile %q of %q is at version %d, not %d", ErrStale, name, owner, now, base)
	}
	// Not nil even when empty, since nil means that nothing was saved.
	m.values[id] = memProfile{append([]byte{}, raw...), base + 1}
	return base + 1, nil
}
