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
