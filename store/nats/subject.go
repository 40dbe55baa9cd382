package nats

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/store"
)

// The kinds of subjects, below Options.Prefix. What belongs to a thread has its id as the
// next token. All but notices are in the stream.
//
//	j.<thread>                            one message a revision; the last one is the thread's head
//	l.<thread>                            the lease
//	b.<thread>.<revision>.<part>          records and snapshots that do not fit into one message
//	e.<thread>.<revision>.<index>.s       an effect: first its body, then each change of its state
//	e.<thread>.<revision>.<index>.<part>  a body that does not fit into one message
//	e.<thread>.d                          the thread was deleted, and its effects are gone
//	v.<thread>                            confirmations, which mean nothing once they landed
//	n.<topic>                             notices
const (
	kindJournal = "j"
	kindLease   = "l"
	kindPart    = "b"
	kindEffect  = "e"
	kindConfirm = "v"
	kindNotice  = "n"
)

// MaxName is the largest number of bytes of a thread id, a lane, an owner or a topic, as it
// is written in a subject: letters, digits, "-" and "_" take one byte, others three.
const MaxName = 1024

// token writes any text as one token of a subject. The empty text is a lone "=".
func token(text string) string {
	if text == "" {
		return "="
	}
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case plain(c):
			b.WriteByte(c)
		default:
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'=', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// parseToken reads what token wrote, and nothing else.
func parseToken(token string) (text string, ok bool) {
	if token == "=" {
		return "", true
	}
	var b []byte
	for i := 0; i < len(token); i++ {
		switch c := token[i]; {
		case plain(c):
			b = append(b, c)
		case c == '=' && i+2 < len(token):
			n, ok := hexByte(token[i+1], token[i+2])
			if !ok || plain(n) {
				return "", false
			}
			b = append(b, n)
			i += 2
		default:
			return "", false
		}
	}
	return string(b), len(b) > 0
}

func hexByte(high, low byte) (byte, bool) {
	const digits = "0123456789ABCDEF"
	h, l := strings.IndexByte(digits, high), strings.IndexByte(digits, low)
	return byte(h<<4 | l), h >= 0 && l >= 0
}

// checkName refuses texts that are too long for a subject.
func checkName(what, text string) error {
	if n := len(token(text)); n > MaxName {
		return fmt.Errorf("nats: a %s takes %d bytes in a subject, and the limit is %d; make it shorter: %w", what, n, MaxName, store.ErrTooLarge)
	}
	return nil
}

func (j *Journal) subject(kind, thread string) string {
	return j.prefix + "." + kind + "." + token(thread)
}

// below is the filter for all subjects that begin with that of the thread.
func (j *Journal) below(kind, thread string) string { return j.subject(kind, thread) + ".>" }

// effectPrefix begins the subjects of an effect.
func (j *Journal) effectPrefix(r store.EffectRef) string {
	return j.subject(kindEffect, r.Thread) + "." + strconv.FormatUint(r.Revision, 10) + "." + strconv.FormatUint(uint64(r.Index), 10)
}

// effectSubject is that of an effect's body and state.
func (j *Journal) effectSubject(r store.EffectRef) string { return j.effectPrefix(r) + ".s" }

// effects is the filter for all effects.
func (j *Journal) effects() string { return j.prefix + "." + kindEffect + ".>" }

// deletionSubject is below those of the thread's effects, so that one filter has them all.
func (j *Journal) deletionSubject(thread string) string {
	return j.subject(kindEffect, thread) + ".d"
}

// blobSubject begins the subjects of the parts of a record or snapshot, which a number ends.
func (j *Journal) blobSubject(thread string, revision uint64, kind byte) string {
	return j.subject(kindPart, thread) + "." + strconv.FormatUint(revision, 10) + "." + string(kind)
}

// parseSubject takes the prefix off a subject and splits the rest.
func (j *Journal) parseSubject(subject string) (kind, thread string, rest []string, ok bool) {
	text, ok := strings.CutPrefix(subject, j.prefix+".")
	parts := strings.Split(text, ".")
	if !ok || len(parts) < 2 {
		return "", "", nil, false
	}
	thread, ok = parseToken(parts[1])
	return parts[0], thread, parts[2:], ok
}

// parseEffect returns the effect that a subject has the state of.
func parseEffect(thread string, rest []string) (ref store.EffectRef, ok bool) {
	if len(rest) != 3 || rest[2] != "s" {
		return ref, false
	}
	revision, err1 := strconv.ParseUint(rest[0], 10, 64)
	index, err2 := strconv.ParseUint(rest[1], 10, 32)
	return store.EffectRef{Thread: thread, Revision: revision, Index: uint32(index)}, err1 == nil && err2 == nil
}
