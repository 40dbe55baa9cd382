package inference

import "encoding/json"

// Opt is a value that may be left unset. The zero Opt is unset, and Some(0) is not: a temperature of 0 is a wish like
// any other. Opt is a plain value; it is comparable when T is.
//
// In JSON an unset Opt is null. Tag fields with omitzero to leave it out.
type Opt[T any] struct {
	value T
	set   bool
}

// Some returns an Opt that is set to v.
func Some[T any](v T) Opt[T] { return Opt[T]{value: v, set: true} }

// None returns an unset Opt, the same as its zero value.
func None[T any]() Opt[T] { return Opt[T]{} }

// Get returns the value and true, or the zero value and false when o is unset.
func (o Opt[T]) Get() (T, bool) { return o.value, o.set }

// Or returns the value, or def when o is unset.
func (o Opt[T]) Or(def T) T {
	if o.set {
		return o.value
	}
	return def
}

// IsSet reports whether o holds a value.
func (o Opt[T]) IsSet() bool { return o.set }

// IsZero reports whether o is unset. It is what the omitzero tag asks.
func (o Opt[T]) IsZero() bool { return !o.set }

// MarshalJSON writes the value, or null when o is unset.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.set {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads a value; null leaves o unset.
func (o *Opt[T]) UnmarshalJSON(text []byte) error {
	*o = Opt[T]{}
	var v *T // nil for null
	err := json.Unmarshal(text, &v)
	if err == nil && v != nil {
		*o = Some(*v)
	}
	return err
}
