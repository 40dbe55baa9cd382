package state

import (
	"bytes"
	"fmt"
	"iter"
)

// Log is a list in the state that batches append to, in batch order. It is
// Commutative: any number of batches may append in one commit, and a batch
// that comes after a rejected one is held back with it so that the order
// stays. It is a small comparable handle, safe for concurrent use. The zero
// Log reads as empty and cannot be registered.
type Log[T any] struct{ k Key[List[T], []T] }

// NewLog makes a log. Faults of its options are reported by [NewStore].
// Options.Initial is not used; a log starts empty.
func NewLog[T any](name string, o Options[T]) Log[T] {
	d := &logDef[T]{o: o}
	d.def = def{
		name: name, scope: o.Scope, merge: Commutative, ordered: true,
		shared: o.Shared, hidden: o.Transient, version: o.Version,
	}
	d.verb, d.tame = "append", true
	d.apply = func(l List[T], items []T) (List[T], error) {
		if err := d.refuse(items); err != nil {
			return l, err
		}
		return l.Append(items...), nil
	}
	d.cloneUp = d.copies
	d.cfg.Initial = func() List[T] { return List[T]{clone: o.Clone} }
	d.cfg.Codec = Codec[List[T]]{
		Encode: func(l List[T]) ([]byte, error) {
			return encodeArray(func(yield func(T) bool) {
				for _, item := range l.All() {
					if !yield(item) {
						return
					}
				}
			}, o.Codec)
		},
	}
	k := d.handleAs(d)
	l := Log[T]{k}
	d.def.handle = l
	return l
}

// logDef is the definition of a log: a key of lists with element options.
type logDef[T any] struct {
	keyDef[List[T], []T]
	o Options[T]
}

// Name returns the name the log was made with.
func (l Log[T]) Name() string { return l.k.Name() }

// Scope returns how long the elements live.
func (l Log[T]) Scope() Scope { return l.k.Scope() }

// Merge returns Commutative.
func (l Log[T]) Merge() MergeStrategy { return l.k.Merge() }

func (l Log[T]) key() *def { return l.k.key() }

// Get returns the list in s. Elements read from it are the caller's own if the
// log has Clone.
func (l Log[T]) Get(s *Snapshot) List[T] { return l.k.Get(s) }

// Append returns the update that puts items behind the list's elements.
func (l Log[T]) Append(items ...T) Update {
	if l.k.d == nil {
		return unregistered()
	}
	if len(items) == 0 {
		return Update{}
	}
	return l.k.With(items)
}

// Replace returns the update that makes items the whole list. It touches the
// whole log exclusively.
func (l Log[T]) Replace(items ...T) Update {
	if l.k.d == nil {
		return unregistered()
	}
	d := l.k.d.impl.(*logDef[T])
	return Update{d: &l.k.d.def, kind: kindExclusive, op: &replaceOp[T]{d, d.copies(items)}}
}

// Reset returns the update that empties the log. It touches the whole log
// exclusively.
func (l Log[T]) Reset() Update { return l.k.Reset() }

// copies returns the items in a slice of their own, each cloned.
func (d *logDef[T]) copies(items []T) []T {
	own := make([]T, len(items))
	copy(own, items)
	if d.o.Clone != nil {
		for i := range own {
			own[i] = d.o.Clone(own[i])
		}
	}
	return own
}

func (d *logDef[T]) refuse(items []T) error {
	if d.o.Check == nil {
		return nil
	}
	for _, item := range items {
		var none T
		if d.o.Clone != nil {
			item = d.o.Clone(item)
		}
		if err := d.o.Check(none, item); err != nil {
			return err
		}
	}
	return nil
}

func (d *logDef[T]) decode(raw []byte, version int) (importOp, error) {
	items, err := decodeArray(raw, func(raw []byte) (T, error) {
		return decodeVersion(d.o.Codec, version, d.version, d.o.Migrate, raw)
	})
	if err != nil {
		return nil, err
	}
	list := d.start().Append(items...)
	return func(at *stamp) cell { return &box[List[T]]{at, list} }, nil
}

func (d *logDef[T]) inspect(c cell, visit func(any)) {
	if b, ok := c.(*box[List[T]]); ok {
		b.value.blocks(0, func(_ int, items []T) bool {
			for i := range items {
				visit(&items[i])
			}
			return true
		})
	}
}

type replaceOp[T any] struct {
	d     *logDef[T]
	items []T
}

func (o *replaceOp[T]) apply(_ cell, _ bool, at *stamp) (cell, error) {
	if err := o.d.refuse(o.items); err != nil {
		return nil, err
	}
	return &box[List[T]]{at, o.d.start().Append(o.items...)}, nil
}

func (o *replaceOp[T]) name() string { return "replace" }
func (o *replaceOp[T]) entry() any   { return nil }
func (o *replaceOp[T]) arg() any     { return o.d.copies(o.items) }

// encodeArray writes a JSON array, each element by its codec.
func encodeArray[T any](all iter.Seq[T], c Codec[T]) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for item := range all {
		raw, err := c.encode(item)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(raw)
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

func decodeArray[T any](raw []byte, decode func([]byte) (T, error)) ([]T, error) {
	parts, err := elements(raw)
	if err != nil {
		return nil, err
	}
	items := make([]T, len(parts))
	for i, part := range parts {
		if items[i], err = decode(part); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return items, nil
}
