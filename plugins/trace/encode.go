package trace

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/redact"
)

// encoder writes events as engine.MarshalEvent writes detailed ones, but in memory that it
// uses again and without reflection, and sees meanwhile whether there may be something
// that the rules are about. What it cannot write it leaves to detailed.
type encoder struct {
	*censor
	out   []byte
	doubt bool // the rules may be about something in it
	odd   bool // it cannot be written in this way
	blunt bool // the rules are about members that the engine's own values have

	who    whose
	second second
	seed   maphash.Seed
	clear  [256]string    // texts that are written as they are, and that the rules leave alone
	keys   [64]keyOfState // the last ones
	usual  usual          // what the commit is, of which the event is

	buffer bytes.Buffer // JSON on its way
	source []byte
	values *json.Encoder // writes to buffer
}

// whose says what the last events belonged to, and is it as they have it.
type whose struct {
	run, parent, thread, agent string
	names                      []byte
}

// mostNames is how long that may be.
const mostNames = 1 << 10

func newEncoder(c *censor) *encoder {
	e := &encoder{censor: c, seed: maphash.MakeSeed()}
	e.values = json.NewEncoder(&e.buffer)
	e.values.SetEscapeHTML(false)
	e.blunt = slices.ContainsFunc(usualMembers, e.hidesMember)
	return e
}

// mostKept is how much memory is kept for the next event, in bytes.
const mostKept = 64 << 10

// detailed is that of the censor, except that the line is sound until the next call, and
// that an event which the rules leave alone has the values that it had.
func (e *encoder) detailed(in engine.Event) (engine.Event, []byte, error) {
	line, clear := e.line(in)
	switch {
	case line == nil:
		return e.censor.detailed(in)
	case clear:
		return in, line, nil
	}
	return e.ruled(in, line)
}

// line returns an event's line, which is sound until the next call, and whether it is
// what the rules leave alone. It is nil if the event is one for detailed.
func (e *encoder) line(in engine.Event) (line []byte, clear bool) {
	if cap(e.out) > mostKept {
		e.out = nil
	}
	if e.buffer.Cap() > mostKept {
		e.buffer, e.source = bytes.Buffer{}, nil
	}
	e.out, e.odd = e.out[:0], false
	e.doubt = len(e.secrets) > 0 || len(e.texts) > 0
	e.event(in)
	if e.odd {
		return nil, false
	}
	return e.out, !e.doubt && e.bounds.allow(len(e.out))
}

func (e *encoder) put(s string) { e.out = append(e.out, s...) }

func (e *encoder) int(name string, v int64) {
	e.put(name)
	e.out = strconv.AppendInt(e.out, v, 10)
}

func (e *encoder) uint(name string, v uint64) {
	e.put(name)
	e.out = strconv.AppendUint(e.out, v, 10)
}

// flag writes a member that is left out if it is false.
func (e *encoder) flag(name string, v bool) {
	if v {
		e.put(name)
		e.put("true")
	}
}

// some is int for a member that is left out if it is zero.
func (e *encoder) some(name string, v int64) {
	if v != 0 {
		e.int(name, v)
	}
}

// second is what a second's times have in common.
type second struct {
	unix        int64
	in          *time.Location
	begin, zone []byte // before and behind the part of the second
}

// time writes a time as its AppendText does, of which most are in the second of the last.
func (e *encoder) time(name string, v time.Time) {
	e.put(name)
	s := &e.second
	if unix := v.Unix(); s.unix != unix || s.in != v.Location() || len(s.begin) == 0 {
		text, err := v.Add(-time.Duration(v.Nanosecond())).AppendText(append(e.source[:0], '"'))
		if e.source = text; err != nil {
			e.odd = true
			return
		}
		const begin = len(`"2006-01-02T15:04:05`)
		s.begin, s.zone = append(s.begin[:0], text[:begin]...), append(append(s.zone[:0], text[begin:]...), '"')
		s.unix, s.in = unix, v.Location()
	}
	e.out = append(e.out, s.begin...)
	if rest := v.Nanosecond(); rest > 0 {
		digits := [10]byte{'.'}
		for i := 9; i > 0; i-- {
			digits[i] = byte('0' + rest%10)
			rest /= 10
		}
		e.out = append(e.out, bytes.TrimRight(digits[:], "0")...)
	}
	e.out = append(e.out, s.zone...)
}

// began writes a time that is left out if it is zero.
func (e *encoder) began(v time.Time) {
	if !v.IsZero() {
		e.time(`,"began":`, v)
	}
}

func (e *encoder) took(v time.Duration) { e.int(`,"duration_ns":`, int64(v)) }

// text writes a text of anybody's.
func (e *encoder) text(name, s string) {
	e.put(name)
	if len(s) == 0 {
		e.put(`""`)
		return
	}
	known := &e.clear[maphash.String(e.seed, s)%uint64(len(e.clear))]
	if *known == s {
		e.out = append(append(append(e.out, '"'), s...), '"')
		return
	}
	begin, doubt := len(e.out), e.doubt
	e.quote(s)
	e.doubt = false
	e.look(begin, embeds(s))
	if len(s) <= mostClear && !e.doubt && len(e.out)-begin == len(s)+len(`""`) {
		*known = strings.Clone(s)
	}
	e.doubt = e.doubt || doubt
}

// mostClear is how long texts are that are remembered.
const mostClear = 64

// keyOfState says whether the values of a state key are hidden.
type keyOfState struct {
	name  string
	hides bool
}

func (e *encoder) hidesKey(name string) bool {
	if name == "" || len(name) > mostClear {
		return e.censor.hidesKey(name)
	}
	k := &e.keys[maphash.String(e.seed, name)%uint64(len(e.keys))]
	if k.name != name {
		*k = keyOfState{strings.Clone(name), e.censor.hidesKey(name)}
	}
	return k.hides
}

// hidesWrite is that of the censor.
func (e *encoder) hidesWrite(w *engine.Write) bool {
	return e.hidesKey(w.Key) || e.hidesMember(w.Entry)
}

// hidesMember is that of the censor, which is seldom asked.
func (e *encoder) hidesMember(name string) bool {
	if n := len(name); n == 0 || plainByte(name[n-1]) != 0 && !e.last[name[n-1]] {
		return false
	}
	return e.censor.hidesMember(name)
}

// fixed writes a text of a fixed set.
func (e *encoder) fixed(name, s string) {
	e.put(name)
	e.put(s)
	e.put(`"`)
}

// maybe is text for a member that is left out if it is empty.
func (e *encoder) maybe(name, s string) {
	if s != "" {
		e.text(name, s)
	}
}

// embeds reports whether a text may have JSON in it, in which members are looked for.
func embeds(s string) bool { return strings.IndexByte(s, '"') >= 0 }

// look notes what the rules may be about in what was written last: as censor.line does
// for a whole line, of which the rest is names and numbers that they leave alone.
func (e *encoder) look(begin int, members bool) {
	if e.doubt {
		return
	}
	piece := e.out[begin:]
	e.doubt = !e.bare && redact.Suspect(piece) ||
		(!e.bare || len(e.members) > 0) && bytes.IndexByte(piece, '\\') >= 0 && bytes.Contains(piece, []byte(`\u`)) ||
		members && e.mayHide(piece)
}

// value looks at JSON that was written last.
func (e *encoder) value(begin int) {
	if bytes.IndexByte(e.out[begin:], '"') >= 0 {
		e.look(begin, true)
	}
}

const hex = "0123456789abcdef"

// quote writes a text as encoding/json does if it leaves <, > and & readable.
func (e *encoder) quote(s string) {
	out := append(e.out, '"')
	done := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				out = append(append(out, s[done:i]...), `\ufffd`...)
				done = i + n
			case r == '\u2028' || r == '\u2029':
				out = append(append(out, s[done:i]...), '\\', 'u', '2', '0', '2', hex[r&0xf])
				done = i + n
			}
			i += n
			continue
		}
		out = append(out, s[done:i]...)
		switch b {
		case '"', '\\':
			out = append(out, '\\', b)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xf])
		}
		i++
		done = i
	}
	e.out = append(append(out, s[done:]...), '"')
}

// json writes JSON of anybody's, which must be JSON.
func (e *encoder) json(name string, j inference.JSON) {
	e.put(name)
	switch j {
	case "":
		e.put("null")
		return
	case "{}", "null":
		e.put(string(j))
		return
	}
	begin := len(e.out)
	e.source = append(e.source[:0], j...)
	e.buffer.Reset()
	if json.Compact(&e.buffer, e.source) != nil {
		e.odd = true
		return
	}
	e.out = append(e.out, e.buffer.Bytes()...)
	e.value(begin)
}

// maybeJSON is json for a member that is left out if it is empty.
func (e *encoder) maybeJSON(name string, j inference.JSON) {
	if j != "" {
		e.json(name, j)
	}
}

// any writes a value as inference.ToJSON does, if that neither fails nor panics.
func (e *encoder) any(v any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	e.buffer.Reset()
	if e.values.Encode(v) != nil {
		return false
	}
	e.out = append(e.out, bytes.TrimSuffix(e.buffer.Bytes(), []byte("\n"))...)
	return true
}
