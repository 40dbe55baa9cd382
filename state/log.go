package state

import (
	"errors"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
)

// Log is a list in the state that batches append to, in batch order. It is
// Commutative: any number of batches may append in one commit, and a batch
// that comes after a rejected one is held back with it so that the order
// stays. It is a small comparable handle, safe for concurrent use. The zero
// Log reads as empty and cannot be registered.
type Log[T any] struct{ handle }

// NewLog makes a log. Faults of its options are reported by [NewStore].
// Options.Initial is not used; a log starts empty.
func NewLog[T any](name string, o Options[T]) Log[T] {
	empty := List[T]{clone: o.Clone}
	decode := func(raw []byte, one func([]byte) (T, error)) (List[T], error) {
		items, err := jsonarray.Decode(raw, one)
		return empty.Append(items...), err
	}
	lists := Options[List[T]]{
		Scope: o.Scope, Shared: o.Shared, Version: o.Version, Transient: o.Transient,
		Initial: func() List[T] { return empty },
		Codec: Codec[List[T]]{
			Encode: func(l List[T]) ([]byte, error) { return encodeAll(l.All(), o.Codec, false) },
			Decode: func(raw []byte) (List[T], error) { return decode(raw, o.Codec.decode) },
		},
	}
	if o.Migrate != nil {
		lists.Migrate = func(from int, raw []byte) (List[T], error) {
			return decode(raw, func(raw []byte) (T, error) { return o.Migrate(from, raw) })
		}
	}
	d := &keyDef[List[T], []T]{def: lists.def(name, Commutative), o: lists}
	d.ordered, d.plain = true, o.Clone == nil
	d.faults = errors.Join(d.invalid(), d.aliasing(aliasText[T](), "element", o.Clone != nil))
	d.take = func(items []T) []T {
		own := make([]T, len(items))
		for i, item := range items {
			own[i] = copied(o.Clone, item)
		}
		return own
	}
	d.apply = func(l List[T], items []T) (List[T], error) {
		next := l.take(items)
		if o.Check != nil {
			for _, item := range next.Tail(len(items)) {
				var none T
				if err := o.Check(none, item); err != nil {
					return l, err
				}
			}
		}
		return next, nil
	}
	d.tail = func(was, is List[T]) ([]byte, bool, error) {
		if !is.Extends(was) {
			return nil, false, nil
		}
		raw, err := encodeAll(is.Tail(is.Len()-was.Len()), o.Codec, false)
		return raw, true, err
	}
	d.extend = func(l, more List[T]) List[T] { return l.Append(more.Slice()...) }
	l := Log[T]{handle{&d.def}}
	d.handle, d.impl = l, d
	return l
}

// Get returns the list in s. Elements read from it are the caller's own if the
// log has Clone.
func (l Log[T]) Get(s *Snapshot) List[T] { return Key[List[T], []T](l).Get(s) }

// Append returns the update that puts items behind the list's elements.
func (l Log[T]) Append(items ...T) Update {
	if l.key() != nowhere && len(items) == 0 {
		return Update{}
	}
	return Key[List[T], []T](l).update(verbAppend, items)
}

// Replace returns the update that makes items the whole list. It touches the
// whole log exclusively.
func (l Log[T]) Replace(items ...T) Update { return Key[List[T], []T](l).update(verbReplace, items) }
