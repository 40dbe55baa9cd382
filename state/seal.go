package state

import (
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"time"
)

// Seal is a fingerprint of the values that were promised never to change. It
// finds code that breaks the promise. It is safe for concurrent use.
type Seal struct {
	snap *Snapshot
	seed maphash.Seed
	sums map[*def]uint64
}

// SealSnapshot fingerprints the values of all keys with Shared, following
// pointers, maps and slices, unexported fields included. It is meant for tests
// and costs as much as the values are large. Functions and channels count by
// identity. The values must not be written to meanwhile.
func SealSnapshot(s *Snapshot) *Seal {
	seal := &Seal{snap: s, seed: maphash.MakeSeed(), sums: map[*def]uint64{}}
	if s != nil {
		for _, d := range s.schema.defs {
			if c := s.cell(d); d.shared && c != nil {
				seal.sums[d] = seal.sum(d, c)
			}
		}
	}
	return seal
}

// Verify takes the fingerprints again. It returns a *MutationError that names
// the keys whose values changed in place.
func (s *Seal) Verify() error {
	var changed []string
	for d, sum := range s.sums {
		if s.sum(d, s.snap.cell(d)) != sum {
			changed = append(changed, d.name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return &MutationError{Keys: changed}
}

func (s *Seal) sum(d *def, c cell) uint64 {
	p := newPrinter(s.seed, nil)
	d.impl.inspect(c, func(root any) { p.value(reflect.ValueOf(root).Elem()) })
	return p.hash.Sum64()
}

// printer hashes values.
type printer struct {
	hash maphash.Hash
	path []visit          // what is being hashed, outermost first
	seen map[visit]uint64 // what was met before, so that cycles end
}

type visit struct {
	at  uintptr
	len int
	typ reflect.Type
}

func newPrinter(seed maphash.Seed, path []visit) *printer {
	p := &printer{seen: make(map[visit]uint64), path: slices.Clone(path)}
	p.hash.SetSeed(seed)
	for i, v := range path {
		p.seen[v] = uint64(i) + 1 // 0 is nil
	}
	return p
}

func (p *printer) number(n uint64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	_, _ = p.hash.Write(b[:])
}

func (p *printer) text(s string) {
	p.number(uint64(len(s)))
	_, _ = p.hash.WriteString(s)
}

// once hashes what v refers to with inside, or a number if it met it before.
func (p *printer) once(v reflect.Value, n int, inside func()) {
	id := visit{v.Pointer(), n, v.Type()}
	if number, met := p.seen[id]; met {
		p.number(number)
		return
	}
	p.seen[id] = uint64(len(p.seen)) + 1
	p.path = append(p.path, id)
	inside()
	p.path = p.path[:len(p.path)-1]
}

func (p *printer) value(v reflect.Value) {
	if !v.IsValid() {
		p.number(0)
		return
	}
	p.number(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			p.number(1)
		} else {
			p.number(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		p.number(math.Float64bits(v.Float()))
	case reflect.Complex64, reflect.Complex128:
		p.number(math.Float64bits(real(v.Complex())))
		p.number(math.Float64bits(imag(v.Complex())))
	case reflect.String:
		p.text(v.String())
	case reflect.Array:
		for i := range v.Len() {
			p.value(v.Index(i))
		}
	case reflect.Struct:
		p.fields(v)
	case reflect.Interface:
		if !v.IsNil() {
			p.text(v.Elem().Type().String())
			p.value(v.Elem())
		}
	case reflect.Pointer:
		if v.IsNil() {
			p.number(0)
		} else {
			p.once(v, -1, func() { p.value(v.Elem()) })
		}
	case reflect.Slice:
		p.number(uint64(v.Len()))
		if v.Len() > 0 {
			p.once(v, v.Len(), func() {
				for i := range v.Len() {
					p.value(v.Index(i))
				}
			})
		}
	case reflect.Map:
		p.entries(v)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		p.number(uint64(v.Pointer()))
	}
}

func (p *printer) fields(v reflect.Value) {
	t := v.Type()
	switch {
	case t == reflect.TypeFor[time.Time]():
		p.value(v.Field(0)) // its location is shared by all and changes inside
		p.value(v.Field(1))
	case ours(t, "List["):
		// Slots behind the end belong to longer lists that share the block.
		n := v.FieldByName("n")
		p.value(n)
		p.value(v.FieldByName("full"))
		if n := int(n.Int()); n > 0 {
			items := v.FieldByName("tail").Elem().FieldByName("items")
			for i := range (n-1)%blockSize + 1 {
				p.value(items.Index(i))
			}
		}
	case ours(t, "block["):
		p.value(v.FieldByName("items"))
	default:
		for i := range v.NumField() {
			p.value(v.Field(i))
		}
	}
}

// entries hashes each entry by itself, since a map has no order.
func (p *printer) entries(v reflect.Value) {
	if v.IsNil() {
		p.number(0)
		return
	}
	p.number(uint64(v.Len()) + 1)
	p.once(v, -1, func() {
		sum := uint64(0)
		for it := v.MapRange(); it.Next(); {
			one := newPrinter(p.hash.Seed(), p.path)
			one.value(it.Key())
			one.value(it.Value())
			sum += one.hash.Sum64()
		}
		p.number(sum)
	})
}
