package inference

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// packed is a sorted map from string to string folded into one string: length-prefixed names and values in order of
// the names. Equal maps have equal text, so structs that hold one stay comparable and free of shared memory. It suits
// the handful of entries found in overrides; reading one entry is a scan.
type packed string

func pack(m map[string]string) packed {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		writeItem(&b, name)
		writeItem(&b, m[name])
	}
	return packed(b.String())
}

func (p packed) all() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := string(p); rest != ""; {
			var name, value string
			name, rest = readItem(rest)
			value, rest = readItem(rest)
			if !yield(name, value) {
				return
			}
		}
	}
}

func (p packed) get(name string) (string, bool) {
	for n, v := range p.all() {
		if n == name {
			return v, true
		}
	}
	return "", false
}

func (p packed) has(name string) bool {
	_, ok := p.get(name)
	return ok
}

func (p packed) with(name, value string) packed {
	m := maps.Collect(p.all())
	m[name] = value
	return pack(m)
}

func (p packed) without(drop func(name string) bool) packed {
	m := maps.Collect(p.all())
	maps.DeleteFunc(m, func(name, _ string) bool { return drop(name) })
	return pack(m)
}

// over returns p with the entries of later written over its own.
func (p packed) over(later packed) packed {
	switch {
	case later == "":
		return p
	case p == "":
		return later
	}
	m := maps.Collect(p.all())
	maps.Insert(m, later.all())
	return pack(m)
}

func (p packed) size() int {
	n := 0
	for range p.all() {
		n++
	}
	return n
}

func writeItem(b *strings.Builder, item string) {
	n := uint(len(item))
	for ; n >= 0x80; n >>= 7 {
		b.WriteByte(byte(n) | 0x80)
	}
	b.WriteByte(byte(n))
	b.WriteString(item)
}

func readItem(s string) (item, rest string) {
	n, shift, at := 0, 0, 0
	for ; s[at] >= 0x80; at++ {
		n |= int(s[at]&0x7f) << shift
		shift += 7
	}
	n |= int(s[at]) << shift
	at++
	return s[at : at+n], s[at+n:]
}
