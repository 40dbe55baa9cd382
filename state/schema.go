package state

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

// Schema is a checked set of keys, from which any number of stores can be
// made cheaply. It is immutable and safe for concurrent use.
type Schema struct {
	defs   []*def // by slot
	slots  map[*def]int
	byName []*def
	named  map[string]*def
	empty  chunk
	pool   sync.Pool // of *draft
}

const maxNameLen = 255

// NewSchema checks the keys and makes a schema of them. The error joins every
// fault found: [ErrInvalidKey] for bad names and configurations,
// [ErrDuplicateKey] for a name or a key given twice, and [ErrAliasable] for
// value or update types that share memory without Clone or Shared.
func NewSchema(keys ...AnyKey) (*Schema, error) {
	s := &Schema{slots: make(map[*def]int, len(keys)), named: make(map[string]*def, len(keys))}
	var faults []error
	for i, k := range keys {
		d := defOf(k)
		switch other := s.named[d.name]; {
		case d == nowhere:
			faults = append(faults, fmt.Errorf("%w: key %d is a zero handle, make it with one of the New functions", ErrInvalidKey, i))
		case other == d:
			faults = append(faults, fmt.Errorf("%w: %q is given twice", ErrDuplicateKey, d.name))
		case other != nil:
			faults = append(faults, fmt.Errorf("%w: two different keys are named %q", ErrDuplicateKey, d.name))
		default:
			faults = append(faults, d.faults)
			s.named[d.name], s.slots[d] = d, len(s.defs)
			s.defs = append(s.defs, d)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for slot, d := range s.defs {
		// The first schema decides; others find the slot by map.
		d.hint.CompareAndSwap(0, int32(slot)+1)
	}
	s.byName = slices.SortedFunc(slices.Values(s.defs), func(a, b *def) int { return cmp.Compare(a.name, b.name) })
	return s, nil
}

// Keys yields the keys by name.
func (s *Schema) Keys() iter.Seq[AnyKey] {
	return pushseq.Map(slices.Values(s.byName), func(d *def) AnyKey { return d.handle })
}

// slot finds a key, without a map in the usual case.
func (s *Schema) slot(d *def) (int, bool) {
	if i := int(d.hint.Load()) - 1; uint(i) < uint(len(s.defs)) && s.defs[i] == d {
		return i, true
	}
	i, ok := s.slots[d]
	return i, ok
}

func invalidName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrInvalidKey)
	case len(name) > maxNameLen:
		return fmt.Errorf("%w: the name %q... has %d bytes, at most %d are allowed", ErrInvalidKey, name[:32], len(name), maxNameLen)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the name %q is not valid UTF-8", ErrInvalidKey, name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == ' ' {
			return fmt.Errorf("%w: the name %q has the character %q, use printable characters without spaces", ErrInvalidKey, name, r)
		}
	}
	return nil
}

func (d *def) invalid() error {
	switch err := invalidName(d.name); {
	case err != nil:
		return err
	case d.scope > ScopeThread:
		return fmt.Errorf("%w: %q has %v", ErrInvalidKey, d.name, d.scope)
	case d.merge > Commutative:
		return fmt.Errorf("%w: %q has %v", ErrInvalidKey, d.name, d.merge)
	case d.version < 0:
		return fmt.Errorf("%w: %q has version %d, want 0 or more", ErrInvalidKey, d.name, d.version)
	}
	return nil
}

// aliasing is the fault of a key whose type aliases, unless it may.
func (d *def) aliasing(text, what string, copied bool) error {
	if text == "" || copied || d.shared {
		return nil
	}
	return fmt.Errorf("%w: %s of key %q: %s; give the key a way to clone it, or Shared if it is never changed in place",
		ErrAliasable, what, d.name, text)
}
