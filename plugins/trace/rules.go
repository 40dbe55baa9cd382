package trace

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/redact"
)

// The bounds that hold where Rules have none, in bytes of JSON.
const (
	DefaultMaxValue   = 32 << 10
	DefaultMaxElement = 8 << 10
	DefaultMaxEvent   = 512 << 10
)

// Hidden is what stands where a part of a text was hidden.
const Hidden = "[hidden]"

// Rules say what a trace does not tell, and how long is what it tells. The zero value
// hides what DefaultMembers names and what looks like a credential, and has the default
// bounds. Rules are only read, and may be shared.
type Rules struct {
	// Keys are patterns, as of path.Match, of the state keys whose values are hidden. One
	// that is malformed hides all.
	Keys []string
	// Members are names of members besides DefaultMembers, in whatever JSON an event has,
	// whose values are hidden; case and what is neither letter nor digit do not matter,
	// and names that end with one count too. JSON that is part of a text, or of which a
	// part is missing, counts.
	Members []string
	// Texts are hidden wherever a text has them.
	Texts []*regexp.Regexp
	// Secrets are hidden wherever they are, in names and ids too, and in the numbers of
	// values, also as JSON writes them. Those shorter than ShortestSecret would be found everywhere and are left alone.
	Secrets []string
	// Bare leaves out the default members and the looks of credentials.
	Bare bool
	// Chunks keeps the texts of inference_chunk events. They are left out otherwise, since
	// what is to be hidden may be spread over several; inference_finished has the whole
	// text. What is known by its looks or an exact text is hidden from the chunk on in
	// which it can be known; and that one is hidden.
	Chunks bool
	// MaxValue is how long one value or text may be, MaxElement one element of a value
	// that is an array, or a text in a value, and MaxEvent a whole event. 0 means the
	// default, less than 0 no bound.
	MaxValue, MaxElement, MaxEvent int
}

// ShortestSecret is how many bytes a secret has at least.
const ShortestSecret = 4

// DefaultMembers returns the names, or ends of names, of members whose values are hidden.
func DefaultMembers() []string { return slices.Clone(defaultMembers) }

var defaultMembers = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "api_key", "access_key", "secret_key", "private_key", "signing_key",
	"encryption_key", "authorization", "cookie", "cookies", "credential", "credentials", "client_secret", "session_id", "bearer",
}

// censor applies rules. It is not changed after it was made.
type censor struct {
	keys    []string
	members []string  // spelled plainly
	last    [256]bool // bytes that plain or other names of members end with
	texts   []*regexp.Regexp
	secrets []string // in all forms, to look for
	hide    redact.Hider
	bare    bool
	chunks  bool
	bounds  bounds
}

// bounds are lengths in bytes; 0 is none.
type bounds struct{ value, element, event int }

func bound(set, otherwise int) int {
	if set == 0 {
		return otherwise
	}
	return max(set, 0)
}

func (r Rules) censor() *censor {
	c := &censor{keys: r.Keys, texts: r.Texts, bare: r.Bare, chunks: r.Chunks, bounds: bounds{
		bound(r.MaxValue, DefaultMaxValue), bound(r.MaxElement, DefaultMaxElement), bound(r.MaxEvent, DefaultMaxEvent),
	}}
	if !r.Bare {
		c.members = plainDefaults
	}
	if len(r.Members) > 0 {
		c.members = slices.Clone(c.members)
		for _, name := range r.Members {
			if name = plainName(name); name != "" {
				c.members = append(c.members, name)
			}
		}
	}
	for b := range c.last {
		c.last[b] = slices.ContainsFunc(c.members, func(name string) bool { return name[len(name)-1] == plainByte(byte(b)) })
	}
	for _, s := range r.Secrets {
		if len(s) >= ShortestSecret {
			c.secrets = append(c.secrets, s)
		}
	}
	if len(c.secrets) > 0 {
		c.hide = redact.Texts(Hidden, c.secrets...)
	}
	return c
}

var plainDefaults = func() (plain []string) {
	for _, name := range defaultMembers {
		plain = append(plain, plainName(name))
	}
	return plain
}()

// plainName is a name in small letters and digits only. Letters that encoding/json takes
// for others are those.
func plainName(name string) string {
	plain := make([]byte, 0, 64)
	for i, r := range name {
		switch {
		case r < utf8.RuneSelf:
			if b := plainByte(name[i]); b != 0 {
				plain = append(plain, b)
			}
		case r == '\u212a':
			plain = append(plain, 'k')
		case r == '\u017f':
			plain = append(plain, 's')
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			plain = utf8.AppendRune(plain, unicode.ToLower(r))
		}
	}
	return string(plain)
}

// plainByte is an ASCII byte as plain names have it, 0 if they do not.
func plainByte(b byte) byte {
	switch {
	case b >= 'A' && b <= 'Z':
		return b + 'a' - 'A'
	case b >= 'a' && b <= 'z', b >= '0' && b <= '9':
		return b
	}
	return 0
}

// hidesKey reports whether the values of a state key are hidden.
func (c *censor) hidesKey(key string) bool {
	return c.hidesMember(key) || slices.ContainsFunc(c.keys, func(pattern string) bool {
		ok, err := path.Match(pattern, key)
		return ok || err != nil
	})
}

// hidesWrite reports whether what a write says of a value is hidden.
func (c *censor) hidesWrite(w *engine.Write) bool {
	return c.hidesKey(w.Key) || w.Entry != "" && c.hidesMember(w.Entry)
}

// hidesMember reports whether the values of members of the name are hidden.
func (c *censor) hidesMember(name string) bool {
	if len(c.members) == 0 {
		return false
	}
	name = plainName(name)
	return slices.ContainsFunc(c.members, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Hide returns what takes out of a text what the rules hide in it: members of JSON that it
// is or has in it, Texts, Secrets, and credentials. Keys and bounds are about events. It
// is safe for concurrent use.
func (r Rules) Hide() func(text string) string { return r.censor().whole }

// text returns a text without what is hidden, but for members.
func (c *censor) text(s string) string {
	if len(c.secrets) > 0 {
		s = c.hide.In(s)
	}
	if !c.bare {
		s = redact.Credentials(s, Hidden)
	}
	for _, re := range c.texts {
		s = re.ReplaceAllLiteralString(s, Hidden)
	}
	return s
}
