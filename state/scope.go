package state

import "fmt"

// Scope says how long a key's value lives.
type Scope uint8

const (
	// ScopeRun values are cleared when a run starts. It is the zero Scope.
	ScopeRun Scope = iota
	// ScopeThread values are kept between the runs of a thread.
	ScopeThread
)

// String returns "run" or "thread".
func (s Scope) String() string {
	switch s {
	case ScopeRun:
		return "run"
	case ScopeThread:
		return "thread"
	}
	return fmt.Sprintf("Scope(%d)", uint8(s))
}

// MarshalText writes the text form of a known scope and refuses others.
func (s Scope) MarshalText() ([]byte, error) {
	if s > ScopeThread {
		return nil, fmt.Errorf("state: %v is not a scope, use ScopeRun or ScopeThread", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads "run" or "thread".
func (s *Scope) UnmarshalText(text []byte) error {
	switch string(text) {
	case "run":
		*s = ScopeRun
	case "thread":
		*s = ScopeThread
	default:
		return fmt.Errorf("state: unknown scope %q, want \"run\" or \"thread\"", text)
	}
	return nil
}

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

// String returns "exclusive" or "commutative".
func (m MergeStrategy) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Commutative:
		return "commutative"
	}
	return fmt.Sprintf("MergeStrategy(%d)", uint8(m))
}

// MarshalText writes the text form of a known strategy and refuses others.
func (m MergeStrategy) MarshalText() ([]byte, error) {
	if m > Commutative {
		return nil, fmt.Errorf("state: %v is not a merge strategy, use Exclusive or Commutative", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads "exclusive" or "commutative".
func (m *MergeStrategy) UnmarshalText(text []byte) error {
	switch string(text) {
	case "exclusive":
		*m = Exclusive
	case "commutative":
		*m = Commutative
	default:
		return fmt.Errorf("state: unknown merge strategy %q, want \"exclusive\" or \"commutative\"", text)
	}
	return nil
}
