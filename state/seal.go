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
	for k := range s.Keys() {
		if d := k.key(); d.shared && s.cell(d) != nil {
			seal.sums[d] = seal.sum(d)
		}
	}
	return seal
}

// Verify takes the fingerprints again. It returns a *MutationError that names
// the keys whose values changed in place.
func (s *Seal) Verify() error {
	var changed []string
	for d, sum := range s.sums {
		if s.sum(d) != sum {
			changed = append(changed, d.name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return &MutationError{Keys: changed}
}

func (s *Seal) sum(d *def) uint64 { return fingerprint(s.seed, nil, reflect.ValueOf(s.snap.cell(d))) }

// printer hashes values.
type printer struct {
	hash maphash.Hash
	path []visit       // what is being hashed, outermost first
	seen map[visit]int // what was met before, by number, so that cycles end
}

type visit struct {
	at  uintptr
	len int
	typ reflect.Type
}

// fingerprint hashes values that were met inside of those of the path.
func fingerprint(seed maphash.Seed, path []visit, values ...reflect.Value) uint64 {
	p := printer{seen: make(map[visit]int), path: slices.Clone(path)}
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
			sum += fingerprint(p.hash.Seed(), p.path, it.Key(), it.Value())
		}
		p.number(sum)
	}
	p.path = p.path[:len(p.path)-1]
}

func (p *printer) fields(v reflect.Value) {
	t, n := v.Type(), v.NumField()
	switch {
	case t == reflect.TypeFor[time.Time]():
		n-- // the last one, its location, is shared by all and changes inside
	case ours(t, "List["):
		// Slots behind the end belong to longer lists that share the block.
		n := v.FieldByName("n")
		p.value(n)
		p.value(v.FieldByName("full"))
		if last := int(n.Int()) - 1; last >= 0 {
			p.items(v.FieldByName("tail").Elem().FieldByName("items"), last%blockSize+1)
		}
		return
	case ours(t, "block["):
		p.value(v.FieldByName("items"))
		return
	}
	for i := range n {
		p.value(v.Field(i))
	}
}
