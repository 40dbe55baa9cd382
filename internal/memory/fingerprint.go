package memory

import (
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"time"
)

// Parts returns which parts of a struct count, and whether it knows the struct.
type Parts func(reflect.Value) ([]reflect.Value, bool)

// Fingerprint hashes v and everything that it refers to, following pointers, maps
// and slices, unexported fields included. Fingerprints of one seed differ when
// something was changed in place between them, but for a collision. Functions and
// channels count by identity, and cycles end. The memory must not be written to
// meanwhile.
//
// Of a struct for which parts returns true only the values that it returns count.
// parts may be nil.
func Fingerprint(seed maphash.Seed, v reflect.Value, parts Parts) uint64 {
	return fingerprint(seed, parts, nil, v)
}

// printer hashes values.
type printer struct {
	hash  maphash.Hash
	parts Parts
	path  []visit       // what is being hashed, outermost first
	seen  map[visit]int // what was met before, by number, so that cycles end
}

type visit struct {
	at  uintptr
	len int
	typ reflect.Type
}

// fingerprint hashes values that were met inside of those of the path.
func fingerprint(seed maphash.Seed, parts Parts, path []visit, values ...reflect.Value) uint64 {
	p := printer{parts: parts, seen: make(map[visit]int), path: slices.Clone(path)}
	p.hash.SetSeed(seed)
	for i, v := range path {
		p.seen[v] = i + 1
	}
	for _, v := range values {
		p.value(v)
	}
	return p.hash.Sum64()
}

func (p *printer) number(n uint64) { maphash.WriteComparable(&p.hash, n) }

func (p *printer) value(v reflect.Value) {
	p.number(uint64(v.Kind()))
	switch k := v.Kind(); {
	case v.CanInt():
		p.number(uint64(v.Int()))
	case v.CanUint():
		p.number(v.Uint())
	case v.CanFloat():
		p.number(math.Float64bits(v.Float()))
	case v.CanComplex():
		p.number(math.Float64bits(real(v.Complex())))
		p.number(math.Float64bits(imag(v.Complex())))
	case k == reflect.Bool:
		maphash.WriteComparable(&p.hash, v.Bool())
	case k == reflect.String:
		maphash.WriteComparable(&p.hash, v.String())
	case k == reflect.Array:
		p.items(v, v.Len())
	case k == reflect.Struct:
		p.fields(v)
	case k == reflect.Pointer, k == reflect.Slice, k == reflect.Map:
		p.reference(v)
	case k != reflect.Interface: // functions, channels
		p.number(uint64(v.Pointer()))
	case !v.IsNil():
		maphash.WriteComparable(&p.hash, v.Elem().Type())
		p.value(v.Elem())
	}
}

func (p *printer) items(v reflect.Value, n int) {
	for i := range n {
		p.value(v.Index(i))
	}
}

// reference hashes what v refers to, or a number if it met that before.
func (p *printer) reference(v reflect.Value) {
	n := -1
	if v.Kind() != reflect.Pointer {
		n = v.Len()
	}
	id := visit{v.Pointer(), n, v.Type()}
	p.number(uint64(n))
	p.number(uint64(p.seen[id]))
	if p.seen[id] != 0 || v.IsNil() {
		return
	}
	p.seen[id] = len(p.seen) + 1
	p.path = append(p.path, id)
	switch v.Kind() {
	case reflect.Pointer:
		p.value(v.Elem())
	case reflect.Slice:
		p.items(v, n)
	case reflect.Map:
		sum := uint64(0) // of each entry by itself, since a map has no order
		for it := v.MapRange(); it.Next(); {
			sum += fingerprint(p.hash.Seed(), p.parts, p.path, it.Key(), it.Value())
		}
		p.number(sum)
	}
	p.path = p.path[:len(p.path)-1]
}

func (p *printer) fields(v reflect.Value) {
	n := v.NumField()
	if v.Type() == reflect.TypeFor[time.Time]() {
		n-- // the last one, its location, is shared by all and changes inside
	}
	if p.parts != nil {
		if parts, ok := p.parts(v); ok {
			for _, part := range parts {
				p.value(part)
			}
			return
		}
	}
	for i := range n {
		p.value(v.Field(i))
	}
}
