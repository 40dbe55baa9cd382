package sim

import "time"

// dice are throws that depend on nothing but the seed and on what they are about.
type dice uint64

// about returns the dice for one matter.
func (d dice) about(parts ...any) dice {
	h := uint64(d)
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			h ^= uint64(len(p)) << 32
			for i := range len(p) {
				h = (h ^ uint64(p[i])) * 0x100000001b3
			}
		case int:
			h ^= uint64(p)
		case uint64:
			h ^= p
		default:
			panic("sim: dice are about texts and numbers")
		}
		h = mix(h)
	}
	return dice(h)
}

// mix spreads a number evenly; the constants are those of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n returns a number from 0 to limit-1.
func (d dice) n(limit int, parts ...any) int {
	return int(uint64(d.about(parts...)) >> 1 % uint64(limit))
}

// chance is true in so many of a thousand cases.
func (d dice) chance(permille int, parts ...any) bool { return d.n(1000, parts...) < permille }

// span returns a time from 0 to less than limit.
func (d dice) span(limit time.Duration, parts ...any) time.Duration {
	return time.Duration(d.n(int(limit/time.Millisecond), parts...)) * time.Millisecond
}
