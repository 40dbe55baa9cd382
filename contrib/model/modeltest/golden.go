package modeltest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

// testGolden compares requests with those that were looked at once and found right.
func testGolden(t *testing.T, p Provider) {
	bare := inference.Request{Model: p.Model, Messages: []inference.Message{inference.User("Hello")}}
	pictured := bare.Clone()
	pictured.Messages[0].Parts = []inference.Part{image}
	for _, c := range []struct {
		name    string
		mode    mode
		request inference.Request
		skip    bool
	}{
		{"bare", modes[0], bare, false},
		{"stream", modes[1], bare, false},
		{"tools", modes[0], p.hello(), false},
		{"conversation", modes[0], conversation(p), false},
		{"image", modes[0], pictured, p.Parts["image"] == Refused},
		{"params", modes[0], p.together().Apply(bare), false},
	} {
		if c.skip {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			wire := p.send(t, c.mode, c.request)
			var text bytes.Buffer
			text.WriteString(wire.Method + " " + wire.Path + "\n")
			require.NoError(t, json.Indent(&text, wire.Body, "", "  "))
			text.WriteByte('\n')
			name := filepath.Join(p.Golden, c.name+".txt")
			if p.Update {
				require.NoError(t, os.MkdirAll(p.Golden, 0o755))
				require.NoError(t, os.WriteFile(name, text.Bytes(), 0o644))
			}
			want, err := os.ReadFile(name)
			require.NoError(t, err, "run the test with Provider.Update once, and look at what it writes")
			require.Equal(t, string(want), text.String())
		})
	}
}
