package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// vault keeps the secrets of a world. It outlives all processes.
type vault struct {
	mu      sync.Mutex
	secrets map[string]string // by handle
	gone    map[string]bool   // handles that were forgotten
}

// safe is a process's way to the vault, which fails now and then.
type safe struct{ p *process }

func (s safe) fails(op string) bool {
	return !s.p.calm && s.p.w.dice.chance(50, "vault", op, s.p.name, int(s.p.ids.Add(1)))
}

// Keep implements engine.Vault.
func (s safe) Keep(_ context.Context, thread, text string) (string, error) {
	if s.p.gone() || s.fails("keep") {
		return "", errors.New("sim: the vault is closed")
	}
	v := s.p.w.vault
	v.mu.Lock()
	defer v.mu.Unlock()
	handle := fmt.Sprintf("%s/%s-%d", thread, s.p.name, s.p.ids.Add(1))
	v.secrets[handle] = text
	s.p.w.trace(s.p.name, "the vault keeps %s", handle)
	return handle, nil
}

// Reveal implements engine.Vault. Nobody may need what was forgotten.
func (s safe) Reveal(_ context.Context, handle string) (string, error) {
	if s.p.gone() || s.fails("reveal") {
		return "", errors.New("sim: the vault is closed")
	}
	v := s.p.w.vault
	v.mu.Lock()
	defer v.mu.Unlock()
	text, ok := v.secrets[handle]
	thread, _, _ := strings.Cut(handle, "/")
	s.p.w.trace(s.p.name, "the vault reveals %s: %v", handle, ok)
	if !ok && s.p.w.ledger.newest(thread, s.p.conn.known(thread)) {
		s.p.w.ledger.violated("%s: secret %s is needed, and the vault was told to forget it", s.p.name, handle)
	}
	if !ok {
		return "", fmt.Errorf("sim: the vault has no %s; forgotten: %v", handle, v.gone[handle])
	}
	return text, nil
}

// Forget implements engine.Forgetter.
func (s safe) Forget(_ context.Context, handle string) error {
	if s.p.gone() || s.fails("forget") {
		return errors.New("sim: the vault is closed")
	}
	v := s.p.w.vault
	v.mu.Lock()
	defer v.mu.Unlock()
	s.p.w.trace(s.p.name, "the vault forgets %s", handle)
	delete(v.secrets, handle)
	v.gone[handle] = true
	return nil
}
