package served

import (
	"slices"

	"github.com/ddd26017/fixpoint/engine"
)

// pack makes bytes ready for a gob, which does not tell empty ones from nil.
func pack(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{0}, b...)
}

// unpack undoes pack.
func unpack(b []byte) []byte {
	if b == nil {
		return nil
	}
	return b[1:]
}

func mapCommit(c engine.JournalCommit, f func([]byte) []byte) engine.JournalCommit {
	c.Record, c.Snapshot, c.Effects = f(c.Record), f(c.Snapshot), slices.Clone(c.Effects)
	for i := range c.Effects {
		c.Effects[i].Body = f(c.Effects[i].Body)
	}
	return c
}

// mapImage changes an image, which belongs to the caller, in place.
func mapImage(image engine.JournalImage, f func([]byte) []byte) engine.JournalImage {
	image.Snapshot = f(image.Snapshot)
	for i := range image.Tail {
		image.Tail[i].Record = f(image.Tail[i].Record)
	}
	return image
}

// mapClaims changes claims, which belong to the caller, in place.
func mapClaims(claims []engine.Claim, f func([]byte) []byte) []engine.Claim {
	for i := range claims {
		claims[i].Effect.Body = f(claims[i].Effect.Body)
	}
	return claims
}
