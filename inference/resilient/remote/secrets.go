package remote

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Secrets is what no error may have: services repeat what they do not accept.
type Secrets []string

// SecretsOf returns the key, and what is in headers that are called like one. What is too short to be a secret is a
// word for "no key".
func SecretsOf(key string, header http.Header) Secrets {
	const shortest = 8
	all := Secrets{key}
	for name, values := range header {
		for _, word := range []string{"key", "auth", "token", "secret", "cookie"} {
			if strings.Contains(strings.ToLower(name), word) {
				all = append(all, values...)
				break
			}
		}
	}
	all = slices.DeleteFunc(all, func(secret string) bool { return len(secret) < shortest })
	// Of two that overlap the longer goes first, so that no end of it is left.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// Hide returns err, or an error without the secrets that its text has, and of bounded length.
func (s Secrets) Hide(err error) error {
	const longest = 4 << 10
	text := err.Error()
	hidden := text
	for _, secret := range s {
		hidden = strings.ReplaceAll(hidden, secret, "[key]")
	}
	if len(hidden) > longest {
		hidden = strings.ToValidUTF8(hidden[:longest], "") + "..."
	}
	if hidden == text {
		return err
	}
	return errors.New(hidden)
}
