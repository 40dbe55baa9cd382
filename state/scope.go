package state

import (
	"fmt"
	"slices"
	"strings"
)

// Scope says how long a key's value lives.
type Scope uint8

const (
	// ScopeRun values are cleared when a run starts. It is the zero Scope.
	ScopeRun Scope = iota
	// ScopeThread values are kept between the runs of a thread.
	ScopeThread
)

var scopes = names{"run", "thread"}

// String returns "run" or "thread".
func (s Scope) String() string { return scopes.text("Scope", uint8(s)) }

// MarshalText writes the text form of a known scope and refuses others.
func (s Scope) MarshalText() ([]byte, error) { return scopes.marshal("Scope", uint8(s)) }

// UnmarshalText reads "run" or "thread".
func (s *Scope) UnmarshalText(text []byte) error { return scopes.parse("scope", text, (*uint8)(s)) }

// MergeStrategy says whether two batches may touch a key in one commit.
type MergeStrategy uint8

const (
	// Exclusive keys take the updates of one batch only; a second batch is
	// rejected and must be redone on a newer snapshot. It is the zero strategy.
	Exclusive MergeStrategy = iota
	// Commutative keys take the updates of any number of batches, applied in
	// batch order.
	Commutative
)

var strategies = names{"exclusive", "commutative"}

// String returns "exclusive" or "commutative".
func (m MergeStrategy) String() string { return strategies.text("MergeStrategy", uint8(m)) }

// MarshalText writes the text form of a known strategy and refuses others.
func (m MergeStrategy) MarshalText() ([]byte, error) {
	return strategies.marshal("MergeStrategy", uint8(m))
}

// UnmarshalText reads "exclusive" or "commutative".
func (m *MergeStrategy) UnmarshalText(text []byte) error {
	return strategies.parse("merge strategy", text, (*uint8)(m))
}

// names are the text forms of an enumeration. They never change.
type names []string

func (n names) text(kind string, v uint8) string {
	if int(v) < len(n) {
		return n[v]
	}
	return fmt.Sprintf("%s(%d)", kind, v)
}

func (n names) marshal(kind string, v uint8) ([]byte, error) {
	text := n.text(kind, v)
	return []byte(text), n.parse(kind, []byte(text), new(uint8))
}

func (n names) parse(kind string, text []byte, v *uint8) error {
	i := slices.Index(n, string(text))
	if i < 0 {
		return fmt.Errorf("state: unknown %s %q, want %s", kind, text, strings.Join(n, " or "))
	}
	*v = uint8(i)
	return nil
}
