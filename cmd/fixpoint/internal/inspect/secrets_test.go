package inspect_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// A page tells no secrets: none that the rules of its trace hid, and of lines that no
// rules were for none that the default rules hide.
func TestPagesTellNoSecrets(t *testing.T) {
	const secret = "zq7hunter"
	key := strings.Repeat("Zq7H", 16)
	for name, c := range map[string]struct {
		member string
		rules  *trace.Rules
	}{"by its rules": {"my_pin", &trace.Rules{Members: []string{"my-pin"}, Chunks: true}}, "by default": {"db_password", nil}} {
		t.Run(name, func(t *testing.T) {
			plain := `{"` + c.member + `":{"a":["` + secret + `"]}}`
			wrapped, err := json.Marshal(plain)
			require.NoError(t, err)
			args, err := inference.ToJSON([]string{"-----BEGIN " + "PRIVATE KEY-----", key, "-----END " + "PRIVATE KEY-----"})
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "trace.jsonl")
			var lines strings.Builder
			write := func(e engine.Event) {
				if c.rules != nil {
					e = trace.Detailed(e, *c.rules)
				}
				line, err := engine.MarshalEvent(e)
				require.NoError(t, err)
				lines.WriteString(string(line) + "\n")
			}
			for i, text := range []string{"{}\n" + plain, "log: " + string(wrapped), "```json\n" + plain + "\n```", plain[:len(plain)-6], string(wrapped[:len(wrapped)-8])} {
				h := engine.Header{Seq: uint64(2*i + 1), Time: enginetest.Epoch(), Run: "r", Thread: "t", Step: 1}
				call := inference.ToolCall{ID: "c", Name: "n", Args: args}
				write(engine.ToolStarted{Header: h, Call: call})
				write(engine.ToolFinished{Header: h, Call: call, Result: inference.ToolResult{CallID: "c", Content: text, Outcome: inference.OutcomeOK}})
			}
			require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
			rec, err := inspect.Read(file)
			require.NoError(t, err)
			view, err := json.Marshal(rec.View())
			require.NoError(t, err)
			require.NotEmpty(t, rec.View().Calls)
			page, err := inspect.SingleFile(view)
			require.NoError(t, err)
			require.Contains(t, string(page), "[hidden]")
			for _, hidden := range []string{secret, key[:12]} {
				require.NotContains(t, string(page), hidden)
			}
		})
	}
}
