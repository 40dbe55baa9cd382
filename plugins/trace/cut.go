package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
)

// cutEnd is the end of a text that was cut.
const cutEnd = " bytes]"

// cutText stands behind the beginning of a text that was cut.
func cutText(bytes int) string { return fmt.Sprintf("… [cut, of %d%s", bytes, cutEnd) }

// start returns the beginning of a text, of whole characters, and at most n bytes.
func start(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cut is what stands for a value of so many bytes.
func cut(begin string, bytes, limit int) []byte {
	return fmt.Appendf(nil, `{"$cut":{"bytes":%d,"begin":%s}}`, bytes, quote(start(begin, limit/4)))
}

// isCut reports whether a value is what cut returns, or hidden.
func isCut(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte(`{"$cut":`)) || bytes.Equal(raw, []byte(hiddenValue))
}

// bound cuts the value at the end of what was written, if it is too long: an array
// element by element, and as a whole if that is not enough.
func (p *pass) bound(begin int) {
	raw := p.out[begin:]
	short := func(limit int) bool { return limit <= 0 || len(raw) <= limit }
	if short(p.bounds.value) && (raw[0] != '[' || short(p.bounds.element)) || isCut(raw) {
		return
	}
	if raw[0] == '[' {
		if parts, err := jsonarray.Split(raw); err == nil {
			raw = p.parts(parts)
		}
	}
	if !short(2*p.bounds.value) || raw[0] != '[' && !short(p.bounds.value) {
		raw = cut(string(raw), len(raw), p.bounds.value)
	}
	if len(raw) != len(p.out)-begin || !bytes.Equal(raw, p.out[begin:]) {
		p.out, p.changed = append(p.out[:begin], raw...), true
	}
}

// parts is an array with those of its elements cut that are too long, or for which
// there is no room any more.
func (p *pass) parts(parts []json.RawMessage) []byte {
	room := p.bounds.value
	all := make([][]byte, len(parts))
	for i, part := range parts {
		limit := p.bounds.element
		if p.bounds.value > 0 && (limit <= 0 || limit > room) {
			limit = max(room, narrowest)
		}
		all[i] = element(part, limit)
		room -= len(all[i])
	}
	return jsonarray.Join(all...)
}

// element is one of an array's, cut if it is too long. Of a pair, as of a table's entry,
// the key is kept.
func element(part []byte, limit int) []byte {
	if limit <= 0 || len(part) <= limit || isCut(part) {
		return part
	}
	if part[0] == '[' {
		pair, err := jsonarray.Split(part)
		if err == nil && len(pair) == 2 && len(pair[0]) <= limit {
			return jsonarray.Join(pair[0], element(pair[1], max(limit-len(pair[0]), 1)))
		}
	}
	return cut(string(part), len(part), limit)
}
