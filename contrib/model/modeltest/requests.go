package modeltest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var requestTests = []test{
	{"golden", testGolden},
	{"fields", testFields},
	{"efforts", testEfforts},
	{"both modes alike", testModesAlike},
	{"parts", testParts},
	{"foreign parts", testForeignParts},
	{"history", testHistory},
	{"texts", testTexts},
	{"answers go back", testAnswersGoBack},
	{"the key", testKey},
}

// send asks with a request and returns it as it arrived.
func (p Provider) send(t *testing.T, m mode, r inference.Request) Wire {
	t.Helper()
	s := serve(t, p, answering(p.said("Yes.")))
	_, err := s.ask(context.Background(), m, r.Clone())
	require.NoError(t, err)
	require.Len(t, s.sent(), 1)
	wire := s.sent()[0]
	require.True(t, json.Valid(wire.Body), "body: %s", wire.Body)
	return wire
}

// refuse asks with a request that must fail before anything is sent.
func (p Provider) refuse(t *testing.T, m mode, r inference.Request) error {
	t.Helper()
	s := serve(t, p, answering(p.said("Yes.")))
	_, err := s.ask(context.Background(), m, r.Clone())
	var f *resilient.Failure
	require.ErrorAs(t, err, &f)
	require.False(t, f.Class.Again(), "asking again with what is refused does not help: %v", err)
	require.Empty(t, s.sent())
	return err
}

// testFields sets every field of an override, one by one and all together. None may be lost in silence.
func testFields(t *testing.T, p Provider) {
	for field, value := range full.Fields() {
		t.Run(string(field), func(t *testing.T) {
			place := p.Fields[field]
			if field == inference.FieldReasoningEffort && place.Value == "" {
				place.Value = p.Efforts[inference.EffortLow].Value
			}
			p.checkPlace(t, field, only(field).Apply(p.hello()), place, value)
		})
	}
	t.Run("nothing set", func(t *testing.T) {
		wire := p.send(t, modes[0], p.hello())
		for field := range full.Fields() {
			if place := p.Fields[field]; field != inference.FieldUpstreamModel && place.At != "" && place.Value == "" {
				if got, found := at(wire.Body, place.At); found {
					// Some services insist on a limit; then it must not be the one that the kit sets elsewhere.
					require.Equal(t, inference.FieldMaxTokens, field, "%s is %v though nobody asked", field, got)
				}
			}
		}
	})
	t.Run("zero is a value", func(t *testing.T) {
		for field, zero := range map[inference.Field]inference.Override{
			inference.FieldTemperature: {Temperature: inference.Some(0.0)},
			inference.FieldTopP:        {TopP: inference.Some(0.0)},
		} {
			p.checkPlace(t, field, zero.Apply(p.hello()), p.Fields[field], "0")
		}
	})
}

func testEfforts(t *testing.T, p Provider) {
	for _, effort := range efforts {
		t.Run(string(effort), func(t *testing.T) {
			place := p.Efforts[effort]
			if place.At == "" {
				place.At = p.Fields[inference.FieldReasoningEffort].At
			}
			value, err := inference.ToJSON(effort)
			require.NoError(t, err)
			r := inference.Override{ReasoningEffort: inference.Some(effort)}.Apply(p.hello())
			p.checkPlace(t, inference.FieldReasoningEffort, r, place, value)
		})
	}
}

// only returns the full override with all fields but one taken out.
func only(keep inference.Field) inference.Override {
	text, err := inference.ToJSON(full)
	if err != nil {
		panic(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		panic(err)
	}
	name, extra := strings.CutPrefix(string(keep), "extra.")
	if extra {
		value, _ := full.Extra.Get(name)
		return inference.Override{Extra: inference.Extra{}.With(name, value)}
	}
	for member := range members {
		if member != name {
			delete(members, member)
		}
	}
	if text, err = inference.ToJSON(members); err != nil {
		panic(err)
	}
	var o inference.Override
	if err := text.Decode(&o); err != nil {
		panic(err)
	}
	return o
}

func (p Provider) checkPlace(t *testing.T, field inference.Field, r inference.Request, place Place, value inference.JSON) {
	t.Helper()
	for _, m := range modes {
		if place.Refused {
			err := p.refuse(t, m, r)
			var f *inference.FieldError
			require.ErrorAs(t, err, &f, "a refused field is named by a FieldError")
			require.Equal(t, field, f.Field)
			continue
		}
		if place.Warned {
			s := serve(t, p, answering(p.said("Yes.")))
			_, err := s.ask(context.Background(), m, r.Clone())
			require.NoError(t, err)
			var f *inference.FieldError
			require.ErrorAs(t, errors.Join(s.warnings...), &f, "a field that is left out is warned of")
			require.Equal(t, field, f.Field)
			continue
		}
		wire := p.send(t, m, r)
		if place.Value != "" {
			value = inference.JSON(place.Value)
		}
		if place.InPath {
			var text string
			require.NoError(t, value.Decode(&text))
			require.Contains(t, wire.Path, text)
			continue
		}
		got, found := at(wire.Body, place.At)
		require.True(t, found, "%s is not at %q in %s", field, place.At, wire.Body)
		if value == "" {
			value = "null"
		}
		require.JSONEq(t, string(value), string(got), "%s at %q", field, place.At)
	}
}

// testModesAlike: apart from what asks for the stream, both requests say the same, texts in the same order.
func testModesAlike(t *testing.T, p Provider) {
	r := p.together().Apply(conversation(p))
	require.Equal(t, leaves(p.send(t, modes[0], r).Body), leaves(p.send(t, modes[1], r).Body))
}

// together returns the override that sets all that may be set at once.
func (p Provider) together() inference.Override {
	o := p.Together
	if o.IsZero() {
		o = full
	}
	o.UpstreamModel = inference.Opt[string]{}
	return o
}

// PartNames are the sorts of part that Provider.Parts must say something about: text, and media with their data or
// at a place in the net.
var PartNames = []string{"text", "image", "image at a URI", "audio", "file", "file at a URI", "kind nobody knows"}

var parts = map[string]inference.Part{
	"text":              {Kind: inference.PartText, Text: "A text of its own."},
	"image":             image,
	"image at a URI":    {Kind: inference.PartImage, MediaType: "image/png", URI: "https://pictures.example/sky.png"},
	"audio":             {Kind: inference.PartAudio, MediaType: "audio/wav", Data: "RIFF not really"},
	"file":              {Kind: inference.PartFile, MediaType: "application/pdf", Data: "%PDF not really"},
	"file at a URI":     {Kind: inference.PartFile, MediaType: "application/pdf", URI: "https://pictures.example/sky.pdf"},
	"kind nobody knows": {Kind: "smell", MediaType: "application/x-smell", Data: "lavender"},
}

func testParts(t *testing.T, p Provider) {
	for _, name := range PartNames {
		t.Run(name, func(t *testing.T) {
			r := p.hello()
			part := parts[name]
			r.Messages = []inference.Message{{Role: inference.RoleUser, Text: "What is this?", Parts: []inference.Part{part}}}
			for _, m := range modes {
				if p.Parts[name] == Refused {
					err := p.refuse(t, m, r)
					require.ErrorContains(t, err, part.Kind)
					continue
				}
				texts := leaves(p.send(t, m, r).Body)
				require.True(t, contains(texts, "What is this?"))
				for _, want := range []string{part.Text, part.URI, base64.StdEncoding.EncodeToString([]byte(part.Data))} {
					require.True(t, contains(texts, want), "%q is in none of %q", want, texts)
				}
				if part.Data != "" && part.Kind == inference.PartImage {
					require.True(t, contains(texts, part.MediaType), "%q is in none of %q", part.MediaType, texts)
				}
			}
		})
	}
}

// testForeignParts: what another service's model thought, and blocks that only that service understands, are not for
// this one, and no reason to fail: that is how a conversation moves from one service to another.
func testForeignParts(t *testing.T, p Provider) {
	r := p.hello()
	said := inference.Assistant("Hello yourself.")
	said.Parts = []inference.Part{
		{Kind: inference.PartReasoning, Text: "Somebody greets me."},
		{Kind: inference.PartVendor, MediaType: "application/x-elsewhere", Extra: `{"signature":"elsewhere","type":"redacted"}`},
	}
	r.Messages = append(r.Messages, said, inference.User("And now?"))
	for _, m := range modes {
		texts := leaves(p.send(t, m, r).Body)
		require.True(t, inOrder(texts, "Hello yourself.", "And now?"), "%q", texts)
		require.False(t, contains(texts, "elsewhere"), "%q", texts)
	}
}

// conversation has two turns, parallel calls whose results came in another order, a failed call, and a call that was
// malformed.
func conversation(p Provider) inference.Request {
	r := p.hello()
	call := func(id, name string, args inference.JSON) inference.ToolCall {
		return inference.ToolCall{ID: id, Name: name, Args: args}
	}
	result := func(id, name, content string, failed bool) inference.Message {
		return inference.ToolMessage(inference.ToolResult{CallID: id, Name: name, Content: content, IsError: failed, Details: `{"secret":"details"}`})
	}
	r.Messages = []inference.Message{
		inference.User("How is the weather?"),
		inference.Assistant("Let me look.",
			call("call_1", "weather", `{"city":"Oslo"}`), call("call_2", "weather", `{"city":"Rome"}`), call("call_3", "now", "")),
		result("call_1", "weather", "rain in Oslo", false),
		result("call_2", "weather", "no station in Rome", true),
		result("call_3", "now", "", false),
		inference.Assistant("", call("call_4", "weather", `{"city": "Par`)),
		result("call_4", "weather", "the arguments are not JSON", true),
		inference.System("Mind the clock."),
		inference.User("Well?"),
		inference.Assistant("Rain."),
		inference.User("Thanks."),
	}
	return r
}

func testHistory(t *testing.T, p Provider) {
	for _, m := range modes {
		wire := p.send(t, m, conversation(p))
		texts := leaves(wire.Body)
		require.True(t, inOrder(texts,
			"How is the weather?", "Let me look.", "Oslo", "Rome",
			"rain in Oslo", "no station in Rome", "Par", "the arguments are not JSON", "Well?", "Rain.", "Thanks."), "%q", texts)
		require.True(t, contains(texts, "Mind the clock."), "%q", texts)
		require.True(t, contains(texts, "Be brief."), "%q", texts)
		require.False(t, contains(texts, "details"), "models do not see a result's details: %q", texts)
		if !p.Lacks.CallIDs {
			for _, id := range []string{"call_1", "call_2", "call_3", "call_4"} {
				n := 0
				for _, text := range texts {
					if text == id {
						n++
					}
				}
				require.Equal(t, 2, n, "%s is the id of a call and of its result: %q", id, texts)
			}
			require.True(t, inOrder(texts, "call_1", "call_2", "call_3", "call_1", "call_2", "call_3", "call_4", "call_4"), "%q", texts)
		}
	}
	const long = "9007199254740993" // which no float64 has
	identified := conversation(p)
	identified.Messages[1].ToolCalls[0].Args = `{"city":"Oslo","id":` + long + `}`
	require.Contains(t, string(p.send(t, modes[0], identified).Body), long, "a number keeps its digits")
	if !p.Lacks.ErrorResults {
		good, bad := conversation(p), conversation(p)
		bad.Messages[2].Result.IsError = true
		require.NotEqual(t, string(p.send(t, modes[0], good).Body), string(p.send(t, modes[0], bad).Body),
			"a result that is an error is marked as one")
	}
}

func testTexts(t *testing.T, p Provider) {
	for name, text := range map[string]string{
		"unicode": "Grüße, \u4e16\u754c \U0001F980 \u202e<&> \"quoted\" \\ \n\ttab \u0001 e\u0301",
		"huge":    strings.Repeat("0123456789abcdef", 1<<16),
		"json":    `{"model":"other","messages":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := p.hello()
			r.System = text
			r.Messages = []inference.Message{
				inference.User(text), inference.Assistant(text, inference.ToolCall{ID: "c", Name: "now", Args: "{}"}),
				inference.ToolMessage(inference.ToolResult{CallID: "c", Name: "now", Content: text}), inference.User("?"),
			}
			n := 0
			for _, leaf := range leaves(p.send(t, modes[0], r).Body) {
				if strings.Contains(leaf, text) {
					n++
				}
			}
			require.Equal(t, 4, n, "how often the text is found")
		})
	}
	t.Run("empty", func(t *testing.T) {
		r := p.hello()
		r.System, r.Tools = "", nil
		r.Messages = []inference.Message{inference.User("first"), inference.Assistant(""), inference.User(""), inference.User("last")}
		require.True(t, inOrder(leaves(p.send(t, modes[0], r).Body), "first", "last"))
	})
	t.Run("no messages", func(t *testing.T) {
		r := p.hello()
		r.Messages = nil
		s := serve(t, p, answering(p.said("Yes.")))
		if _, err := s.ask(context.Background(), modes[0], r); err != nil { // some services want one
			f := s.failed(t, err, resilient.BadRequest)
			require.Zero(t, f.Status)
			require.Empty(t, s.sent())
		}
	})
}

// testAnswersGoBack continues a conversation with what the model itself said, reasoning, image and all.
func testAnswersGoBack(t *testing.T, p Provider) {
	a := p.called(oslo, rome)
	a.Text = []string{"I shall look."}
	if !p.Lacks.Reasoning {
		a.Reasoning = []string{"They want to know."}
	}
	if !p.Lacks.ImageAnswers {
		a.Image = image
	}
	for _, m := range modes {
		s := serve(t, p, answering(a))
		r := p.hello()
		first, err := s.ask(context.Background(), m, r.Clone())
		require.NoError(t, err)
		saved, err := inference.ToJSON(first.Message)
		require.NoError(t, err)
		var message inference.Message
		require.NoError(t, saved.Decode(&message))
		again, err := inference.ToJSON(message)
		require.NoError(t, err)
		require.JSONEq(t, string(saved), string(again), "an answer can be saved")
		r.Messages = append(r.Messages, message)
		for _, c := range message.ToolCalls {
			r.Messages = append(r.Messages, inference.ToolMessage(inference.ToolResult{CallID: c.ID, Name: c.Name, Content: "sun"}))
		}
		_, err = s.ask(context.Background(), m, r)
		require.NoError(t, err)
		texts := leaves(s.sent()[1].Body)
		require.True(t, inOrder(texts, "Hello", "I shall look.", "Oslo", "Rome", "sun", "sun"), "%q", texts)
		if a.Image.Data != "" {
			require.True(t, contains(texts, base64.StdEncoding.EncodeToString([]byte(a.Image.Data))), "%q", texts)
		}
	}
}

// testKey: the key is in the header, and nowhere else.
func testKey(t *testing.T, p Provider) {
	wire := p.send(t, modes[0], p.hello())
	var found bool
	for _, values := range wire.Header {
		found = found || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, Key) })
	}
	require.True(t, found, "no header has the key")
	require.NotContains(t, string(wire.Body), Key)
	require.NotContains(t, wire.Path, Key, "addresses end up in logs")
}
