package lineedit

import (
	"bufio"
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// action is what a key is for.
type action int

const (
	nothing action = iota
	insert
	enter
	tab
	left
	right
	wordLeft
	wordRight
	home
	end
	older
	newer
	eraseBack
	erase
	eraseWord
	eraseToStart
	eraseToEnd
	redraw
	interrupt
	endOfInput
)

// key is a key that was pressed, or a paste.
type key struct {
	action action
	text   string // to insert
}

var control = map[byte]action{
	1: home, 2: left, 3: interrupt, 4: endOfInput, 5: end, 6: right, 8: eraseBack, 9: tab, 10: enter, 11: eraseToEnd,
	12: redraw, 13: enter, 14: newer, 16: older, 21: eraseToStart, 23: eraseWord, 127: eraseBack,
}

// readKey reads one key. An escape counts with what follows it, so that nothing depends
// on how fast that comes.
func readKey(in *bufio.Reader) (key, error) {
	b, err := in.ReadByte()
	switch {
	case err != nil:
		return key{}, err
	case b == 27:
		return readEscape(in)
	case b < 32 || b == 127:
		return key{action: control[b]}, nil
	}
	if err := in.UnreadByte(); err != nil {
		return key{}, err
	}
	r, size, err := in.ReadRune()
	if err != nil || r == utf8.RuneError && size == 1 || !unicode.IsGraphic(r) && r != '\u200d' {
		return key{}, err // no text; a joiner holds clusters together
	}
	return key{insert, string(r)}, nil
}

var (
	letters = map[byte]action{'A': older, 'B': newer, 'C': right, 'D': left, 'H': home, 'F': end}
	numbers = map[string]action{"1": home, "7": home, "4": end, "8": end, "3": erase}
	alt     = map[byte]action{'b': wordLeft, 'f': wordRight, 127: eraseWord}
)

func readEscape(in *bufio.Reader) (key, error) {
	b, err := in.ReadByte()
	switch {
	case err != nil:
		return key{}, err
	case b == 'O':
		b, err = in.ReadByte()
		return key{action: letters[b]}, err
	case b == '\r' || b == '\n':
		return key{insert, "\n"}, nil
	case b == 3: // whoever presses Escape first means it all the same
		return key{action: interrupt}, nil
	case b != '[':
		return key{action: alt[b]}, nil
	}
	var params []byte
	for len(params) < 32 { // no key has more
		b, err := in.ReadByte()
		if err != nil {
			return key{}, err
		}
		if b < 0x40 || b > 0x7e {
			params = append(params, b)
			continue
		}
		p := string(params)
		switch {
		case b == '~' && p == "200":
			return readPaste(in)
		case b == '~':
			return key{action: numbers[p]}, nil
		case b == 'C' && strings.Contains(p, ";"):
			return key{action: wordRight}, nil
		case b == 'D' && strings.Contains(p, ";"):
			return key{action: wordLeft}, nil
		default:
			return key{action: letters[b]}, nil
		}
	}
	return key{}, nil
}

// maxPaste bounds a paste, in bytes.
const maxPaste = 1 << 20

var pasteEnd = []byte("\x1b[201~")

// readPaste reads up to the end of a paste. What is beyond the limit is dropped.
func readPaste(in *bufio.Reader) (key, error) {
	var text []byte
	for !bytes.HasSuffix(text, pasteEnd) {
		b, err := in.ReadByte()
		if err != nil {
			return key{}, err
		}
		if len(text) >= maxPaste+len(pasteEnd) {
			copy(text[maxPaste:], text[maxPaste+1:])
			text = text[:len(text)-1]
		}
		text = append(text, b)
	}
	return key{insert, tidy(string(bytes.TrimSuffix(text, pasteEnd)))}, nil
}

// tidy keeps of a text what a line can have.
func tidy(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200d', unicode.IsGraphic(r) && r != utf8.RuneError:
			return r
		default:
			return -1
		}
	}, text)
}
