package serve

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"strings"
)

// Principal is whom a request comes from, and a thread and its runs belong to. Its ID
// must be the same for as long as they are to be found, also after a restart.
type Principal struct{ ID string }

// Sole is an Options.Authorize that lets everybody in as one and the same principal. It
// is for programs that only their owner can reach.
func Sole(*http.Request) (Principal, error) { return Principal{ID: "sole"}, nil }

type principalKey struct{}

// PrincipalOf returns whom a run, or the part of it since the last decisions, was started
// by. ctx is that of a tool, a hook, a gate or a model.
func PrincipalOf(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// mark is between a namespace and the rest of an id. No id from outside has it.
const mark = "~"

// namespace is where the threads of a principal are: the engine's id of a thread begins
// with it. So two principals can use one thread id without learning of each other, a
// thread keeps its owner for as long as it has its id, and the journal lists the threads
// of a principal one after the other. It is a hash, for an ID may be of any length, and
// need not be known to everyone who may read the store.
func (p Principal) namespace() string {
	sum := sha256.Sum256([]byte("fixpoint/serve\x00" + p.ID))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// caller is a principal with what follows from it.
type caller struct {
	principal Principal
	space     string // its namespace and the mark
}

func callerOf(p Principal) caller { return caller{p, p.namespace() + mark} }

// inside is the engine's id for one from outside.
func (c caller) inside(id string) string { return c.space + id }

// outside is a text as the caller may see it: with its own ids.
func (c caller) outside(text string) string { return strings.ReplaceAll(text, c.space, "") }

// longestID is how long the id of a thread may be.
const longestID = 100

// goodID reports whether a text can be the id of a thread or, with a dot in it, of a run.
func goodID(id string) bool {
	for i, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
		case i > 0 && (r == '-' || r == '.' || r == ':'):
		default:
			return false
		}
	}
	return id != ""
}
