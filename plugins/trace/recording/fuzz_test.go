package recording_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// requirePlain refuses what could steer a terminal.
func requirePlain(t *testing.T, line string) {
	t.Helper()
	require.NotEmpty(t, line)
	require.False(t, strings.ContainsFunc(line, unicode.IsControl), "%q", line)
	require.True(t, utf8.ValidString(line))
}

// Any events, in any order, incomplete and repeated, make a view that can be written, and
// patches that come to it; and whatever is asked has an answer.
func FuzzEvents(f *testing.F) {
	var all []engine.Event
	for seed := range uint64(3) {
		w, _ := play(f, seed)
		for _, e := range w.events.Events() {
			all = append(all, trace.Detailed(e, trace.Rules{}))
		}
	}
	asks := newWorld(f, script(enginetest.Call("c1", "pay", nil), enginetest.Say("done")),
		guardOf("guard", func(inference.ToolCall) (gate.Decision, error) { return gate.Suspend(gate.Ticket{}), nil }),
		guardOf("other", func(inference.ToolCall) (gate.Decision, error) { return gate.Block("no"), errors.New("broken") }))
	asks.tools = []engine.Tool{enginetest.StubTool("pay", engine.Text("paid"))}
	asks.run(engine.Prompt("x"))
	for _, e := range asks.events.Events() {
		all = append(all, trace.Detailed(e, trace.Rules{}))
	}
	f.Add([]byte{}, []byte{})
	in, back := make([]byte, 0, 2*len(all)), make([]byte, 0, 2*len(all))
	var lines bytes.Buffer
	for i, e := range all {
		in = append(in, byte(i>>8), byte(i))
		j := len(all) - 1 - i
		back = append(back, byte(j>>8), byte(j))
		line, err := engine.MarshalEvent(e)
		require.NoError(f, err)
		if i < 150 {
			lines.Write(append(line, '\n'))
		}
	}
	f.Add(in, []byte{})
	f.Add(back, []byte{})
	f.Add(in[1:], lines.Bytes())
	f.Add([]byte{}, lines.Bytes())
	for _, typ := range engine.EventTypes() {
		f.Add([]byte{0, 0}, []byte(`{"type":"`+typ+`","seq":3,"time":"2030-01-02T03:04:05Z","run":"r","thread":"t"}`+"\n"+`{"type":"`+typ+`"}`+"\n"))
	}
	f.Add([]byte{}, []byte(`{"type":"committed","seq":2,"time":"2030-01-02T03:04:05Z","run":"r\u001b","thread":"t\n","step":1,"phase":"tool_gate","revision":9,"call":"c\u001b","writes":[{"plugin":"p\u001b","hook":"h\u0007","key":"k\u001b","entry":"a\u001b","op":"put","value":"\u009b"}],"changes":[{"name":"k\u001b","scope":"run","version":0,"raw":[["a\u001b","\u009b"]],"part":"entries"}]}
{"type":"conflict","seq":3,"time":"2030-01-02T03:04:05Z","run":"r\u001b","thread":"t\n","step":1,"phase":"tool_gate","revision":9,"key":"k\u001b","entry":"a\u001b","winner":"p\u001b","loser":"q\u001b","hook":"x\u001b","fate":"retried"}
{"type":"gate_voted","seq":4,"time":"2030-01-02T03:04:05Z","run":"r\u001b","thread":"t\n","step":1,"phase":"tool_gate","call":"c\u001b","tool":"x\u001b","plugin":"g\u001b","gate":"g\u001b","decision":"block","reason":"\u001b"}
{"type":"gate_resolved","seq":5,"time":"2030-01-02T03:04:05Z","run":"r\u001b","thread":"t\n","step":1,"phase":"tool_gate","call":"c\u001b","tool":"x\u001b","pass":1,"plugin":"g\u001b","decision":"block","cause":"decided","reason":"\u001b"}
{"type":"ticket_opened","seq":6,"time":"2030-01-02T03:04:05Z","run":"r\u001b","thread":"t\n","step":1,"ticket":{"id":"t\u001b","call":"c\u001b","plugin":"p\u001b","kind":"k\u001b","message":"\u001b"}}
{"type":"tool_finished","seq":7,"time":"2030-01-02T03:04:05Z","run":"r\u001b","thread":"t\n","step":1,"call":{"id":"c\u001b","name":"x\u001b","malformed_args":"\u001b"},"result":{"call_id":"c\u001b","content":"\u001b[2J\n","outcome":"\u001b"}}
`))
	f.Add([]byte{}, []byte(`{"type":"trace","version":1}
{"type":"run_started","seq":1,"time":"2030-01-02T03:04:05Z","run":"r","thread":"t","revision":7,"base":{"revision":7,"entries":[{"name":"k","scope":"run","version":0,"raw":[["a",1],[2],3,{"$cut":{"bytes":9,"begin":"x"}}]},{"name":"l","scope":"thread","version":0,"raw":{"$hidden":true}}]}}
{"type":"dropped","count":4}
{"type":"committed","seq":9,"time":"2030-01-02T03:04:05Z","run":"r","thread":"t","revision":9,"writes":[{"plugin":"p","key":"k","entry":"a","op":"put"},{"plugin":"p","key":"l","op":"append"}],"changes":[{"name":"k","scope":"run","version":0,"raw":[["b",2],7],"part":"entries","gone":["a",1e3]},{"name":"l","scope":"thread","version":0,"raw":[1,{"$hidden":true}],"part":"append"},{"name":"m","scope":"thread","version":0,"raw":null,"part":"reset"}]}
{"type":"run_resumed","seq":1,"time":"2030-01-02T03:04:06Z","run":"r","thread":"t","revision":20,"base":{"revision":19,"entries":[]}}
`))
	f.Fuzz(func(t *testing.T, order, lines []byte) {
		rec := recording.New("fuzz")
		var page recording.View
		cursor := uint64(0)
		look := func() {
			p, next := rec.Since(cursor)
			fold(&page, p)
			cursor = next
		}
		for i := 0; i+1 < len(order) && i < 4000; i += 2 {
			rec.Add(trace.Line{Event: all[(int(order[i])<<8|int(order[i+1]))%len(all)]})
			if order[i+1]%64 == 0 {
				look()
			}
		}
		for l, err := range trace.Read(bytes.NewReader(lines)) {
			if err == nil {
				rec.Add(l)
			}
		}
		look()
		v := rec.View()
		out, err := json.Marshal(v)
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		if len(v.Runs) > 0 {
			seen, err := json.Marshal(page)
			require.NoError(t, err)
			var a, b recording.View
			require.NoError(t, json.Unmarshal(out, &a))
			require.NoError(t, json.Unmarshal(seen, &b))
			a.Zero, b.Zero = v.Zero, v.Zero
			for _, x := range []*recording.View{&a, &b} { // nothing and no items are the same to a page
				x.Runs, x.Spans, x.Commits = append([]recording.Run{}, x.Runs...), append([]recording.Span{}, x.Spans...), append([]recording.Commit{}, x.Commits...)
				x.Calls, x.Effects = append([]recording.Call{}, x.Calls...), append([]recording.Effect{}, x.Effects...)
			}
			require.Equal(t, a, b)
		}
		ids := map[string]bool{}
		for _, s := range v.Spans {
			require.False(t, ids[s.ID])
			ids[s.ID] = true
			require.True(t, s.Parent == "" || ids[s.Parent], "parents come first")
		}
		for _, c := range v.Commits {
			require.False(t, ids[c.ID])
			ids[c.ID] = true
			for _, ch := range c.Changes[:min(3, len(c.Changes))] {
				for _, entry := range []string{"", ch.Entry} {
					if x, err := rec.Explain(recording.Query{Run: c.Run, Key: ch.Key, Entry: entry, Revision: c.Rev}); err == nil {
						for _, line := range append(strings.Split(x.String(), "\n"), ch.Why...) {
							requirePlain(t, line)
						}
					}
				}
			}
		}
		for _, x := range v.Runs {
			_, _ = rec.State(recording.Query{Run: x.ID})
		}
		for _, c := range v.Calls {
			require.False(t, ids["call "+c.ID])
			ids["call "+c.ID] = true
			ds, err := rec.Why(c.Call)
			require.NoError(t, err)
			for _, line := range strings.Split(ds[0].String(), "\n") {
				requirePlain(t, line)
			}
		}
	})
}
