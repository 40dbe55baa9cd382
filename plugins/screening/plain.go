package screening

import (
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// forms returns the plain forms of a text: with escapes and markup read as what they
// stand for, and as they are written if that is different. One alone would not do:
// what reads as an escape may be a part of a word.
func forms(text string) []string {
	read := plain(text, symbol)
	if !strings.ContainsAny(text, "\\&<\x1b\u009b") {
		return []string{read}
	}
	return []string{read, plain(text, utf8.DecodeRuneInString)}
}

// plain returns a plain form of a text, which is made in one pass; next reads what a
// text begins with and says how many bytes that is.
func plain(text string, next func(string) (rune, int)) string {
	var b strings.Builder
	b.Grow(len(text))
	space := true // so that there is none at the beginning
	for i := 0; i < len(text); {
		r, n := next(text[i:])
		i += n
		switch r = simple(r); r {
		case dropped:
		case ' ':
			if !space {
				b.WriteByte(' ')
			}
			space = true
		default:
			b.WriteRune(r)
			space = false
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// dropped stands for what the plain form does not have.
const dropped rune = -1

// symbol reads a character, escapes and markup being one.
func symbol(s string) (rune, int) {
	switch s[0] {
	case '\\':
		return escape(s)
	case '&':
		return entity(s)
	case '<':
		return tag(s)
	case 0x1b:
		if strings.HasPrefix(s, "\x1b[") {
			return sequence(s, len("\x1b["))
		}
	case 0xc2:
		if strings.HasPrefix(s, "\u009b") { // the same in one character
			return sequence(s, len("\u009b"))
		}
	}
	return utf8.DecodeRuneInString(s)
}

// escape reads an escape of a JSON string.
func escape(s string) (rune, int) {
	if len(s) > 1 && strings.IndexByte("nrtfb", s[1]) >= 0 {
		return ' ', 2
	}
	r, ok := unit(s)
	if !ok {
		return '\\', 1
	}
	if low, ok := unit(s[6:]); ok && r >= 0xd800 && r < 0xdc00 && low >= 0xdc00 && low < 0xe000 {
		return (r-0xd800)<<10 | (low - 0xdc00) + 0x10000, 12
	}
	return r, 6
}

// unit reads an escape of four digits, such as \u0041.
func unit(s string) (rune, bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// entity reads a character reference of HTML. A number may come without a semicolon.
func entity(s string) (rune, int) {
	n := 1
	if numeric := strings.HasPrefix(s, "&#"); numeric {
		n = len(s) - len(strings.TrimLeft(s[2:], "xX0123456789abcdefABCDEF"))
	}
	const longest = len("CounterClockwiseContourIntegral;")
	if end := strings.IndexByte(s[n:min(len(s), n+longest)], ';'); end == 0 || end > 0 && n == 1 {
		n += end + 1
	}
	read := html.UnescapeString(s[:n])
	r, size := utf8.DecodeRuneInString(read)
	if read == s[:n] || size == 0 {
		return '&', 1
	}
	return r, n - (len(read) - size)
}

// inline and blocks are the elements of HTML whose tags text may be broken up with; the
// latter separate words.
var (
	inline = map[string]bool{"a": true, "b": true, "i": true, "u": true, "s": true, "em": true, "strong": true, "span": true, "font": true, "wbr": true, "code": true, "mark": true, "small": true}
	blocks = map[string]bool{"br": true, "p": true, "div": true, "li": true, "ul": true, "ol": true, "td": true, "tr": true, "h1": true, "h2": true, "h3": true, "h4": true, "hr": true}
)

// tag reads a tag of HTML, unless it has attributes, which are text too.
func tag(s string) (rune, int) {
	const longest = len("</strong />")
	end := strings.IndexByte(s[:min(len(s), longest)], '>')
	if end < 2 {
		return '<', 1
	}
	name := strings.TrimPrefix(s[1:end], "/")
	name = strings.ToLower(strings.TrimRight(strings.TrimSuffix(name, "/"), " "))
	switch {
	case inline[name]:
		return dropped, end + 1
	case blocks[name]:
		return ' ', end + 1
	default:
		return '<', 1
	}
}

// sequence reads what sets the colour in a terminal; introducer is how many bytes it
// begins with.
func sequence(s string, introducer int) (rune, int) {
	rest := strings.TrimLeft(s[introducer:], "0123456789;:")
	if strings.HasPrefix(rest, "m") {
		return dropped, len(s) - len(rest) + 1
	}
	return dropped, introducer
}

// simple returns what a character is in the plain form: itself, another one, a space,
// or dropped.
func simple(r rune) rune {
	if r < utf8.RuneSelf {
		switch {
		case r == dropped || r == '*' || r == '`' || r == '~' || r == '"':
			return dropped
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r > ' ' && r < 0x7f:
			return r
		case r == ' ' || r >= '\t' && r <= '\r':
			return ' '
		default:
			return dropped
		}
	}
	switch {
	case r >= 0xe0020 && r <= 0xe007e: // tags, which are ASCII that is not shown
		return simple(r - 0xe0000)
	case r >= 0xff01 && r <= 0xff5e: // full width
		return simple(r - 0xff01 + '!')
	case r >= 0x1d400 && r <= 0x1d6a3: // mathematical letters, alphabet by alphabet
		return simple('A' + (r-0x1d400)%52%26)
	case r >= 0x249c && r <= 0x24e9: // letters in brackets, and in circles
		return simple('A' + (r-0x249c)%26)
	case r >= 0x1f110 && r <= 0x1f189 && (r-0x1f110)%32 < 26: // capitals in brackets, squares and circles
		return simple('A' + (r-0x1f110)%32)
	case r == '\u2800' || r == '\u3164' || r == '\uffa0': // they look like a space
		return ' '
	case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Cc, unicode.Me, unicode.Other_Default_Ignorable_Code_Point):
		return dropped
	case unicode.IsSpace(r) || unicode.Is(unicode.Zs, r):
		return ' '
	}
	if same, ok := capitals[r]; ok {
		return same
	}
	r = unicode.ToLower(r)
	if same, ok := lookalikes[r]; ok {
		return same
	}
	return r
}

// capitals are letters that look like Latin ones other than those that their small ones
// look like.
var capitals = map[rune]rune{'Ν': 'n', 'Η': 'h', 'Υ': 'y', 'Ζ': 'z', 'Μ': 'm'}

// lookalikes are small letters and marks that look like others: those of Greek and
// Cyrillic, those with accents, and those of mathematics outside of its alphabets.
var lookalikes = func() map[rune]rune {
	m := map[rune]rune{'’': '\'', '‘': '\'', 'ʼ': '\'', '“': dropped, '”': dropped, '„': dropped, '«': dropped, '»': dropped,
		'–': '-', '—': '-', '‐': '-', '‑': '-', '：': ':', '，': ',', 'ı': 'i', 'ſ': 's', 'ɡ': 'g', 'ɑ': 'a'}
	for latin, others := range map[rune]string{
		'a': "аα" + "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ",
		'b': "ьвβ" + "ḃḅḇƀ" + "ℬ",
		'c': "сϲ" + "çćĉċčḉ" + "ℂℭ",
		'd': "ԁ" + "ďḋḍḏḑḓđ" + "ⅅⅆ",
		'e': "еε" + "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ" + "ℯℰⅇ",
		'f': "ḟ" + "ℱ",
		'g': "ĝğġģǧǵḡ" + "ℊ",
		'h': "һн" + "ĥȟḣḥḧḩḫẖħ" + "ℋℌℍℎ",
		'i': "іι" + "ìíîïĩīĭįǐȉȋḭḯỉịɨ" + "ℐℑℹⅈ𝚤",
		'j': "јϳ" + "ĵǰ" + "ⅉ𝚥",
		'k': "кκ" + "ķǩḱḳḵ",
		'l': "ӏ" + "ĺļľḷḹḻḽł" + "ℒℓ",
		'm': "м" + "ḿṁṃ" + "ℳ",
		'n': "пη" + "ñńņňǹṅṇṉṋ" + "ℕ",
		'o': "оο" + "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợøǿ" + "ℴ",
		'p': "рρ" + "ṕṗ" + "ℙ",
		'q': "ԛ" + "ℚ",
		'r': "г" + "ŕŗřȑȓṙṛṝṟ" + "ℛℜℝ",
		's': "ѕ" + "śŝşšșṡṣṥṧṩ",
		't': "тτ" + "ţťțṫṭṯṱẗŧ",
		'u': "υ" + "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự",
		'v': "ѵν" + "ṽṿ",
		'w': "ԝω" + "ŵẁẃẅẇẉẘ",
		'x': "хχ" + "ẋẍ",
		'y': "уγ" + "ýÿŷȳẏẙỳỵỷỹ",
		'z': "źżžẑẓẕ" + "ℤℨ",
	} {
		for _, other := range others {
			m[other] = latin
		}
	}
	return m
}()
