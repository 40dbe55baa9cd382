package state

import "github.com/ddd26017/fixpoint/internal/enum"

// Scope says how long a key's value lives.
type Scope uint8

const (
	// ScopeRun values are cleared when a run starts. It is the zero Scope.
	ScopeRun Scope = iota
	// ScopeThread values are kept between the runs of a thread.
	ScopeThread
)

var scopes = enum.Names{Package: "state", Texts: []string{"run", "thread"}}

// String returns "run" or "thread".
func (s Scope) String() string { return scopes.Text("Scope", uint8(s)) }

// MarshalText writes the text form of a known scope and refuses others.
func (s Scope) MarshalText() ([]byte, error) { return scopes.Marshal("Scope", uint8(s)) }

// UnmarshalText reads "run" or "thread".
func (s *Scope) UnmarshalText(text []byte) error { return scopes.Parse("scope", text, (*uint8)(s)) }

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

var strategies = enum.Names{Package: "state", Texts: []string{"exclusive", "commutative"}}

// String returns "exclusive" or "commutative".
func (m MergeStrategy) String() string { return strategies.Text("MergeStrategy", uint8(m)) }

// MarshalText writes the text form of a known strategy and refuses others.
func (m MergeStrategy) MarshalText() ([]byte, error) {
	return strategies.Marshal("MergeStrategy", uint8(m))
}

// UnmarshalText reads "exclusive" or "commutative".
func (m *MergeStrategy) UnmarshalText(text []byte) error {
	return strategies.Parse("merge strategy", text, (*uint8)(m))
}
