package redact

import (
	"bytes"
	"regexp"
	"strings"
)

// shape is what a kind of credential looks like. The expression is tried only on texts
// that have one of the hints, which is found much faster.
type shape struct {
	hints []string
	re    *regexp.Regexp
	put   string // in its place, with $0 standing for the mark
}

// named is the end of names that stand before a credential.
const named = `(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|authorization)`

// nameHints are parts of such names, as they are mostly written.
var nameHints = cased("password", "passwd", "passphrase", "secret", "token", "authorization", "api_key", "api-key", "apikey", "access_key", "access-key",
	"accesskey", "private_key", "private-key", "privatekey")

// shapes are the credentials that are known by their looks.
var shapes = []shape{
	{[]string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)`), "$0"},
	{[]string{"sk-"}, regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`), "$0"},
	{[]string{"k_live_", "k_test_"}, regexp.MustCompile(`\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}`), "$0"},
	{[]string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), "$0"},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{30,}`), "$0"},
	{[]string{"github_pat_"}, regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{22,}`), "$0"},
	{[]string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`), "$0"},
	{[]string{"xox", "xapp-"}, regexp.MustCompile(`\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}`), "$0"},
	{[]string{"AIza"}, regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`), "$0"},
	{[]string{"ya29."}, regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`), "$0"},
	{[]string{"npm_"}, regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`), "$0"},
	{[]string{"pypi-"}, regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{50,}`), "$0"},
	{[]string{"hf_"}, regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`), "$0"},
	{[]string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "$0"},
	{[]string{"://"}, regexp.MustCompile(`(://[^/\s:@"']*:)[^/\s@"']+@`), "${1}$0@"},
	{cased("bearer ", "basic "), regexp.MustCompile(`(?i)\b(bearer|basic) +[A-Za-z0-9._~+/-]{16,}=*`), "${1} $0"},
	{cased("cookie", "authorization"), regexp.MustCompile(`(?im)^([ \t<>*]*(?:set-cookie|cookie|(?:proxy-)?authorization)[ \t]*:[ \t]*)[^\r\n]+`), "${1}$0"},
	// name = "value", name: 'value', "name": "value"
	{nameHints, regexp.MustCompile(`(?i)\b([\w.-]*` + named + `["']?\s*[:=]\s*)(?:"[^"\r\n]{6,}"|'[^'\r\n]{6,}')`), `${1}"$0"`},
	// NAME=value
	{nameHints, regexp.MustCompile(`(?i)\b([\w.-]*` + named + `=)[^\s"'&;,(){}<>\[\]]{6,}`), "${1}$0"},
	// name: value, alone on its line
	{nameHints, regexp.MustCompile(`(?im)^([ \t]*(?:export[ \t]+)?[\w.-]*` + named + `[ \t]*[:=][ \t]*)[^\s"'(){}<>\[\];,]{6,}[ \t]*$`), "${1}$0"},
}

// cased returns the words as they are, with a capital, in capitals, and without their
// first letter, which finds them in the middle of names like apiToken.
func cased(words ...string) (all []string) {
	for _, w := range words {
		all = append(all, w, strings.ToUpper(w[:1])+w[1:], strings.ToUpper(w))
	}
	return append(all, "apiKey", "ApiKey", "accessKey", "AccessKey", "privateKey", "PrivateKey")
}

// hints are those of all shapes, once each.
var hints = func() (all [][]byte) {
	seen := map[string]bool{}
	for _, s := range shapes {
		for _, h := range s.hints {
			if !seen[h] {
				seen[h] = true
				all = append(all, []byte(h))
			}
		}
	}
	return all
}()

// Suspect reports whether the text may have a credential in it: if not, Credentials
// changes neither the text nor a part of it.
func Suspect(text []byte) bool {
	for _, h := range hints {
		if bytes.Contains(text, h) {
			return true
		}
	}
	return false
}

// Credentials returns the text with mark in the place of what looks like a credential:
// keys of well-known services, private keys, signed tokens, passwords in addresses, and
// what stands behind a name such as "password=". Only the names are left.
func Credentials(text, mark string) string {
	for _, s := range shapes {
		if s.hinted(text) {
			text = s.re.ReplaceAllString(text, strings.ReplaceAll(s.put, "$0", strings.ReplaceAll(mark, "$", "$$")))
		}
	}
	return text
}

func (s shape) hinted(text string) bool {
	for _, h := range s.hints {
		if strings.Contains(text, h) {
			return true
		}
	}
	return false
}
