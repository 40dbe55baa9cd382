package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxServerName = 24
	maxToolName   = 64  // what model services take
	maxWireName   = 256 // of a tool, as its server calls it
	separator     = "__"
)

// serverName reports whether a name can begin those of tools: the first "__" of a
// tool's name then ends the server's, so that no two servers share a tool's name.
func serverName(name string) bool {
	if name == "" || len(name) > maxServerName || strings.Contains(name, separator) || strings.Trim(name, "_") != name {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// ToolName returns the name under which an engine has a server's tool, and whether it
// has the tool's own name in it as it is. Characters that model services do not take
// become "_", and a name that is too long ends in a hash.
func ToolName(server, tool string) (name string, exact bool) {
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, tool)
	name = server + separator + clean
	if len(name) <= maxToolName {
		return name, clean == tool
	}
	sum := sha256.Sum256([]byte(tool))
	const digits = 8
	return name[:maxToolName-digits-1] + "_" + hex.EncodeToString(sum[:digits/2]), false
}

// plain makes text of a server fit to be shown: valid, without control characters and
// those that nobody sees, and at most limit bytes long.
func plain(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d': // joiners are part of words
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return cut(text, limit)
}

const cutMark = "\n[cut]"

// cut returns text, or its beginning with a mark behind it, in at most limit bytes
// besides the mark.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + cutMark
}
