package trace_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

func detail(t *testing.T, e engine.Event, r trace.Rules) string {
	t.Helper()
	line, err := engine.MarshalEvent(trace.Detailed(e, r))
	require.NoError(t, err)
	return string(line)
}

func TestRules(t *testing.T) {
	args := func(text string) engine.Event {
		return engine.ToolStarted{Call: inference.ToolCall{ID: "c", Name: "password", Args: inference.JSON(text)}}
	}
	for text, want := range map[string]string{
		`{"path":"x"}`: `{"path":"x"}`,
		`{"API-Key":"x","old_password":[1],"n":"tokens"}`: `{"API-Key":{"$hidden":true},"old_password":{"$hidden":true},"n":"tokens"}`,
		`{"secret":null,"token":""}`:                      `{"secret":null,"token":""}`,
		`{"a":"sk-` + strings.Repeat("k", 20) + `!"}`:     `{"a":"[hidden]!"}`,
		`{"a":"\u0073k-abcdefghijklmnopqrstuvwxyz"}`:      `{"a":"[hidden]"}`,
		`{"body":"{\"token\":\"x\",\"b\":1}"}`:            `{"body":"{\"token\":{\"$hidden\":true},\"b\":1}"}`,
		`{"max_tokens":5}`:                                `{"max_tokens":5}`,
		`{"hunter22":"my hunter22","n":12345678}`:         `{"[hidden]":"my [hidden]","n":"[hidden]"}`,
	} {
		got := detail(t, args(text), trace.Rules{Secrets: []string{"hunter22", "12345678"}})
		require.Contains(t, got, `"call":{"id":"c","name":"password","args":`+want+`}`, text)
	}
	long := strings.Repeat("é", 300)
	got := detail(t, args(`{"a":"`+long+`"}`), trace.Rules{MaxElement: 100})
	require.Contains(t, got, `"args":{"a":{"$cut":{"bytes":600,"begin":"`+strings.Repeat("é", 12)+`"}}}`)
	got = detail(t, args(`["`+long+`","b"]`), trace.Rules{MaxValue: 100})
	require.Contains(t, got, `"args":[{"$cut":{"bytes":602,"begin":"`)
	require.Contains(t, got, `,"b"]`)
	require.Contains(t, detail(t, args(strings.Repeat("[", 50)+`"`+long+`"`+strings.Repeat("]", 50)), trace.Rules{MaxEvent: 500}), `{"$cut":`)
	require.True(t, json.Valid([]byte(got)))
	require.Contains(t, detail(t, engine.Warning{Message: long}, trace.Rules{MaxValue: 11}), `"message":"ééééé… [cut, of 600 bytes]"`)
}
