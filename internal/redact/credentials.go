package redact

import (
	"regexp"
	"slices"
	"strings"
)

// shape is what a kind of credential looks like. The expression is tried only on texts
// that have one of the hints, in whatever case, which is found much faster.
type shape struct {
	hints []string
	re    *regexp.Regexp
	put   string // in its place, with $0 standing for the mark
}

// named is the end of names that stand before a credential.
const named = `(?:password|passwd|passphrase|passcode|secrets?|token|(?:api|access|private|secret|signing|encryption|account)[_-]?key|` +
	`authorization|cookies?|credentials?|session[_-]?id|bearer|[_-](?:pass|pwd))`

// nameHints are parts of such names.
var nameHints = append([]string{"passw", "passphrase", "passcode", "secret", "token", "authorization", "cookie", "credential", "bearer",
	"session_id", "session-id", "sessionid", "_pass", "-pass", "_pwd", "-pwd"}, keyHints...)

var keyHints = func() (all []string) {
	for _, of := range []string{"api", "access", "private", "signing", "encryption", "account"} {
		all = append(all, of+"_key", of+"-key", of+"key")
	}
	return all
}()

// shapes are the credentials that are known by their looks.
var shapes = []shape{
	{[]string{"private key", "--b", "-begin", `-----"`}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)`), "$0"},
	{[]string{"sk-"}, regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`), "$0"},
	{[]string{"k_live_", "k_test_"}, regexp.MustCompile(`\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}`), "$0"},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), "$0"},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{30,}`), "$0"},
	{[]string{"github_pat_"}, regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{22,}`), "$0"},
	{[]string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`), "$0"},
	{[]string{"xox", "xapp-"}, regexp.MustCompile(`\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}`), "$0"},
	{[]string{"aiza"}, regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`), "$0"},
	{[]string{"ya29."}, regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`), "$0"},
	{[]string{"npm_"}, regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`), "$0"},
	{[]string{"pypi-"}, regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{50,}`), "$0"},
	{[]string{"hf_"}, regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`), "$0"},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "$0"},
	{[]string{"gsk_", "xai-", "whsec_"}, regexp.MustCompile(`\b(?:gsk_|xai-|whsec_)[A-Za-z0-9]{24,}`), "$0"},
	{[]string{"r8_"}, regexp.MustCompile(`\br8_[A-Za-z0-9]{37}\b`), "$0"},
	{[]string{"sg."}, regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`), "$0"},
	{[]string{"dop_v1_", "doo_v1_", "dor_v1_"}, regexp.MustCompile(`\bdo[opr]_v1_[a-f0-9]{64}`), "$0"},
	{[]string{"shpat_", "shpca_", "shppa_", "shpss_"}, regexp.MustCompile(`\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`), "$0"},
	{[]string{"gocspx-"}, regexp.MustCompile(`\bGOCSPX-[A-Za-z0-9_-]{28}`), "$0"},
	{[]string{"age-secret-key-"}, regexp.MustCompile(`\bAGE-SECRET-KEY-1[A-Z0-9]{50,}`), "$0"},
	{[]string{"hooks.slack.com"}, regexp.MustCompile(`(hooks\.slack\.com/services/)[A-Za-z0-9/_-]+`), "${1}$0"},
	// Addresses, whose slashes may be escaped as JSON allows it: name:password@, key@, ?key=
	{[]string{"://", `:\/\/`}, regexp.MustCompile(`(:\\?/\\?/[^/\s:@"'\\]*:)[^/\s"'\\]+@`), "${1}$0@"},
	{[]string{"://", `:\/\/`}, regexp.MustCompile(`(:\\?/\\?/)[A-Za-z0-9._~-]{20,}@`), "${1}$0@"},
	{[]string{"code=", "key=", "sig=", "signature="}, regexp.MustCompile(`(?i)([?&](?:code|key|sig|(?:[a-z-]*-)?signature)=)[^\s"'&;,(){}<>\[\]#\\]{16,}`), "${1}$0"},
	// Headers.
	{[]string{"bearer ", "basic "}, regexp.MustCompile(`(?i)\b(bearer|basic) +[A-Za-z0-9._~+/-]{16,}=*`), "${1} $0"},
	{[]string{"cookie", "authorization"}, regexp.MustCompile(`(?im)^([ \t<>*]*(?:set-cookie|cookie|(?:proxy-)?authorization)[ \t]*:[ \t]*)[^\r\n]+`), "${1}$0"},
	{[]string{"cookie", "authorization"}, regexp.MustCompile(`(?i)(["'](?:set-cookie|cookie|(?:proxy-)?authorization)\s*:\s*)[^"'\\\r\n]+`), "${1}$0"},
	{nameHints, regexp.MustCompile(`(?i)(["'][\w.-]*` + named + `\s*:\s*)[^\s"'\\]{6,}(\\*["'])`), "${1}$0${2}"},
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(authorization\\*["']?\s*[:=]\s*\\*["']?(?:bearer|basic|token|digest|apikey|negotiate)[ \t]+)[^\s"'\\,;]{6,}`), "${1}$0"},
	// Commands: --name value, curl -u name:password
	{nameHints, regexp.MustCompile(`(?im)((?:^|\s)--?[\w-]*` + named + `[ \t]+)(?:"[^"\r\n]{3,}"|'[^'\r\n]{3,}'|[^\s"'&;|(){}<>\[\]\\$-][^\s"'&;|(){}<>\[\]\\]{2,})`), "${1}$0"},
	{[]string{"curl"}, regexp.MustCompile(`(\bcurl\b[^\r\n|;]*?\s(?:-u|-U|--user|--proxy-user)[ =]*\\*["']?[^\s:"'\\]+:)[^\s"'\\]+`), "${1}$0"},
	// name = "value", name: 'value', "name": "value, which may end too early
	{nameHints, regexp.MustCompile(`(?i)\b([\w.-]*` + named + `["']?\s*[:=]\s*)(?:"(?:[^"\\\r\n]|\\[^\r\n]){6,}(?:"|\\?\z)|'[^'\r\n]{6,}(?:'|\z))`), `${1}"$0"`},
	// \"name\": \"value\", of JSON in JSON
	{nameHints, regexp.MustCompile(`(?i)\b([\w.-]*` + named + `\\+["']\s*[:=]\s*\\+["'])(?:[^"'\\\r\n]|\\+[^"'\\\r\n]){6,}`), "${1}$0"},
	{[]string{`"pwd`}, regexp.MustCompile(`(?i)("pwd\\*"\s*:\s*\\*")[^"\\\r\n]{6,}`), "${1}$0"},
	// "name": 1234
	{nameHints, regexp.MustCompile(`(?i)("[\w.-]*` + named + `\\*"\s*:\s*)-?\d{4,}[\d.eE+-]*`), "${1}$0"},
	// NAME=value
	{nameHints, regexp.MustCompile(`(?i)\b([\w.-]*` + named + `=)[^\s"'&;,(){}<>\[\]]{6,}`), "${1}$0"},
	{[]string{"pwd="}, regexp.MustCompile(`(?i)(;\s*pwd=)[^\s"'&;,(){}<>\[\]]{3,}`), "${1}$0"},
	// name: value, alone on its line
	{nameHints, regexp.MustCompile(`(?im)^([ \t]*(?:-[ \t]+)*(?:export[ \t]+)?[\w.-]*` + named + `[ \t]*[:=][ \t]*)[^\s"'(){}<>\[\];,]{6,}([ \t]+#[^\r\n]*)?[ \t]*$`), "${1}$0${2}"},
}

// folded is a byte with capitals made small.
var folded = func() (table [256]byte) {
	for b := range table {
		table[b] = byte(b)
	}
	for b := 'A'; b <= 'Z'; b++ {
		table[b] = byte(b - 'A' + 'a')
	}
	return table
}()

// begins has the hints of the shapes by their first two bytes, and may is where there are
// any, so that a text is looked through once for all of them.
var begins, may = func() (map[uint16][]string, *[1 << 16]bool) {
	all, some := map[uint16][]string{}, new([1 << 16]bool)
	for _, s := range shapes {
		for _, h := range s.hints {
			two := uint16(h[0])<<8 | uint16(h[1])
			if !slices.Contains(all[two], h) {
				all[two] = append(all[two], h)
			}
			some[two] = true
		}
	}
	return all, some
}()

// Suspect reports whether the text may have a credential in it: if not, Credentials
// changes neither the text nor a part of it. A JSON text is suspect too if the mark that a
// private key begins with is spread over some of its strings, in pieces that are not
// shorter than half of it.
func Suspect(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	last := folded[text[0]]
	for i, b := range text[1:] {
		b = folded[b]
		if two := uint16(last)<<8 | uint16(b); may[two] {
			for _, h := range begins[two] {
				if starts(text[i:], h) {
					return true
				}
			}
		}
		last = b
	}
	return false
}

// starts reports whether a text starts with a hint.
func starts(text []byte, hint string) bool {
	if len(text) < len(hint) {
		return false
	}
	for i := range len(hint) {
		if folded[text[i]] != hint[i] {
			return false
		}
	}
	return true
}

// Credentials returns the text with mark in the place of what looks like a credential:
// keys of well-known services, private keys, signed tokens, what addresses, headers and
// commands have of them, and what stands behind a name such as "password=", also in JSON
// that is part of the text, broken, or escaped. Only the names are left. What has neither
// a known look nor a name, or is encoded otherwise, stays.
func Credentials(text, mark string) string {
	if !Suspect([]byte(text)) {
		return text
	}
	low := strings.Map(func(r rune) rune {
		if r < 0x80 {
			return rune(folded[r])
		}
		return r
	}, text)
	for _, s := range shapes {
		if slices.ContainsFunc(s.hints, func(h string) bool { return strings.Contains(low, h) }) {
			text = s.re.ReplaceAllString(text, strings.ReplaceAll(s.put, "$0", strings.ReplaceAll(mark, "$", "$$")))
		}
	}
	return text
}
