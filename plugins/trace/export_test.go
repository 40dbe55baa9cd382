package trace

import (
	"errors"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

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

// Encoded is an event's line by the encoder and by Detailed's way, and whether the first
// knew the event and left it alone.
func Encoded(r Rules, all []engine.Event, check func(e engine.Event, quick, slow []byte, err error, known, clear bool)) {
	c := r.censor()
	enc := newEncoder(c)
	for _, e := range all {
		line, clear := enc.line(e)
		known := line != nil
		_, quick, err := enc.detailed(e)
		_, slow, want := c.detailed(e)
		if (err == nil) != (want == nil) {
			err = errors.Join(errors.New("only one fails"), err, want)
		} else {
			err = nil
		}
		check(e, quick, slow, err, known, clear)
	}
}

// Usual is how many of the commits are told of without state.DeltaOf.
func Usual(r Rules, all []engine.Event) (n int) {
	enc := newEncoder(r.censor())
	for _, e := range all {
		if c, ok := e.(engine.Committed); ok {
			enc.event(c)
			begin := len(enc.out)
			if enc.usual.is && enc.usualChanges(&c) {
				n++
			}
			enc.out = enc.out[:begin]
		}
	}
	return n
}
