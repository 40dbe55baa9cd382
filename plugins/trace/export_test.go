package trace

import "time"

// Covered is how much time stretches cover together.
func Covered(parts [][2]time.Duration) time.Duration {
	var s stretches
	for _, p := range parts {
		s.add(p[0], p[1])
	}
	return s.length()
}

// Walked is a line of an event as the rules will have it, by the way that all could take
// and by the one that most do.
func Walked(r Rules, typ string, line []byte) (all, most []byte) {
	c := r.censor()
	all, _, _ = c.walk(typ, line, true)
	most, _, _ = c.line(typ, line)
	return all, most
}
