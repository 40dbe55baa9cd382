package sim

import (
	"bytes"
	"fmt"
	"strings"
)

// Tokens are texts that hooks and tools put into the state so that the ledger can
// read in a record, without knowing how the engine writes it, what it is about.
const (
	tokenResult   = "result"   // call, attempt
	tokenDecision = "decision" // ticket, answer
	tokenDurable  = "durable"  // who emitted it, attempt
	tokenPlain    = "plain"
)

// token is one of them: @kind:field:field@.
type token struct {
	text, kind string
	fields     []string
}

func newToken(kind string, fields ...any) string {
	text := "@" + kind
	for _, f := range fields {
		text += fmt.Sprintf(":%v", f)
	}
	return text + "@"
}

// tokens returns those in some bytes.
func tokens(b []byte) (found []token) {
	for {
		at := bytes.IndexByte(b, '@')
		if at < 0 {
			return found
		}
		b = b[at+1:]
		end := bytes.IndexByte(b, '@')
		if end < 0 {
			return found
		}
		fields := strings.Split(string(b[:end]), ":")
		found = append(found, token{text: "@" + string(b[:end]) + "@", kind: fields[0], fields: fields[1:]})
		b = b[end+1:]
	}
}
