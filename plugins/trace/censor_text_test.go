package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// leaks returns a part of the secret, of six bytes, that a text tells.
func leaks(text, secret string) string {
	for i := 0; i+6 <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+6]) {
			return secret[i : i+6]
		}
	}
	return ""
}

// Members are hidden in JSON that is a part of a text, or in which a part is missing.
func TestMembersWithinTexts(t *testing.T) {
	hide := trace.Rules{Members: []string{"my-pin"}}.Hide()
	for text, want := range map[string]string{
		`{"a":1,"my_pin":"zq7hunter"}`:                                      `{"a":1,"my_pin":{"$hidden":true}}`,
		"{\"myPin\":\"zq7hunter\"}\n{\"b\":2,\"MY PIN\":[\"zq7hunter\"]}\n": "{\"myPin\":{\"$hidden\":true}}\n{\"b\":2,\"MY PIN\":{\"$hidden\":true}}\n",
		"see:\n```json\n{\n  \"my_pin\": \"zq7hunter\"\n}\n```\nend":        "see:\n```json\n{\"my_pin\":{\"$hidden\":true}}\n```\nend",
		`12:00 INFO got {"x":[],"my_pin":3141592653} ok`:                    `12:00 INFO got {"x":[],"my_pin":{"$hidden":true}} ok`,
		`5" disk {"my_pin":"zq7hunter","b":"c`:                              `5" disk {"my_pin":"[hidden]","b":"c`,
		`{"a":{"my_pin":"zq7hun\"ter`:                                       `{"a":{"my_pin":"[hidden]"`,
		`{"my_pin":{"a":["zq7hunter`:                                        `{"my_pin":"[hidden]"`,
		`{"my_pin":{"a":"}","b":"zq7hunter"},"c":[`:                         `{"my_pin":"[hidden]","c":[`,
		`{"my_pin" : -31415926`:                                             `{"my_pin" : "[hidden]"`,
		`sent "{\"a\":\"b\",\"my_pin\":\"zq7hunter\\n\"}" to h`:             `sent "{\"a\":\"b\",\"my_pin\":\"[hidden]\"}" to h`,
		`sent {\"my_pin\":{\"a\":\"zq7hunter\"},\"b\":1}`:                   `sent {\"my_pin\":\"[hidden]\",\"b\":1}`,
		`sent {\\\"my_pin\\\":\n \\\"zq7hunter\\\"} or`:                     `sent {\\\"my_pin\\\":\n \\\"[hidden]\\\"} or`,
		`sent "{\n  \"my_pin\": \"zq7hun`:                                   `sent "{\n  \"my_pin\": \"[hidden]\"`,
		`sent "{\"my_pin\":\"zq7hunter" and "b":1`:                          `sent "{\"my_pin\":\"[hidden]\"" and "b":1`,
		`sent "{\u0022my_pin\u0022:\u0022zq7hunter\u0022}" `:                `sent "{\"my_pin\":\"[hidden]\"}" `,
		`y_pin":"zq7hunter"} of my_pin":"zq7hunter"}`:                       `y_pin":"zq7hunter"} of my_pin":"[hidden]"}`,
		`{"my\"pin":"zq7hunter","my\\pin\\":"zq7hunter"`:                    `{"my\"pin":"[hidden]","my\\pin\\":"[hidden]"`,
		`{"m\u0079\tpin":"zq7hunter"`:                                       `{"my\tpin":"[hidden]"`,
		`{"env":[{"name":"MY_PIN","value":"zq7hunter"},{"na`:                `{"env":[{"name":"MY_PIN","value":{"$hidden":true}},{"na`,
		// What is left alone.
		`case "my_pin": return zq7hunter`:            `case "my_pin": return zq7hunter`,
		`{"my_pin":null,"my-pin":"","my_pin":tru`:    `{"my_pin":null,"my-pin":"","my_pin":tru`,
		`my_pin says "zq7hunter": "x"`:               `my_pin says "zq7hunter": "x"`,
		`[1,2] {} "my_pin" , {"pin":"zq7hunter"`:     `[1,2] {} "my_pin" , {"pin":"zq7hunter"`,
		`"my_pin":`:                                  `"my_pin":`,
		"{\n  \"a\": 1\n} and \"my_pin\"":            "{\n  \"a\": 1\n} and \"my_pin\"",
		strings.Repeat("[", 30000) + `"my_pin" "x":`: strings.Repeat("[", 30000) + `"my_pin" "x":`,
	} {
		got := hide(text)
		if got != want {
			t.Errorf("%s\nwant %s\ngot  %s", text, want, got)
		}
		require.Equal(t, got, hide(got), "once is enough")
	}
}

// disguise is a way to put a member into a text.
type disguise struct{ *rand.Rand }

func (d disguise) one(of ...string) string { return of[d.IntN(len(of))] }

// word is a random text without meaning.
func (d disguise) word(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[d.IntN(62)]
	}
	return string(b)
}

// name is one that ends with "my pin".
func (d disguise) name() string {
	var name strings.Builder
	for _, part := range []string{d.one("", "the", "db"), "my", "pin", ""} {
		switch d.IntN(3) {
		case 0:
			part = strings.ToUpper(part)
		case 1:
			if part != "" {
				part = strings.ToUpper(part[:1]) + part[1:]
			}
		}
		name.WriteString(part)
		if name.Len() > 0 {
			name.WriteString(d.one("", "", "", "-", "_", " ", ".", "\t", `"`, `\`, "\n"))
		}
	}
	return name.String()
}

// marshal writes a value, with some characters as numbers and white space at will.
func (d disguise) marshal(v any) string {
	out := new(bytes.Buffer)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(d.IntN(2) == 0)
	if d.IntN(3) == 0 {
		enc.SetIndent("", d.one(" ", "\t", "  "))
	}
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if d.IntN(4) > 0 {
		return text
	}
	// In strings any character may be a number.
	var odd strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\\':
			if text[i+1] == '"' && d.IntN(2) == 0 {
				odd.WriteString(`\u0022`)
			} else {
				odd.WriteString(text[i : i+2])
			}
			i++
		case b == '"':
			inside = !inside
			odd.WriteByte(b)
		case inside && b < 0x80 && d.IntN(8) == 0:
			fmt.Fprintf(&odd, d.one(`\u%04x`, `\u%04X`), b)
		default:
			odd.WriteByte(b)
		}
	}
	return odd.String()
}

// member is a value with the secret under the name.
func (d disguise) member(secret string) any {
	var v any = secret
	switch d.IntN(5) {
	case 0:
		v = []any{d.word(3), secret, map[string]any{"]}": secret}}
	case 1:
		v = map[string]any{d.word(3): "}", "k": []any{secret}}
	}
	for range 1 + d.IntN(3) {
		m := map[string]any{d.name(): v}
		for range d.IntN(3) {
			m[d.word(4)] = []any{d.IntN(100), d.word(5), nil, d.one(`"`, `\`, "{", `":`, "x\ny")}
		}
		if v = m; d.IntN(3) == 0 {
			v = []any{m, "end"}
		}
	}
	return v
}

// text is JSON with the member, that is only part of it, in strings in strings, or cut.
func (d disguise) text(secret string) string {
	text := d.marshal(d.member(secret))
	for range d.IntN(4) {
		switch d.IntN(7) {
		case 0:
			text = d.one("12:01 INFO ", `say "hi`, `5" of `, "}", `a: "b", `) + text + d.one("", " end", "\nend\"", "}")
		case 1:
			text = "see:\n```json\n" + text + "\n```\n"
		case 2:
			text = `{"a":["b"]}` + "\n" + text + "\n" + `{"c":null}`
		case 3:
			text = d.marshal(text)
		case 4, 5:
			text = d.marshal(map[string]any{d.word(4): text, "z": d.word(3)})
		case 6:
			if at := strings.LastIndex(text, secret[:4]); at > 0 {
				text = text[:at+4+d.IntN(len(text)-at-3)]
			}
		}
	}
	return text
}

// everythingTold returns all that writers are told of events, by the way.
func everythingTold(t *testing.T, rules trace.Rules, events ...engine.Event) string {
	t.Helper()
	text, lines, chrome := new(strings.Builder), new(strings.Builder), new(strings.Builder)
	tr := trace.New(trace.Options{Text: text, Lines: lines, Chrome: chrome, Rules: rules})
	for i, e := range events {
		require.NotNil(t, e, i)
		tr.Observe(e)
	}
	require.NoError(t, tr.Close(t.Context()))
	for _, err := range trace.Read(strings.NewReader(lines.String())) {
		require.NoError(t, err)
	}
	return text.String() + lines.String() + chrome.String()
}

// chunks cuts a text anywhere.
func (d disguise) chunks(h engine.Header, text string) (events []engine.Event) {
	for text != "" {
		n := min(len(text), 1+d.IntN(12))
		events = append(events, engine.InferenceChunk{Header: h, Text: text[:n]})
		text = text[n:]
	}
	return events
}

// Capability H5. What is under a named member is in nothing that a trace writes, however
// the JSON that has the member is part of a text, and in whatever event.
func TestMembersNeverTold(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for n := range uint64(120) {
		checkMember(t, seed+n)
	}
}

func FuzzMembers(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkMember)
}

func checkMember(t *testing.T, seed uint64) {
	d := disguise{rand.New(rand.NewPCG(seed, 1))}
	secret := d.word(12)
	text := d.text(secret)
	h := engine.Header{Seq: 1, Time: enginetest.Epoch(), Run: "r"}
	args, err := inference.ToJSON(map[string]any{"in": text})
	require.NoError(t, err)
	events := []engine.Event{
		engine.Warning{Header: h, Message: text},
		engine.InferenceFinished{Header: h, Text: text, ToolCalls: []inference.ToolCall{{ID: "c", Name: "n", Args: args}}},
		engine.ToolFinished{Header: h, Call: inference.ToolCall{ID: "c", Name: "n", Args: inference.JSON(text)}, Result: inference.ToolResult{CallID: "c", Content: text, Details: args}},
	}
	rules := trace.Rules{Members: []string{"my-pin"}, Bare: d.IntN(2) == 0, Chunks: true}
	if d.IntN(3) == 0 {
		rules.MaxValue, rules.MaxElement = 40+d.IntN(60), 20+d.IntN(40)
	}
	events = append(events, d.chunks(h, text)...)
	got := everythingTold(t, rules, events...)
	if part := leaks(got, secret); part != "" {
		for line := range strings.Lines(got) {
			if strings.Contains(line, part) {
				t.Fatalf("seed %d, rules %+v: %q of %q is told of\n%s\nas\n%s", seed, rules, part, secret, text, line)
			}
		}
	}
}
