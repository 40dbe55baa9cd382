package trace_test

import (
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

// key is a private key of random lines, and the lines. It is put together here, so that
// nothing that looks for keys finds this file.
func (d disguise) key() (lines, body []string) {
	kind := d.one("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")
	for range 2 + d.IntN(4) {
		body = append(body, d.word(64))
	}
	body = append(body, d.word(8+d.IntN(20))+"==")
	lines = append(append([]string{"-----BEGIN " + kind + "PRIVATE " + "KEY-----"}, body...), "-----END "+kind+"PRIVATE "+"KEY-----")
	return lines, body
}

// pieces cuts a text anywhere, but not too small.
func (d disguise) pieces(text string, least, most int) (all []string) {
	for text != "" {
		n := min(len(text), least+d.IntN(most-least))
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// Capability H5. A private key is in nothing that a trace writes, over however many
// strings it is spread: the elements of a list, the members of objects, the chunks of an
// answer.
func TestKeysInPieces(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for n := range uint64(80) {
		checkKey(t, seed+n)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkKey)
}

func checkKey(t *testing.T, seed uint64) {
	d := disguise{rand.New(rand.NewPCG(seed, 2))}
	lines, body := d.key()
	rest := []string{"", "and then", `more "text"`}[d.IntN(3)]
	h := engine.Header{Seq: 1, Time: enginetest.Epoch(), Run: "r"}
	var parts []string
	between := "\n"
	switch d.IntN(4) {
	case 0:
		parts = lines
	case 1:
		parts = lines[:len(lines)-1-d.IntN(2)] // it has no end
	case 2:
		for i, l := range lines {
			parts = append(parts, fmt.Sprintf("%s%d%s%s", d.one("", "L"), i+1, d.one(": ", "\t", " | "), l))
		}
	case 3:
		parts, between = d.pieces(strings.Join(lines, "\n")+"\n"+rest, 16, 80), ""
	}
	var value any
	var events []engine.Event
	switch d.IntN(5) {
	case 0:
		value = map[string]any{"lines": parts, "more": rest}
	case 1:
		list := []any{"before", 1}
		for _, p := range parts {
			list = append(list, map[string]any{"type": "text_delta", "text": p, "n": len(list)})
		}
		value = list
	case 2:
		value = map[string]any{"a_body": strings.Join(body, d.one("\n", "\r\n", `\n`)), "header": lines[0], "z_footer": lines[len(lines)-1]}
	case 3:
		inner, err := inference.ToJSON(parts)
		require.NoError(t, err)
		value = map[string]any{"text": d.one("", "got ") + string(inner)}
	case 4:
		value = strings.Join(parts, between)
		for _, p := range d.pieces(strings.Join(parts, between), 1, 30) {
			events = append(events, engine.InferenceChunk{Header: h, Text: p})
		}
	}
	args, err := inference.ToJSON(value)
	require.NoError(t, err)
	events = append(events,
		engine.InferenceFinished{Header: h, Text: strings.Join(lines, "\n"), ToolCalls: []inference.ToolCall{{ID: "c", Name: "n", Args: args}}},
		engine.ToolFinished{Header: h, Call: inference.ToolCall{ID: "c", Name: "n", Args: args}, Result: inference.ToolResult{CallID: "c", Content: string(args), Details: args}},
		engine.Conflict{Header: h, Lost: writes(parts)},
	)
	got := everythingTold(t, trace.Rules{Chunks: true}, events...)
	for _, secret := range body {
		if part := leaks(got, secret); part != "" {
			for line := range strings.Lines(got) {
				if strings.Contains(line, part) {
					t.Fatalf("seed %d: %q of %q is told of\n%s\nas\n%s", seed, part, secret, args, line)
				}
			}
		}
	}
}

// writes are of each text by itself.
func writes(parts []string) (all []engine.Write) {
	for _, p := range parts {
		j, err := inference.ToJSON(p)
		if err != nil {
			panic(err)
		}
		all = append(all, engine.Write{Plugin: "p", Key: "log", Op: "append", Value: j})
	}
	return all
}

// What is beside a key, or only speaks of one, is told.
func TestNoKeys(t *testing.T) {
	marks := []string{"-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"}
	for args, want := range map[string]string{
		`{"lines":["a","B","QUJD","E","after"]}`:                                             `{"lines":["a","[hidden]","[hidden]","[hidden]","after"]}`,
		`{"lines":["a","xB","QUJD","Ey"],"other":["QUJD"]}`:                                  `{"lines":["a","x[hidden]","[hidden]","[hidden]y"],"other":["QUJD"]}`,
		`{"lines":["B","QUJD","is (this) a key?","QUJD"]}`:                                   `{"lines":["[hidden]","[hidden]","is (this) a key?","QUJD"]}`,
		`{"grep":"B","sum":"3f786850e387550fdab836ed7e6dc881de23001b","id":"call_1"}`:        `{"grep":"[hidden]","sum":"3f786850e387550fdab836ed7e6dc881de23001b","id":"call_1"}`,
		`{"one":"BQUJDE and","two":["B","QUJD","E"],"three":"-----"}`:                        `{"one":"[hidden] and","two":["[hidden]","[hidden]","[hidden]"],"three":"-----"}`,
		`{"rule":"-----","list":["-----","BEGIN","x"],"cert":"-----BEGIN CERTIFICATE-----"}`: `{"rule":"-----","list":["-----","BEGIN","x"],"cert":"-----BEGIN CERTIFICATE-----"}`,
	} {
		put := strings.NewReplacer("BEGIN", "BEGIN", "B", marks[0], "E\"", marks[1]+"\"", "Ey", marks[1]+"y", "E and", marks[1]+" and")
		e := engine.ToolStarted{Header: engine.Header{Seq: 1, Time: enginetest.Epoch()}, Call: inference.ToolCall{ID: "c", Name: "n", Args: inference.JSON(put.Replace(args))}}
		got := trace.Detailed(e, trace.Rules{}).(engine.ToolStarted)
		require.Equal(t, want, string(got.Call.Args), args)
	}
}

// Chunks are told as they come, but for what is hidden.
func TestChunks(t *testing.T) {
	for text, want := range map[string]string{
		"hello| dear| ann":                          "hello| dear| ann",
		`so {"my_pin":| "31|41"|, "b": 1} ok`:       `so {"my_pin":| "[hidden]|[hidden]"|, "b": 1} ok`,
		`so {"my_|pin":"3141|5926"} then |some`:     `so {"my_|pin":"[hidden]|[hidden]"} then |some`,
		"-----BEG|IN PRIVATE" + " KEY-----\nQU|JD|": "-----BEG|[hidden]|[hidden]",
		"| |x": "| |x",
		strings.Repeat("0123456789 {[\"|", 5000) + `"my_pin":"31|41|5"|!`: strings.Repeat("0123456789 {[\"|", 5000) + `"my_pin":"[hidden]|[hidden]|[hidden]"|!`,
	} {
		detailed := trace.Rules{Members: []string{"my-pin"}, Chunks: true}.Detailer()
		var got []string
		for part := range strings.SplitSeq(text, "|") {
			e := detailed(engine.InferenceChunk{Header: engine.Header{Run: "r"}, Text: part})
			got = append(got, e.(engine.InferenceChunk).Text)
			other := detailed(engine.InferenceChunk{Header: engine.Header{Run: "other"}, Text: "x"})
			require.Equal(t, "x", other.(engine.InferenceChunk).Text)
		}
		if strings.HasSuffix(want, "[hidden]") && strings.HasSuffix(text, "|") {
			want += "|"
		}
		require.Equal(t, want, strings.Join(got, "|"), text[:min(len(text), 80)])
		detailed(engine.InferenceFinished{Header: engine.Header{Run: "r"}})
		e := detailed(engine.InferenceChunk{Header: engine.Header{Run: "r"}, Text: "new"})
		require.Equal(t, "new", e.(engine.InferenceChunk).Text)
	}
}
